"""The diff of an edit is one that git applies to the same end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from podium.tools.edits import EditRefused, TextEdit, apply_edits, unified_diff
from tests.edit_cases import edit_cases


def test_git_makes_of_every_diff_of_the_corpus_what_the_edit_made(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    diffs: list[str] = []
    wanted: dict[str, str] = {}
    for number, case in enumerate(edit_cases()):
        old_mac = "\r" in case.text and "\n" not in case.text
        # Git knows neither line ends of old Macs nor, without a head of its own, an emptied file.
        if not case.expect or old_mac or case.encoding != "utf-8":
            continue
        text = case.before.decode()
        edits = [TextEdit(edit.find, edit.replace, edit.at_line) for edit in case.edits]
        try:
            edited = apply_edits(text, edits)
        except EditRefused:
            continue
        name = f"f{number}"
        (tmp_path / name).write_bytes(text.encode())
        wanted[name] = edited.text
        diffs.append(unified_diff(name, edited.before, edited.text, edited.changes))
    apply = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(apply, cwd=tmp_path, check=True, input="".join(diffs).encode())
    assert len(wanted) > 300
    assert {name: (tmp_path / name).read_bytes().decode() for name in wanted} == wanted


def test_changes_far_apart_are_hunks_of_their_own_and_near_ones_share_one() -> None:
    text = "".join(f"line {number:02}\n" for number in range(40))
    far = apply_edits(text, [TextEdit("line 03", "x"), TextEdit("line 30", "y")])
    near = apply_edits(text, [TextEdit("line 03", "x"), TextEdit("line 06", "y")])
    assert unified_diff("f", far.before, far.text, far.changes).count("@@ -") == 2
    assert unified_diff("f", near.before, near.text, near.changes).count("@@ -") == 1


@pytest.mark.parametrize(("text", "find", "replace"), [("a", "a", "b\n"), ("a\nb", "\nb", "")])
def test_a_last_line_without_an_end_is_marked(text: str, find: str, replace: str) -> None:
    edited = apply_edits(text, [TextEdit(find, replace)])
    assert "\\ No newline" in unified_diff("f", edited.before, edited.text, edited.changes)
