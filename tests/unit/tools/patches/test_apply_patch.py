"""`apply_patch` through the toolbox: every path judged, all or nothing, finished after a kill, undone."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.core.decisions import Access, Call, CallOutcome, Effect, GateContext, Permit, Refusal
from podium.core.errors import BadArguments
from podium.core.model import Json
from podium.testing import ScriptedGate, decision
from podium.tools import file_changes
from podium.tools.scope import ToolScope
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness

PATCH = """*** Begin Patch
*** Update File: a.py
@@
 one
-two
+zwei
*** Update File: old.py
*** Move to: sub/new.py
@@
-x = 1
+x = 2
*** Add File: added.txt
+hello
*** Delete File: gone.txt
*** End Patch
"""
BEFORE = {"a.py": "one\ntwo\nthree\n", "old.py": "x = 1\ny = 2\n", "gone.txt": "bye\n"}
AFTER = {"a.py": "one\nzwei\nthree\n", "sub/new.py": "x = 2\ny = 2\n", "added.txt": "hello\n"}


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    made = make_harness(tmp_path)
    for path, text in BEFORE.items():
        (made.root / path).write_text(text)
    return made


def files(harness: Harness) -> dict[str, str]:
    found = (path for path in harness.root.rglob("*") if path.is_file())
    return {path.relative_to(harness.root).as_posix(): path.read_text() for path in found}


def update(path: str, *lines: str) -> str:
    return "\n".join(["*** Begin Patch", f"*** Update File: {path}", *lines, "*** End Patch"])


async def test_files_are_changed_moved_added_and_deleted_and_shown_with_their_diff(
    harness: Harness,
) -> None:
    os.chmod(harness.root / "old.py", 0o755)

    outcome = await harness.use("apply_patch", patch=PATCH)

    assert outcome.ok, outcome.error
    assert files(harness) == AFTER
    assert stat.S_IMODE((harness.root / "sub/new.py").stat().st_mode) == 0o755
    messages = [(file["path"], file["change"]) for file in outcome.result["files"]]
    assert messages == [
        ("a.py", "changed"),
        ("sub/new.py", "moved"),
        ("added.txt", "added"),
        ("gone.txt", "deleted"),
    ]
    assert "-two\n+zwei\n" in outcome.result["diff"]
    assert "--- a/old.py\n+++ b/sub/new.py\n" in outcome.result["diff"]
    assert "--- a/gone.txt\n+++ /dev/null\n" in outcome.result["diff"]
    (receipt,) = await harness.receipts()
    assert receipt.fields["count"] == 4


async def test_the_receipt_undoes_all_of_it(harness: Harness) -> None:
    os.chmod(harness.root / "gone.txt", 0o700)
    await harness.use("apply_patch", patch=PATCH)
    undo = (await harness.receipts())[-1].undo
    assert undo is not None

    outcome = await harness.use(undo["tool"], **undo["arguments"])

    assert outcome.ok, outcome.error
    assert files(harness) == BEFORE
    assert stat.S_IMODE((harness.root / "gone.txt").stat().st_mode) == 0o700
    assert (await harness.use(undo["tool"], 1, **undo["arguments"])).ok  # done before, it is done


async def test_undo_is_refused_whole_when_one_file_was_changed_since(harness: Harness) -> None:
    await harness.use("apply_patch", patch=PATCH)
    undo = (await harness.receipts())[-1].undo
    assert undo is not None
    (harness.root / "added.txt").write_text("mine now\n")

    outcome = await harness.use(undo["tool"], **undo["arguments"])

    assert "'added.txt' was changed after the patch" in outcome.error
    assert files(harness) == {**AFTER, "added.txt": "mine now\n"}


async def test_one_hunk_that_does_not_fit_keeps_every_file_as_it_is(harness: Harness) -> None:
    outcome = await harness.use("apply_patch", patch=PATCH.replace("-x = 1", "-x = 7"))

    assert not outcome.ok
    assert "hunk 1 of 'old.py'" in outcome.error
    assert "nothing was changed" in outcome.error
    assert outcome.result["refused"] == "missing"
    assert files(harness) == BEFORE


def judged_paths(harness: Harness, patch: str) -> list[tuple[str, Access]]:
    return [(use.given, use.access) for use in harness.call("apply_patch", patch=patch).paths]


async def test_every_path_of_the_patch_is_put_before_the_gate(harness: Harness) -> None:
    assert judged_paths(harness, PATCH) == [
        ("a.py", Access.WRITE),
        ("old.py", Access.WRITE),
        ("sub/new.py", Access.WRITE),
        ("added.txt", Access.WRITE),
        ("gone.txt", Access.DELETE),
    ]


async def test_one_forbidden_path_among_others_stops_the_whole_patch(tmp_path: Path) -> None:
    def judge(call: Call, context: GateContext) -> object:
        closed = any(use.real.endswith("/gone.txt") for use in call.paths)
        return decision(Effect.DENY if closed else Effect.ALLOW)

    harness = make_harness(tmp_path, gate=ScriptedGate(judge))  # type: ignore[arg-type]
    for path, text in BEFORE.items():
        (harness.root / path).write_text(text)

    answer = await harness.toolbox.perform(harness.call("apply_patch", patch=PATCH))

    assert isinstance(answer, Refusal)
    assert files(harness) == BEFORE


@pytest.mark.parametrize(
    "path",
    [".git/hooks/pre-commit", "sub/.GIT/config", ".podium/state", "../out", "link/x", "to_a.py"],
)
async def test_git_podium_links_and_everything_outside_are_refused(
    harness: Harness, tmp_path: Path, path: str
) -> None:
    (harness.root / "link").symlink_to(tmp_path)
    (harness.root / "to_a.py").symlink_to("a.py")

    added = f"*** Begin Patch\n*** Update File: a.py\n@@\n-two\n+2\n*** Add File: {path}\n+x\n*** End Patch"
    outcome = await harness.use("apply_patch", patch=added)

    assert not outcome.ok
    assert (harness.root / "a.py").read_text() == BEFORE["a.py"]
    assert sorted(os.listdir(tmp_path)) == ["workspace"]


async def test_two_spellings_of_one_file_are_refused(harness: Harness) -> None:
    two = "*** Update File: {}\n@@\n-two\n+2\n"
    patch = f"*** Begin Patch\n{two.format('a.py')}{two.format('./a.py')}*** End Patch"

    outcome = await harness.use("apply_patch", patch=patch)

    assert "named by several paths" in outcome.error
    assert files(harness) == BEFORE


async def test_a_patch_that_cannot_be_read_is_no_call_at_all(harness: Harness) -> None:
    with pytest.raises(BadArguments, match="the patch contains no changes"):
        harness.call("apply_patch", patch="hello")


async def test_files_that_are_there_are_neither_added_nor_moved_onto(harness: Harness) -> None:
    added = await harness.use(
        "apply_patch", patch=PATCH.replace("Add File: added.txt", "Add File: old2")
    )
    assert added.ok
    (harness.root / "b.py").write_text("mine\n")

    again = await harness.use("apply_patch", patch="--- /dev/null\n+++ b/b.py\n@@ -0,0 +1 @@\n+x\n")
    moved = await harness.use(
        "apply_patch", patch="diff --git a/a.py b/b.py\nrename from a.py\nrename to b.py\n"
    )

    assert "the patch adds 'b.py', which already exists" in again.error
    assert "'b.py' already exists" in moved.error
    assert (harness.root / "b.py").read_text() == "mine\n"


async def test_a_diff_that_deletes_other_content_than_there_is_is_refused(harness: Harness) -> None:
    diff = "--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-{}\n"

    other = await harness.use("apply_patch", patch=diff.format("hi"))
    same = await harness.use("apply_patch", patch=diff.format("bye"))

    assert "is not what the patch deletes" in other.error
    assert same.ok
    assert not (harness.root / "gone.txt").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfone\r\ntwo\r\n", b"\xef\xbb\xbfone\r\n2\r\n"),
        ("one\ntwo\nhé\n".encode("latin-1"), "one\n2\nhé\n".encode("latin-1")),
        ("\ufeffone\ntwo".encode("utf-16-le"), "\ufeffone\n2".encode("utf-16-le")),
        (b"one\ntwo", b"one\n2"),
        (b"one\r\ntwo\nthree\r\n", b"one\r\n2\nthree\r\n"),
        (b"    one  \n\ttwo\n", None),
        (b"one\n  two\n", None),
    ],
)
async def test_encoding_marks_and_line_ends_stay_as_they_are(
    harness: Harness, before: bytes, after: bytes | None
) -> None:
    (harness.root / "f").write_bytes(before)

    outcome = await harness.use("apply_patch", patch=update("f", "@@", " one", "-two", "+2"))

    assert outcome.ok is (after is not None), outcome.error
    assert (harness.root / "f").read_bytes() == (before if after is None else after)


async def test_lines_that_drifted_are_found_as_edit_file_finds_them(harness: Harness) -> None:
    (harness.root / "f").write_text(
        "class A:\n    def f(self):\n        total = 1\n        return total\n"
    )

    lines = [" def f(self):", "-    total = 1", "+    total = 2", "     return total"]
    outcome = await harness.use("apply_patch", patch=update("f", "@@", *lines))

    assert outcome.ok, outcome.error
    assert "        total = 2\n        return total\n" in (harness.root / "f").read_text()


async def test_binary_files_and_hard_links_are_refused(harness: Harness) -> None:
    (harness.root / "b").write_bytes(b"two\n\0\n")
    (harness.root / "h").write_text("two\n")
    os.link(harness.root / "h", harness.root / "h2")

    binary = await harness.use("apply_patch", patch=update("b", "@@", "-two", "+2"))
    deleted = await harness.use(
        "apply_patch", patch="*** Begin Patch\n*** Delete File: b\n*** End Patch"
    )
    linked = await harness.use("apply_patch", patch=update("h", "@@", "-two", "+2"))

    assert "binary" in binary.error
    assert "binary" in deleted.error
    assert "hard link" in linked.error
    assert (harness.root / "b").exists()


async def test_secrets_are_neither_written_nor_kept(harness: Harness, tmp_path: Path) -> None:
    (harness.root / "s").write_text(f"two\nkey={SECRET}\n")

    written = await harness.use(
        "apply_patch", patch=update("a.py", "@@", "-two", "+secret://DOOR_KEY")
    )
    beside = await harness.use("apply_patch", patch=update("s", "@@", "-two", "+2"))

    assert "secrets cannot be written" in written.error
    assert beside.ok
    assert beside.result["can_undo"] is False
    assert beside.result["undo"] is None
    assert SECRET not in str(beside)
    kept = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert not [item for item in kept if SECRET.encode() in item.read_bytes()]


def failing_after(number: int, error: BaseException) -> Callable[..., None]:
    """Makes that many changes, then none."""
    real, left = file_changes._put, [number]

    def put(scope: ToolScope, path: str, wanted: file_changes.FileState) -> None:
        if left[0] == 0:
            left[0] = -1
            raise error
        left[0] -= 1
        real(scope, path, wanted)

    return put


@pytest.mark.parametrize("number", range(5))
async def test_a_failure_between_two_files_takes_back_what_was_made(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    # A full disk cannot be had for the asking, so the act itself is replaced.
    monkeypatch.setattr(file_changes, "_put", failing_after(number, OSError(28, "No space left")))

    outcome = await harness.use("apply_patch", patch=PATCH)

    assert "No space left" in outcome.error
    assert files(harness) == BEFORE
    monkeypatch.undo()
    assert (await harness.use("apply_patch", 1, patch=PATCH)).ok
    assert files(harness) == AFTER


class Killed(BaseException):
    """Podium died here."""


async def killed_after(harness: Harness, monkeypatch: pytest.MonkeyPatch, number: int) -> Call:
    """A permitted call that died behind so many of its five changes, with nothing taken back."""
    call = harness.call("apply_patch", patch=PATCH)
    assert isinstance(await harness.door.request(call), Permit)
    with monkeypatch.context() as patched:
        patched.setattr(file_changes, "_put", failing_after(number, Killed()))
        patched.setattr(file_changes, "_take_back", lambda *given: None)
        with pytest.raises(Killed):
            await harness.toolbox._act(harness.registry.tool("apply_patch"), call)
    return call


@pytest.mark.parametrize("number", range(5))
async def test_a_kill_between_two_files_is_finished_when_the_call_is_made_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    call = await killed_after(harness, monkeypatch, number)

    outcome = await harness.toolbox.perform(call)

    assert isinstance(outcome, CallOutcome)
    assert outcome.ok, outcome.error
    assert files(harness) == AFTER
    undo = (await harness.receipts())[-1].undo
    assert undo is not None
    assert (await harness.use(undo["tool"], **undo["arguments"])).ok
    assert files(harness) == BEFORE


async def test_after_a_kill_a_file_of_somebody_else_is_left_alone_and_reported(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = await killed_after(harness, monkeypatch, 1)
    (harness.root / "old.py").write_text("somebody else's\n")

    outcome = await harness.toolbox.perform(call)

    assert isinstance(outcome, CallOutcome)
    assert outcome.unknown
    assert "'old.py' was changed by someone else" in outcome.error
    assert (harness.root / "old.py").read_text() == "somebody else's\n"


async def test_concurrent_changes_of_one_file_lose_nothing(harness: Harness) -> None:
    (harness.root / "f").write_text("".join(f"line {number};\n" for number in range(12)))

    def numbered_call(number: int) -> tuple[str, dict[str, Json]]:
        find, replace = f"line {number};", f"done {number};"
        if number % 2:
            return "edit_file", {"path": "f", "edits": [{"find": find, "replace": replace}]}
        return "apply_patch", {"patch": update("f", "@@", f"-{find}", f"+{replace}")}

    intent = [numbered_call(number) for number in range(12)]
    outcomes = await asyncio.gather(*(harness.use(tool, 0, **given) for tool, given in intent))

    assert all(outcome.ok for outcome in outcomes), [item.error for item in outcomes]
    assert "line" not in (harness.root / "f").read_text()


async def test_a_huge_patch_keeps_its_undo_whole_in_the_result(harness: Harness) -> None:
    sections = [
        f"*** Add File: folder/file-{number:03}.txt\n+{'x' * 900}\n" for number in range(35)
    ]

    outcome = await harness.use(
        "apply_patch", patch=f"*** Begin Patch\n{''.join(sections)}*** End Patch"
    )

    assert outcome.ok, outcome.error
    assert len(outcome.result["undo"]["files"]) == 35
    assert len(outcome.result["files"]) == 35
    empty = hashlib.sha256(f"{'x' * 900}\n".encode()).hexdigest()
    assert outcome.result["undo"]["files"][34]["written_sha256"] == empty
