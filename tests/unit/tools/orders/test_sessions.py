"""Keys of a session's state."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from podium.core.errors import BadArguments
from podium.core.model import Json
from podium.jobs.sense.orders.order_tools import order_tools
from podium.tools import builtin_tools
from tests.unit.tools.orders.order_harness import act_and_crash, order_harness, perform, undo_last
from tests.unit.tools.toolbox_harness import Harness, make_harness

FOLDER = "state/clc_sessions"
SESSION = """\
# The demo session.
session_id: SESSION-DEMO-001
status: "running"   # as of today
steps:
  - one
  - two

# How far it is.
progress: 3
note: |
  kept
  # no comment
"""


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = order_harness(tmp_path)
    (harness.root / FOLDER).mkdir(parents=True)
    return harness


def session(harness: Harness) -> Path:
    return harness.root / FOLDER / "S1.yaml"


async def set_values(harness: Harness, **values: Json) -> str:
    outcome = await harness.use("set_session", session="S1", values=values)
    assert outcome.ok, outcome.error
    return session(harness).read_text()


async def test_keys_are_set_and_all_other_lines_stay_as_they_are(harness: Harness) -> None:
    session(harness).write_text(SESSION)

    text = await set_values(harness, status="done", steps=["three"], more={"a": 1})

    assert text == (
        SESSION.replace('status: "running"   # as of today', "status: done").replace(
            "  - one\n  - two\n", "- three\n"
        )
        + "more:\n  a: 1\n"
    )


async def test_a_block_of_text_is_replaced_whole(harness: Harness) -> None:
    session(harness).write_text(SESSION)

    text = await set_values(harness, note="short", progress=None)

    assert text.endswith("# How far it is.\nprogress: null\nnote: short\n")


@pytest.mark.parametrize(
    "before", ["", "# nothing yet\n", "{a: 1, b: 2}\n", "---\na: 1\n", "a: 1", "  a: 1\n  b: 2\n"]
)
async def test_whatever_the_mapping_looks_like_it_says_the_right_thing_after(
    harness: Harness, before: str
) -> None:
    session(harness).write_text(before)

    text = await set_values(harness, a="no", c=["x: y", "# z"])

    assert yaml.safe_load(text) == {
        **(yaml.safe_load(before) or {}),
        "a": "no",
        "c": ["x: y", "# z"],
    }


async def test_a_session_that_is_missing_is_made_and_undo_removes_it(harness: Harness) -> None:
    assert await set_values(harness, status="new") == "status: new\n"

    assert (await undo_last(harness)).ok
    assert not session(harness).exists()


async def test_a_change_whose_record_was_lost_is_known_to_be_done(harness: Harness) -> None:
    session(harness).write_text(SESSION)
    call = harness.call("set_session", session="S1", values={"progress": 4})

    first = await act_and_crash(harness, call)
    second = await perform(harness, call)

    assert first.ok
    assert second.result == first.result


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ("- a\n- b\n", "not a mapping"),
        ("just text\n", "not a mapping"),
        ("a: 1\na: 2\n", "twice"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("a: 1\n---\nb: 2\n", "several"),
        ("a: [1\n", "not valid YAML"),
        ("a: " + "[" * 60 + "]" * 60 + "\n", "nested deeper"),
        ("? [a]\n: 1\n", "not plain text"),
        ("a: !!python/object/apply:os.system [id]\n", "not valid YAML"),
        ("a: 2024-99-99\n", "cannot be set"),
    ],
)
async def test_what_is_no_plain_mapping_is_left_alone(
    harness: Harness, before: str, word: str
) -> None:
    session(harness).write_text(before)

    outcome = await harness.use("set_session", session="S1", values={"b": 3})

    assert word in outcome.error
    assert session(harness).read_text() == before


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-rf", "é", "a" * 101, "CLC/../x"])
def test_a_name_that_means_something_in_a_path_is_refused(harness: Harness, name: str) -> None:
    with pytest.raises(BadArguments):
        harness.call("set_session", session=name, values={"a": 1})


async def test_a_name_with_a_newline_at_its_end_is_refused(harness: Harness) -> None:
    outcome = await harness.use("set_session", session="a\n", values={"a": 1})

    assert "not a session name" in outcome.error


async def test_links_in_place_of_folder_or_file_lead_nowhere(
    harness: Harness, tmp_path: Path
) -> None:
    outside = tmp_path / "S1.yaml"
    outside.write_text("mine: 1\n")
    session(harness).symlink_to(outside)

    by_link = await harness.use("set_session", session="S1", values={"a": 1})
    session(harness).unlink()
    session(harness).hardlink_to(outside)
    by_hard_link = await harness.use("set_session", 1, session="S1", values={"a": 1})
    session(harness).unlink()
    session(harness).parent.rmdir()
    session(harness).parent.symlink_to(tmp_path)
    by_folder = await harness.use("set_session", 2, session="S1", values={"a": 1})

    assert "symbolic link" in by_link.error
    assert "hard link" in by_hard_link.error
    assert "outside the workspace" in by_folder.error
    assert outside.read_text() == "mine: 1\n"


async def test_the_gate_judges_the_folder_and_nobody_chooses_it(harness: Harness) -> None:
    call = harness.call("set_session", session="S1", values={"a": 1})

    assert [use.real for use in call.paths] == [str(harness.root / FOLDER)]
    with pytest.raises(BadArguments):
        harness.call("set_session", session="S1", values={"a": 1}, folder="CLC")


async def test_a_session_in_a_place_that_is_closed_is_left_alone(tmp_path: Path) -> None:
    harness = make_harness(tmp_path, [*builtin_tools(), *order_tools("keys/.env")])
    # The rig's gate closes `.env`, and all that a walk would leave out counts as closed.
    harness.toolbox._passed_over = lambda path, root: "/.env/" in path

    outcome = await harness.use("set_session", session="S1", values={"a": 1})

    assert "the policy denies access" in outcome.error
    assert not (harness.root / "keys").exists()
