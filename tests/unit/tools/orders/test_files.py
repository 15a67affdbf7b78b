"""Replacing and adding text: once, however often it is tried."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from podium.core.model import Json
from podium.platform import atomic_write
from tests.unit.tools.orders.order_harness import act_and_crash, order_harness, perform, undo_last
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return order_harness(tmp_path)


async def test_text_is_replaced_in_place_and_receipted(harness: Harness) -> None:
    (harness.root / "a.txt").write_text("one two three\n")

    outcome = await harness.use("replace_in_file", path="a.txt", find="two", replace="2")

    assert outcome.ok, outcome.error
    assert (harness.root / "a.txt").read_text() == "one 2 three\n"
    (receipt,) = await harness.receipts()
    assert receipt.fields == {
        "path": "a.txt",
        "sha256": sha256("one 2 three\n"),
        "bytes": 12,
        "created": False,
        "previous_sha256": sha256("one two three\n"),
        "can_undo": True,
    }


@pytest.mark.parametrize("content", ["aXbXc", "nothing", "XX"])
async def test_text_that_occurs_never_or_more_than_once_is_not_replaced(
    harness: Harness, content: str
) -> None:
    (harness.root / "a").write_text(content)

    outcome = await harness.use("replace_in_file", path="a", find="X", replace="Y")

    assert not outcome.ok
    assert (harness.root / "a").read_text() == content


async def test_occurrences_that_overlap_count_too(harness: Harness) -> None:
    (harness.root / "a").write_text("aaa")

    outcome = await harness.use("replace_in_file", path="a", find="aa", replace="b")

    assert "more than once" in outcome.error


async def test_text_is_added_and_a_file_that_is_missing_is_made(harness: Harness) -> None:
    first = await harness.use("append_to_file", path="logs/a.log", content="one\n")
    second = await harness.use("append_to_file", 1, path="logs/a.log", content="one\n")

    assert (first.result["created"], second.result["created"]) == (True, False)
    assert (harness.root / "logs/a.log").read_text() == "one\none\n"


CHANGES: list[tuple[str, dict[str, Json], str]] = [
    ("append_to_file", {"path": "a", "content": "+"}, "before+"),
    ("replace_in_file", {"path": "a", "find": "for", "replace": "fort"}, "beforte"),
]


@pytest.mark.parametrize(("tool", "arguments", "after"), CHANGES)
async def test_a_change_whose_record_was_lost_is_not_made_twice(
    harness: Harness, tool: str, arguments: dict[str, Json], after: str
) -> None:
    (harness.root / "a").write_text("before")
    call = harness.call(tool, **arguments)

    first = await act_and_crash(harness, call)
    second = await perform(harness, call)

    assert first.ok
    assert second.result == first.result
    assert (harness.root / "a").read_text() == after


async def test_a_change_that_was_fixed_but_not_made_is_made_at_the_next_try(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (harness.root / "a").write_text("before")
    call = harness.call("append_to_file", path="a", content="+")
    with monkeypatch.context() as patched:
        # The moment of the crash: patched because a real one cannot be aimed between two lines.
        patched.setattr("podium.jobs.sense.orders.file_edits.write_below", _killed)
        with pytest.raises(Killed):
            await act_and_crash(harness, call)

    outcome = await perform(harness, call)

    assert outcome.ok, outcome.error
    assert (harness.root / "a").read_text() == "before+"


class Killed(BaseException):
    """Stand-in for a kill of the process: the process does not live to see it."""


def _killed(*args: object, **kwargs: object) -> None:
    raise Killed


async def test_a_file_that_somebody_changed_in_between_is_left_alone(harness: Harness) -> None:
    (harness.root / "a").write_text("before")
    call = harness.call("append_to_file", path="a", content="+")
    await act_and_crash(harness, call)
    (harness.root / "a").write_text("mine")

    outcome = await perform(harness, call)

    assert "changed by somebody else" in outcome.error
    assert (harness.root / "a").read_text() == "mine"


async def test_a_try_that_failed_and_did_nothing_does_not_bind_the_next(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (harness.root / "a").write_text("before")
    call = harness.call("append_to_file", path="a", content="+")

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        # A full disk: patched because none can be had.
        patched.setattr(atomic_write, "write_draft", full)
        with pytest.raises(OSError, match="No space"):
            await act_and_crash(harness, call)
    (harness.root / "a").write_text("another")
    outcome = await perform(harness, call)

    assert outcome.ok, outcome.error
    assert (harness.root / "a").read_text() == "another+"


@pytest.mark.parametrize(("tool", "arguments", "after"), CHANGES)
async def test_a_change_is_undone(
    harness: Harness, tool: str, arguments: dict[str, Json], after: str
) -> None:
    (harness.root / "a").write_text("before")
    assert (await harness.use(tool, **arguments)).ok

    outcome = await undo_last(harness)

    assert outcome.ok, outcome.error
    assert (harness.root / "a").read_text() == "before"


@pytest.mark.parametrize(
    "path", ["link", "folder", "pipe", "hard", "linked/a", ".git/config", ".podium/x", ".", "a\nb"]
)
async def test_what_is_no_plain_file_of_its_own_is_refused_with_words(
    harness: Harness, path: str
) -> None:
    root = harness.root
    (root / "plain").write_text("mine")
    (root / "link").symlink_to("plain")
    (root / "hard").hardlink_to(root / "plain")
    (root / "folder").mkdir()
    (root / "folder/a").write_text("mine")
    (root / "linked").symlink_to("folder")
    os.mkfifo(root / "pipe")

    outcome = await harness.use("append_to_file", path=path, content="x")

    assert not outcome.ok
    assert repr(path)[1:-1] in outcome.error
    assert (root / "plain").read_text() == (root / "folder/a").read_text() == "mine"


async def test_binary_and_huge_files_are_left_alone(harness: Harness) -> None:
    (harness.root / "binary").write_bytes(b"a\0b")
    (harness.root / "latin").write_bytes("é".encode("latin-1"))
    with (harness.root / "huge").open("wb") as file:
        file.truncate(20_000_001)

    messages = [
        (await harness.use("append_to_file", path=name, content="x")).error
        for name in ("binary", "latin", "huge")
    ]

    assert ["binary" in messages[0], "UTF-8" in messages[1], "larger than" in messages[2]] == [
        True
    ] * 3


async def test_references_to_secrets_are_not_written(harness: Harness) -> None:
    outcome = await harness.use("append_to_file", path="a", content="KEY=secret://DOOR_KEY")

    assert "'secret://DOOR_KEY'" in outcome.error
    assert not (harness.root / "a").exists()


async def test_a_content_with_a_secret_is_not_kept(harness: Harness, tmp_path: Path) -> None:
    (harness.root / "a").write_text(f"key={SECRET}\n")

    outcome = await harness.use("append_to_file", path="a", content="more\n")

    assert outcome.result["can_undo"] is False
    assert SECRET not in "".join(
        file.read_text() for file in (tmp_path / "kept").rglob("*") if file.is_file()
    )


async def test_without_a_place_for_intents_nothing_is_done(tmp_path: Path) -> None:
    from podium.jobs.sense.orders.order_tools import order_tools
    from podium.tools import builtin_tools

    harness = make_harness(tmp_path, [*builtin_tools(), *order_tools()], keep=False)

    outcome = await harness.use("append_to_file", path="a", content="x")

    assert "undo_folder" in outcome.error
    assert not (harness.root / "a").exists()


async def test_an_intent_that_cannot_be_read_stops_the_call(
    harness: Harness, tmp_path: Path
) -> None:
    call = harness.call("append_to_file", path="a", content="x")
    await act_and_crash(harness, call)
    (intent,) = (tmp_path / "kept/intents").iterdir()
    intent.write_text("{")

    outcome = await perform(harness, call)

    assert "is not valid" in outcome.error
    assert (harness.root / "a").read_text() == "x"


async def test_intents_that_nobody_needs_any_more_are_forgotten_in_time(
    harness: Harness, tmp_path: Path
) -> None:
    await harness.use("append_to_file", path="a", content="x")
    await harness.use("append_to_file", 1, path="a", content="x")
    old, young = sorted((tmp_path / "kept/intents").iterdir())
    os.utime(old, (0, 0))
    # One call in 256 looks, by its key.
    calls = (
        harness.call("append_to_file", index, path="b", content="x") for index in range(10_000)
    )
    call = next(call for call in calls if sha256(call.key).startswith("00"))

    await perform(harness, call)

    assert (old.exists(), young.exists()) == (False, True)
