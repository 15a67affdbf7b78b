"""`edit_file` through the toolbox: all or nothing, once, undone by its receipt."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from podium.core.decisions import CallOutcome
from podium.core.model import Json
from podium.tools.scope import ToolScope
from tests.edit_cases import edit_cases
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness, parts_of_the_secret_in

TEXT = "alpha = 1\nbeta = 2\ngamma = 3\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    made = make_harness(tmp_path)
    (made.root / "a.py").write_text(TEXT)
    return made


async def edit(
    harness: Harness, *edits: dict[str, Json], path: str = "a.py", **more: Any
) -> CallOutcome:
    return await harness.use("edit_file", path=path, edits=list(edits), **more)


async def test_edit_is_made_and_reported_with_its_diff_and_receipt(harness: Harness) -> None:
    outcome = await edit(harness, {"find": "beta = 2", "replace": "beta = 5"})

    after = TEXT.replace("beta = 2", "beta = 5")
    assert outcome.ok
    assert (harness.root / "a.py").read_text() == after
    assert outcome.result["diff"].splitlines()[2:] == [
        *("@@ -1,3 +1,3 @@", " alpha = 1", "-beta = 2", "+beta = 5", " gamma = 3"),
    ]
    (receipt,) = await harness.receipts()
    assert receipt.fields == {
        "path": "a.py",
        "sha256": sha256(after.encode()),
        "bytes": len(after),
        "previous_sha256": sha256(TEXT.encode()),
        "can_undo": True,
        "edits": [{"line": 2, "found_by": "exact"}],
    }


async def test_undo_brings_the_file_back_byte_by_byte(harness: Harness) -> None:
    await edit(harness, {"find": "beta = 2", "replace": "beta = 5"})
    (receipt,) = await harness.receipts()
    assert receipt.undo is not None

    assert (await harness.use(receipt.undo["tool"], **receipt.undo["arguments"])).ok
    assert (harness.root / "a.py").read_text() == TEXT


async def test_of_several_edits_all_are_made_or_none(harness: Harness) -> None:
    good = {"find": "alpha = 1", "replace": "alpha = 7"}
    refused = await edit(harness, good, {"find": "nowhere", "replace": "x"})
    assert not refused.ok
    assert "edit 2 of 'a.py' was refused, and nothing was changed" in refused.error
    assert refused.result["refused"] == "missing"
    assert (harness.root / "a.py").read_text() == TEXT

    assert (await edit(harness, good, {"find": "gamma = 3", "replace": "gamma = 9"})).ok
    assert (harness.root / "a.py").read_text() == "alpha = 7\nbeta = 2\ngamma = 9\n"


async def test_an_ambiguous_edit_is_refused_with_line_numbers(harness: Harness) -> None:
    (harness.root / "a.py").write_text("same\nother\nsame\n")
    outcome = await edit(harness, {"find": "same", "replace": "x"})
    assert not outcome.ok
    assert "line 1: same" in outcome.error
    assert "line 3: same" in outcome.error
    assert (harness.root / "a.py").read_text() == "same\nother\nsame\n"


async def test_mode_encoding_mark_and_line_ends_are_kept(harness: Harness) -> None:
    file = harness.root / "a.py"
    content = "\ufeffüber = 1\r\nbeta = 2\r\nlast".encode("utf-16-le")
    file.write_bytes(content)
    file.chmod(0o751)
    assert (await edit(harness, {"find": "beta = 2\nlast", "replace": "beta = 2\nmore\nlast"})).ok
    assert file.read_bytes().decode("utf-16-le") == "\ufeffüber = 1\r\nbeta = 2\r\nmore\r\nlast"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


@pytest.mark.parametrize("content", [b"\x00\x01find", b"find \xff\x00", b"find \x81\x8d"])
async def test_what_is_no_text_is_refused(harness: Harness, content: bytes) -> None:
    (harness.root / "a.py").write_bytes(content)
    outcome = await edit(harness, {"find": "find", "replace": "x"})
    assert not outcome.ok
    assert "only text files can be edited" in outcome.error
    assert (harness.root / "a.py").read_bytes() == content


async def test_a_file_that_is_not_the_one_that_was_read_is_left_alone(harness: Harness) -> None:
    payload: dict[str, Json] = {"find": "beta = 2", "replace": "x"}
    outcome = await edit(harness, payload, expect_sha256="0" * 64)
    assert not outcome.ok
    assert sha256(TEXT.encode()) in outcome.error
    assert (await edit(harness, payload, expect_sha256=sha256(TEXT.encode()))).ok


async def act(harness: Harness, tmp_path: Path, **arguments: Any) -> Any:
    """The handler itself, as after a crash between the act and its record."""
    call = harness.call("edit_file", **arguments)
    scope = ToolScope(
        call=call,
        root=harness.root,
        launcher=Any,  # type: ignore[arg-type]  # it starts nothing
        confinements=Any,  # type: ignore[arg-type]
        clock=harness.clock,
        timeout_seconds=5,
        resolve_secret=str,
        undo_folder=tmp_path / "kept",
    )
    return await harness.registry.tool("edit_file").handler(call.arguments, scope)


async def test_edit_done_before_is_reported_the_same_and_not_repeated(
    harness: Harness, tmp_path: Path
) -> None:
    # The text still stands there afterwards, so a second time would change it again.
    edits = [{"find": "beta = 2\n", "replace": "beta = 2\nbeta = beta * 2\n"}]
    first = await act(harness, tmp_path, path="a.py", edits=edits)
    again = await act(harness, tmp_path, path="a.py", edits=edits)
    assert first == again
    assert (harness.root / "a.py").read_text().count("beta * 2") == 1


async def test_what_somebody_else_changed_after_a_crash_is_not_touched(
    harness: Harness, tmp_path: Path
) -> None:
    edits = [{"find": "beta = 2\n", "replace": "beta = 3\n"}]
    await act(harness, tmp_path, path="a.py", edits=edits)
    (harness.root / "a.py").write_text("mine\n")
    with pytest.raises(Exception, match="changed by someone else in the meantime"):
        await act(harness, tmp_path, path="a.py", edits=edits)
    assert (harness.root / "a.py").read_text() == "mine\n"


async def test_without_edits_nothing_is_performed_and_the_agent_is_notified(
    harness: Harness,
) -> None:
    outcome = await harness.use("edit_file", path="a.py", change="-a\n+b")
    assert not outcome.ok
    assert "`edits` is missing" in outcome.error
    assert (harness.root / "a.py").read_text() == TEXT


async def test_edits_beside_a_description_of_others_are_not_performed(harness: Harness) -> None:
    outcome = await edit(harness, {"find": "beta = 2", "replace": "x"}, change="harmless")
    assert "omit `change`" in outcome.error
    assert (harness.root / "a.py").read_text() == TEXT


async def test_a_wide_encoding_does_not_hide_a_secret_from_what_is_kept(
    harness: Harness, tmp_path: Path
) -> None:
    (harness.root / "a.py").write_bytes(f"\ufeffkey = {SECRET}\nbeta = 2\n".encode("utf-16-le"))
    outcome = await edit(harness, {"find": "beta = 2", "replace": "beta = 3"})
    assert outcome.ok
    assert outcome.result["undo"] is None
    assert not [file for file in tmp_path.glob("kept/*") if file.is_file()]


async def test_a_zero_character_is_not_written(harness: Harness) -> None:
    outcome = await edit(harness, {"find": "beta = 2", "replace": "a\0b"})
    assert "would make the file binary" in outcome.error
    assert (harness.root / "a.py").read_text() == TEXT


async def test_a_case_of_every_shape_ends_right_or_leaves_the_file_as_it_was(
    harness: Harness,
) -> None:
    file = harness.root / "case"
    for index, case in enumerate({case.shape: case for case in edit_cases()}.values()):
        file.write_bytes(case.before)
        edits = [item.model_dump(exclude_none=True) for item in case.edits]
        outcome = await harness.use("edit_file", index, path="case", edits=edits)
        assert file.read_bytes() == (case.after if outcome.ok else case.before), case.name


async def test_secrets_are_neither_written_nor_shown_nor_kept(
    harness: Harness, tmp_path: Path
) -> None:
    (harness.root / "a.py").write_text(f"key = '{SECRET}'\nbeta = 2\n")
    reference = await edit(harness, {"find": "beta = 2", "replace": "k = 'secret://DOOR_KEY'"})
    assert "'secret://DOOR_KEY'" in reference.error
    refused = await edit(harness, {"find": "key = 'other'", "replace": "x"})
    done = await edit(harness, {"find": "beta = 2", "replace": "beta = 3"})
    assert done.ok
    assert done.result["can_undo"] is False
    kept = [file.read_bytes() for file in tmp_path.glob("kept/**/*") if file.is_file()]
    assert not parts_of_the_secret_in(refused, done, await harness.events(), kept)


@pytest.mark.parametrize("path", [".git/config", "../out", "link", "hard", "pipe", "folder", "no"])
async def test_only_plain_files_of_the_workspace_are_edited(
    harness: Harness, tmp_path: Path, path: str
) -> None:
    (tmp_path / "out").write_text(TEXT)
    (harness.root / "link").symlink_to(harness.root / "a.py")
    os.link(harness.root / "a.py", harness.root / "hard")
    os.mkfifo(harness.root / "pipe")
    (harness.root / "folder").mkdir()
    outcome = await edit(harness, {"find": "beta = 2", "replace": "x"}, path=path)
    assert not outcome.ok
    assert (harness.root / "a.py").read_text() == (tmp_path / "out").read_text() == TEXT


async def test_a_long_diff_is_cut_and_says_so(harness: Harness) -> None:
    (harness.root / "a.py").write_text("x = 1\n")
    outcome = await edit(harness, {"find": "x = 1", "replace": "y = 2\n" * 9_000})
    assert outcome.ok
    assert "[cut: " in outcome.result["diff"]
    assert len(outcome.result["diff"]) < 13_000
