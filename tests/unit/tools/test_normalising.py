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
from tests.unit.tools.rig import SECRET, Rig, a_tool, make_rig, path_argument


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return make_rig(tmp_path)


def test_defaults_are_filled_in_and_the_given_arguments_are_left_alone(rig: Rig) -> None:
    given = {"path": "a.txt"}

    call = rig.toolbox.normalise("read_file", given, run_id="r", step_key="s#0", index=3)

    assert call.arguments == {"path": "a.txt", "offset": 1, "limit": 250}
    assert given == {"path": "a.txt"}
    assert (call.run_id, call.step_key, call.index) == ("r", "s#0", 3)


def test_defaults_inside_a_given_object_are_filled_in_too(tmp_path: Path) -> None:
    inner = {"type": "object", "properties": {"size": {"default": 4}}}
    schema = {"type": "object", "properties": {"box": inner}}
    rig = make_rig(tmp_path, [a_tool(input_schema=schema)])

    assert rig.call("send", box={}).arguments == {"box": {"size": 4}}
    assert rig.call("send").arguments == {}


def test_who_asks_goes_into_the_call(rig: Rig) -> None:
    call = rig.toolbox.normalise(
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


def test_a_tool_that_is_not_there_is_refused_with_the_names_that_are(rig: Rig) -> None:
    with pytest.raises(
        UnknownTool, match=r"no tool 'rm'; tools: apply_patch, ask_human, edit_file"
    ):
        rig.call("rm")


def test_every_problem_with_the_arguments_is_named_at_once(rig: Rig) -> None:
    with pytest.raises(BadArguments) as caught:
        rig.call("read_file", offset="one", limit=0, colour="red")

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


def test_the_shape_of_every_tool_comes_with_an_example_that_fits(rig: Rig) -> None:
    for spec in rig.toolbox.specs():
        shape = shape_of(spec, rig.registry.validator(spec.name).is_valid)
        assert len(shape) < 800
        assert "change" not in shape
        assert "sha256" not in shape or spec.offered == "by_name"
        if spec.offered != "by_name":
            _, _, example = shape.partition(", for example ")
            assert rig.call(spec.name, **json.loads(example)).tool == spec.name


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
    rig: Rig, arguments: Any, words: str
) -> None:
    with pytest.raises(BadArguments, match=words):
        rig.toolbox.normalise("read_file", arguments, run_id="r", step_key="s", index=0)


def test_arguments_nested_without_end_are_refused(rig: Rig) -> None:
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(BadArguments, match="not plain JSON"):
        rig.call("finish", summary="x", payload={"deep": deep})


def test_a_secret_in_plain_text_is_refused_wherever_it_stands_and_never_repeated(rig: Rig) -> None:
    for arguments in (
        {"command": ["curl", "-H", f"x: {SECRET}"]},
        {"command": "env", "env": {"TOKEN": SECRET}},
        {"command": SECRET, "wrong": "argument"},
    ):
        with pytest.raises(BadArguments, match="secret://DOOR_KEY") as caught:
            rig.call("run_command", **arguments)
        assert SECRET not in str(caught.value)


def test_a_reference_to_a_secret_stays_a_reference_in_the_call_and_its_digest(rig: Rig) -> None:
    call = rig.call("write_file", path="a", content="key=secret://DOOR_KEY")

    assert call.arguments["content"] == "key=secret://DOOR_KEY"
    assert SECRET not in call.model_dump_json()


def test_a_list_is_one_command_and_a_line_is_split_by_the_given_function(rig: Rig) -> None:
    assert rig.call("run_command", command=["git", "log; x"]).commands == (("git", "log; x"),)
    assert rig.call("run_command", command="make && make test").commands == (
        ("make",),
        ("make", "test"),
    )


def test_a_line_that_cannot_be_split_says_why(rig: Rig) -> None:
    call = rig.call("run_command", command="rm $HOME")

    assert (call.commands, call.undecidable) == ((), "it has a `$`")


@pytest.mark.parametrize("command", ["  ", ["git", "a\0b"], "a\0b"])
def test_an_empty_or_impossible_command_is_refused(rig: Rig, command: Json) -> None:
    with pytest.raises(BadArguments):
        rig.call("run_command", command=command)


def test_paths_are_resolved_through_links_and_dots(rig: Rig, tmp_path: Path) -> None:
    (rig.root / "real").mkdir()
    (rig.root / "link").symlink_to(rig.root / "real")
    (rig.root / "out").symlink_to(tmp_path)

    def real(given: str) -> str:
        (use,) = rig.call("write_file", path=given, content="").paths
        assert (use.argument, use.given, use.access) == ("path", given, Access.WRITE)
        return use.real

    assert real("link/new/file.txt") == str(rig.root / "real/new/file.txt")
    assert real("link/../a") == str(rig.root / "a")
    assert real("out/elsewhere") == str(tmp_path / "elsewhere")
    assert real("../beside") == str(tmp_path / "beside")
    assert real("/etc/hosts") == "/etc/hosts"
    assert real(".") == str(rig.root)
    assert real("~/x") == str(rig.root / "~/x")


def test_a_link_that_dangles_is_resolved_to_where_it_points(rig: Rig, tmp_path: Path) -> None:
    (rig.root / "dangling").symlink_to(tmp_path / "not-there")

    assert real_path("dangling", rig.root) == str(tmp_path / "not-there")


def test_each_path_of_a_list_is_a_use_of_its_own(rig: Rig) -> None:
    call = rig.call("git_diff", paths=["a", "b/c"])

    assert [use.real for use in call.paths] == [str(rig.root / "a"), str(rig.root / "b/c")]


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
def test_a_path_that_cannot_be_one_is_refused(rig: Rig, path: str, words: str) -> None:
    (rig.root / "loop").symlink_to("loop")

    with pytest.raises(BadArguments, match=words):
        rig.call("read_file", path=path)


def test_a_path_that_is_no_text_is_refused_even_where_the_schema_does_not_say_so(
    tmp_path: Path,
) -> None:
    schema = {"type": "object", "properties": {"file": {}}}
    rig = make_rig(tmp_path, [a_tool(input_schema=schema, paths=(path_argument("file"),))])

    with pytest.raises(BadArguments, match="7 is not a path"):
        rig.call("send", file=7)
    assert rig.call("send", file=None).paths == ()


def test_variables_that_steer_other_programs_cannot_be_set(rig: Rig) -> None:
    for name in ("PATH", "LD_PRELOAD", "GIT_DIR", "BASH_ENV", "PYTHONPATH", "not a name"):
        with pytest.raises(BadArguments, match="'env'"):
            rig.call("run_command", command="env", env={name: "x"})
    assert rig.call("run_command", command="env", env={"CI": "1"}).arguments["env"] == {"CI": "1"}
