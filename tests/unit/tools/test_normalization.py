from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.core.decisions import Access
from podium.core.errors import BadArguments, UnknownTool
from podium.core.model import Json
from podium.tools.normalization import real_path
from podium.tools.registry import shape_of
from tests.unit.tools.toolbox_harness import SECRET, Harness, a_tool, make_harness, path_argument


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_harness(tmp_path)


def test_defaults_are_filled_in_and_the_given_arguments_are_left_alone(harness: Harness) -> None:
    given = {"path": "a.txt"}

    call = harness.toolbox.normalise("read_file", given, run_id="r", step_key="s#0", index=3)

    assert call.arguments == {"path": "a.txt", "offset": 1, "limit": 250}
    assert given == {"path": "a.txt"}
    assert (call.run_id, call.step_key, call.index) == ("r", "s#0", 3)


def test_defaults_inside_a_given_object_are_filled_in_too(tmp_path: Path) -> None:
    inner = {"type": "object", "properties": {"size": {"default": 4}}}
    schema = {"type": "object", "properties": {"box": inner}}
    harness = make_harness(tmp_path, [a_tool(input_schema=schema)])

    assert harness.call("send", box={}).arguments == {"box": {"size": 4}}
    assert harness.call("send").arguments == {}


def test_who_asks_goes_into_the_call(harness: Harness) -> None:
    call = harness.toolbox.normalise(
        "git_status",
        {},
        run_id="r",
        step_key="s#0",
        index=0,
        role="auditor",
        agent="codex",
        provenance=("github:issue/12",),
        observed=True,
    )

    assert (call.role, call.agent, call.provenance) == ("auditor", "codex", ("github:issue/12",))
    assert call.observed


def test_a_tool_that_is_not_there_is_refused_with_the_names_that_are(harness: Harness) -> None:
    with pytest.raises(
        UnknownTool, match=r"no tool 'rm'; tools: apply_patch, ask_human, edit_file"
    ):
        harness.call("rm")


def test_every_problem_with_the_arguments_is_named_at_once(harness: Harness) -> None:
    with pytest.raises(BadArguments) as caught:
        harness.call("read_file", offset="one", limit=0, colour="red")

    words = " | ".join(caught.value.problems)
    assert len(caught.value.problems) == 4
    assert "'path' is a required property" in words
    assert "'offset': 'one' is not of type 'integer'" in words
    assert "'limit': 0 is less than the minimum of 1" in words
    assert "unknown argument 'colour'" in words
    assert caught.value.shape == (
        "read_file takes {path: text, offset?: integer, limit?: integer}, "
        'for example {"path": "src/app.py"}'
    )


def test_the_shape_of_every_tool_comes_with_an_example_that_fits(harness: Harness) -> None:
    for spec in harness.toolbox.specs():
        shape = shape_of(spec, harness.registry.validator(spec.name).is_valid)
        assert len(shape) < 800
        assert "change" not in shape
        assert "sha256" not in shape or spec.offered == "by_name"
        if spec.offered != "by_name":
            _, _, example = shape.partition(", for example ")
            assert harness.call(spec.name, **json.loads(example)).tool == spec.name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["path"], "must be a JSON object, not list"),
        ({"path": float("nan")}, "not plain JSON"),
        ({"path": {"a set"}}, "not plain JSON"),
        ({"path": "\ud800"}, "not plain JSON"),
        ({"path": "x" * 1_000_001}, "the limit is 1000000"),
    ],
)
def test_what_is_no_json_object_of_a_sane_size_is_refused(
    harness: Harness, arguments: Any, words: str
) -> None:
    with pytest.raises(BadArguments, match=words):
        harness.toolbox.normalise("read_file", arguments, run_id="r", step_key="s", index=0)


def test_arguments_nested_without_end_are_refused(harness: Harness) -> None:
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(BadArguments, match="not plain JSON"):
        harness.call("finish", summary="x", payload={"deep": deep})


def test_plain_text_secret_is_refused_wherever_it_appears_and_never_repeated(
    harness: Harness,
) -> None:
    for arguments in (
        {"command": ["curl", "-H", f"x: {SECRET}"]},
        {"command": "env", "env": {"TOKEN": SECRET}},
        {"command": SECRET, "wrong": "argument"},
    ):
        with pytest.raises(BadArguments, match="secret://DOOR_KEY") as caught:
            harness.call("run_command", **arguments)
        assert SECRET not in str(caught.value)


