"""`plugin-profile.yaml`: found, read, and refused with every fault at its place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from podium.core.errors import BadInput
from podium.jobs.playbook import playbook_schema, profile_schema
from podium.jobs.playbook.loader import find_profile, load_profile
from podium.jobs.playbook.page import MAX_FILE_BYTES
from tests.unit.playbook.files import PROFILE, faults_of, write

DOCS = Path(__file__).parents[3] / "docs"


def profile_faults(folder: Path, text: str) -> list[str]:
    write(folder, profile=text)
    return faults_of(folder / "plugin-profile.yaml")


def with_line(old: str, new: str) -> str:
    assert old in PROFILE
    return PROFILE.replace(old, new)


def test_a_profile_says_all_that_its_file_says(tmp_path: Path) -> None:
    write(tmp_path)
    profile = load_profile(tmp_path / "plugin-profile.yaml")
    assert profile.name == "Tiny Gallery"
    assert profile.commands.test == "composer test"
    assert profile.commands.build is None
    assert profile.compatibility == {"wordpress": ("6.4", "6.5"), "php": ("8.1",)}
    assert profile.secrets == {"WP_TOKEN": "secret://WP_TOKEN"}


def test_the_nearest_profile_upwards_is_the_one(tmp_path: Path) -> None:
    write(tmp_path)
    deep = tmp_path / "src" / "inner"
    deep.mkdir(parents=True)
    assert find_profile(deep) == tmp_path / "plugin-profile.yaml"
    write(tmp_path / "src", profile=with_line("Tiny Gallery", "Nearer"))
    assert load_profile(deep).name == "Nearer"


def test_without_a_profile_the_remedy_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--profile FILE"):
        find_profile(tmp_path)


def test_all_faults_come_at_once_with_line_column_and_field(tmp_path: Path) -> None:
    text = """\
name: 3.10
kind: wordpress
entry_points: [/etc/passwd, ../x, "C:/y"]
compatibility: {php: [8.1, "8.2"]}
commands: {test: "a\\nb", lint: "echo {{ x }}", deploy: now}
allowed_tools: ["rm -rf"]
allowed_tiers: [T9]
colour: red
"""
    problems = profile_faults(tmp_path, text)
    places = [line.split(": ")[:2] for line in problems]
    assert places == [
        ["plugin-profile.yaml:1:1", "name"],
        ["plugin-profile.yaml:1:1", "language"],
        ["plugin-profile.yaml:3:16", "entry_points[0]"],
        ["plugin-profile.yaml:3:29", "entry_points[1]"],
        ["plugin-profile.yaml:3:35", "entry_points[2]"],
        ["plugin-profile.yaml:4:23", "compatibility.php[0]"],
        ["plugin-profile.yaml:5:12", "commands.test"],
        ["plugin-profile.yaml:5:26", "commands.lint"],
        ["plugin-profile.yaml:5:48", "commands.deploy"],
        ["plugin-profile.yaml:6:17", "allowed_tools[0]"],
        ["plugin-profile.yaml:7:17", "allowed_tiers[0]"],
        ["plugin-profile.yaml:8:1", "colour"],
    ]


def test_a_version_without_quotes_is_refused_before_its_zero_is_lost(tmp_path: Path) -> None:
    (problems,) = profile_faults(tmp_path, with_line('php: ["8.1"]', "php: [8.10]"))
    assert "put it in quotes" in problems


@pytest.mark.parametrize(
    "written",
    ["{A: hunter2}", "{A: [hunter2]}", "hunter2", "[hunter2]", "{A: 'secret://hunter2 x'}"],
)
def test_secret_in_clear_text_is_refused_and_not_repeated(tmp_path: Path, written: str) -> None:
    text = with_line("secrets:\n  WP_TOKEN: secret://WP_TOKEN", f"secrets: {written}\ncolour: red")
    problems = profile_faults(tmp_path, text)
    assert [line.split(": ")[1].partition(".")[0] for line in problems] == ["secrets", "colour"]
    assert "hunter2" not in "".join(problems)


def test_apparent_token_is_refused_wherever_it_appears(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    for old in ("Keep the changelog", "https://example.org", "composer lint"):
        problems = profile_faults(tmp_path, with_line(old, f"{old} {token}"))
        assert any("looks like a secret" in line for line in problems), old
        assert token not in "".join(problems)
    problems = profile_faults(tmp_path, with_line("[tiny-gallery.php]", f"[/{token}]"))
    assert len(problems) == 2
    assert token not in "".join(problems)
    problems = profile_faults(tmp_path, with_line("https://", "https://ann:hunter2@"))
    assert "looks like a secret" in problems[0]


def test_unreadable_file_is_reported_as_such(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert faults_of(missing) == ["none.yaml: no such file"]
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    assert faults_of(pipe) == ["pipe.yaml: is not a regular file"]
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    assert faults_of(huge) == ["huge.yaml: is larger than 200 kB; shorten it"]
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: x\nkind: \xe9\n")
    assert faults_of(latin) == ["latin.yaml:2: is not valid UTF-8; save it as UTF-8"]
    for text in ("", "[]", "- a", "a: &x [*x]", "{" * 100, "\x00", "name: !!python/object x"):
        assert profile_faults(tmp_path, text), text


@pytest.mark.parametrize(
    ("file", "made"), [("plugin-profile.schema.json", profile_schema()), (None, playbook_schema())]
)
def test_the_published_schema_is_the_one_of_the_code(
    file: str | None, made: dict[str, object]
) -> None:
    Draft202012Validator.check_schema(made)
    if file:
        assert json.loads((DOCS / file).read_text()) == made


def test_schema_accepts_a_sound_profile_and_describes_every_field() -> None:
    schema = profile_schema()
    validator = Draft202012Validator(schema)
    sound = yaml.safe_load(PROFILE)
    assert [*validator.iter_errors(sound)] == []
    assert [*validator.iter_errors({**sound, "secrets": {"A": "hunter2"}})]
    assert [*validator.iter_errors({**sound, "colour": "red"})]
    assert all(item.get("description") for item in schema["properties"].values())


@pytest.mark.parametrize(
    "glob", ["[ab].py", "{a,b}.py", "!x", "a?", "tests/ ", "\u202ex", "*a*a*a*b", "**/a/**/b/**/c"]
)
def test_a_glob_that_means_something_else_than_it_seems_to_is_refused(
    tmp_path: Path, glob: str
) -> None:
    file = tmp_path / "plugin-profile.yaml"
    file.write_text(PROFILE.replace("[vendor/**]", json.dumps([glob])))
    (fault,) = faults_of(file)
    assert "forbidden_paths[0]" in fault
