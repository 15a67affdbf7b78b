"""`podium playbook`: what people and programs read of it."""

from __future__ import annotations

import json

import pytest

from podium.jobs.playbook import playbook_schema, profile_schema
from tests.integration.cli.desk import Desk
from tests.unit.playbook.files import PLAYBOOK, PROFILE, write


@pytest.fixture(autouse=True)
def _files(desk: Desk) -> None:
    write(desk.project)


def test_a_sound_playbook_is_shown_as_the_prompt_with_sections_and_estimate(desk: Desk) -> None:
    said = desk.run("playbook", "check", "bump.md", "--input", "version=6.6")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "bump.md: sound, with plugin-profile.yaml"
    assert lines[1].split() == ["SECTION", "CHARACTERS", "TOKENS", "(ESTIMATE)"]
    assert "# Playbook: Bump to `6.6`" in lines
    assert sorted(path.name for path in desk.project.iterdir()) == [
        "bump.md",
        "plugin-profile.yaml",
    ]
    assert not desk.home.exists()


def test_the_json_holds_the_same(desk: Desk) -> None:
    said = desk.run(
        "playbook",
        "check",
        "bump.md",
        "--profile",
        "plugin-profile.yaml",
        "--input",
        "version=6.6",
        "--json",
    )
    record = said.json
    assert (said.code, record["sound"], record["faults"]) == (0, True, [])
    assert record["missing_inputs"] == []
    assert (
        sum(each["estimated_tokens"] for each in record["sections"]) == record["estimated_tokens"]
    )
    assert record["prompt"].startswith("# Your task")
    assert record["characters"] == len(record["prompt"])


def test_an_input_that_is_not_given_yet_is_a_note(desk: Desk) -> None:
    said = desk.run("playbook", "check", "bump.md")
    assert said.code == 0
    assert "note: input 'version' is required to run the playbook" in said.out


def test_faults_of_both_files_and_of_the_inputs_come_at_once(desk: Desk) -> None:
    write(
        desk.project,
        PROFILE.replace("kind: wordpress\n", "") + "colour: red\n",
        PLAYBOOK + "{{ nope }}\n",
    )
    said = desk.run("playbook", "check", "bump.md", "--input", "x")
    assert said.code == 2
    places = [line.partition(": ")[0] for line in said.out.splitlines()]
    assert places == [
        "plugin-profile.yaml:2:1",
        "plugin-profile.yaml:21:1",
        "bump.md:33:1",
        "--input",
    ]
    assert "4 problems" in said.err
    record = desk.run("playbook", "check", "bump.md", "--json").json
    assert [each["field"] for each in record["faults"]] == ["kind", "colour", ""]
    assert (record["sound"], record["prompt"]) == (False, None)


def test_what_the_profile_does_not_give_is_a_fault_of_the_playbook(desk: Desk) -> None:
    write(desk.project, PROFILE.replace(", edit_file", "").replace("  test: composer test\n", ""))
    said = desk.run("playbook", "check", "bump.md")
    assert said.code == 2
    places = [line.partition(": the")[0] for line in said.out.splitlines()]
    assert places == ["bump.md:8:28: allowed_tools[1]", "bump.md:10:11: success[0]"]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (["version=a\nb"], "one line"),
        (["version=1", "version=2"], "twice"),
        (["version=1", "colour=red"], "no input 'colour'"),
        (["=1"], "NAME=VALUE"),
        (["version=ghp_" + "a1B2" * 9], "looks like a secret"),
        (["version=x`y"], "backtick"),
    ],
)
def test_unusable_inputs_are_refused(desk: Desk, given: list[str], word: str) -> None:
    options = [part for each in given for part in ("--input", each)]
    said = desk.run("playbook", "check", "bump.md", *options)
    assert said.code == 2
    assert word in said.out
    assert "ghp_" not in said.out + said.err


def test_an_input_whose_variable_the_user_calls_no_secret_is_sound(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", "open-demo-77")
    given = ("playbook", "check", "bump.md", "--input", "version=open-demo-77")
    refused = desk.run(*given)
    assert (refused.code, "open-demo-77" in refused.out) == (2, False)
    assert "looks like a secret" in refused.out
    desk.home.mkdir(exist_ok=True)
    (desk.home / "config.yaml").write_text("not_secret: [DEMO_PASSWORD]\n")
    said = desk.run(*given)
    assert (said.code, "open-demo-77" in said.out) == (0, True), said.out


def test_a_profile_or_playbook_that_is_not_there_is_told(desk: Desk) -> None:
    (desk.project / "plugin-profile.yaml").unlink()
    said = desk.run("playbook", "check", "none.md")
    assert said.code == 2
    assert "--profile FILE" in said.out
    assert "none.md: no such file" in said.out


def test_pages_anywhere_beneath_the_project_may_be_included(desk: Desk) -> None:
    (desk.project / "books").mkdir()
    (desk.project / "shared.md").write_text("## Shared\n")
    body = "# T\n```include\n../shared.md\n```\n"
    (desk.project / "books" / "main.md").write_text("---\nname: x\n---\n" + body)
    said = desk.run("playbook", "check", "books/main.md")
    assert (said.code, "## 1. Shared" in said.out) == (0, True)


def test_escapes_in_the_files_never_reach_the_terminal(desk: Desk) -> None:
    write(desk.project, PROFILE.replace("Shows pictures.", '"\\e[2J\\u202e"'))
    said = desk.run("playbook", "check", "bump.md", "--input", "version=\x1b]0;x\x07")
    assert said.code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(said.out)
    write(desk.project, PROFILE + '"\\e[2J": x\n')
    assert "\x1b" not in desk.run("playbook", "check", "bump.md").out


def test_the_schemas_are_printed(desk: Desk) -> None:
    assert json.loads(desk.run("playbook", "schema").out) == profile_schema()
    assert desk.run("playbook", "schema", "--playbook", "--json").json == playbook_schema()