def test_a_reference_to_a_secret_stays_a_reference_in_the_call_and_its_digest(
    harness: Harness,
) -> None:
    call = harness.call("write_file", path="a", content="key=secret://DOOR_KEY")

    assert call.arguments["content"] == "key=secret://DOOR_KEY"
    assert SECRET not in call.model_dump_json()


def test_a_list_is_one_command_and_a_line_is_split_by_the_given_function(harness: Harness) -> None:
    assert harness.call("run_command", command=["git", "log; x"]).commands == (("git", "log; x"),)
    assert harness.call("run_command", command="make && make test").commands == (
        ("make",),
        ("make", "test"),
    )


def test_a_line_that_cannot_be_split_says_why(harness: Harness) -> None:
    call = harness.call("run_command", command="rm $HOME")

    assert (call.commands, call.undecidable) == ((), "it has a `$`")


@pytest.mark.parametrize("command", ["  ", ["git", "a\0b"], "a\0b"])
def test_an_empty_or_impossible_command_is_refused(harness: Harness, command: Json) -> None:
    with pytest.raises(BadArguments):
        harness.call("run_command", command=command)


def test_paths_are_resolved_through_links_and_dots(harness: Harness, tmp_path: Path) -> None:
    (harness.root / "real").mkdir()
    (harness.root / "link").symlink_to(harness.root / "real")
    (harness.root / "out").symlink_to(tmp_path)

    def real(given: str) -> str:
        (use,) = harness.call("write_file", path=given, content="").paths
        assert (use.argument, use.given, use.access) == ("path", given, Access.WRITE)
        return use.real

    assert real("link/new/file.txt") == str(harness.root / "real/new/file.txt")
    assert real("link/../a") == str(harness.root / "a")
    assert real("out/elsewhere") == str(tmp_path / "elsewhere")
    assert real("../beside") == str(tmp_path / "beside")
    assert real("/etc/hosts") == "/etc/hosts"
    assert real(".") == str(harness.root)
    assert real("~/x") == str(harness.root / "~/x")


def test_a_link_that_dangles_is_resolved_to_where_it_points(
    harness: Harness, tmp_path: Path
) -> None:
    (harness.root / "dangling").symlink_to(tmp_path / "not-there")

    assert real_path("dangling", harness.root) == str(tmp_path / "not-there")


def test_every_path_of_a_list_is_a_separate_use(harness: Harness) -> None:
    call = harness.call("git_diff", paths=["a", "b/c"])

    assert [use.real for use in call.paths] == [str(harness.root / "a"), str(harness.root / "b/c")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "is empty"),
        ("a\0b", "NUL"),
        ("a/" * 3000, "longer than 4096 bytes"),
        ("é" * 130, "longer than 255 bytes"),
        ("loop/x", "loop of symbolic links"),
    ],
)
def test_a_path_that_cannot_be_one_is_refused(harness: Harness, path: str, words: str) -> None:
    (harness.root / "loop").symlink_to("loop")

    with pytest.raises(BadArguments, match=words):
        harness.call("read_file", path=path)


def test_a_path_that_is_no_text_is_refused_even_where_the_schema_does_not_say_so(
    tmp_path: Path,
) -> None:
    schema = {"type": "object", "properties": {"file": {}}}
    harness = make_harness(tmp_path, [a_tool(input_schema=schema, paths=(path_argument("file"),))])

    with pytest.raises(BadArguments, match="7 is not a path"):
        harness.call("send", file=7)
    assert harness.call("send", file=None).paths == ()


def test_variables_that_steer_other_programs_cannot_be_set(harness: Harness) -> None:
    for name in ("PATH", "LD_PRELOAD", "GIT_DIR", "BASH_ENV", "PYTHONPATH", "not a name"):
        with pytest.raises(BadArguments, match="'env'"):
            harness.call("run_command", command="env", env={name: "x"})
    assert harness.call("run_command", command="env", env={"CI": "1"}).arguments["env"] == {
        "CI": "1"
    }
