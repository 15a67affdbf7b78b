"""Changes on a card: every line of them is shown."""

from __future__ import annotations

from podium.web.pages.cards import changes_of


def test_changed_lines_that_look_like_heads_of_a_diff_are_shown() -> None:
    (change,) = changes_of(
        "replace_in_file",
        {"path": "a.sql", "find": "one\n-- keep\ntwo", "replace": "one\n++i, run()\ntwo"},
    )
    assert [(line.kind, line.text) for line in change.lines] == [
        ("at", "@@ -1,3 +1,3 @@"),
        ("same", " one"),
        ("del", "-- keep"),
        ("add", "++i, run()"),
        ("same", " two"),
    ]


def test_a_large_change_is_shown_whole_without_being_compared() -> None:
    before = "\n".join("ab" * 60_000)
    edits = [{"find": before, "replace": before[::-1]}]
    (change,) = changes_of("edit_file", {"path": "a", "edits": edits}, most=None)
    assert len(change.lines) == 240_000
    assert {line.kind for line in change.lines} == {"del", "add"}


def test_guarded_files_are_shown_as_the_diff_that_they_are() -> None:
    diff = "--- a/podium.yaml\n+++ b/podium.yaml\n@@ -1 +1 @@\n-checks: [a]\n+checks: []\n"
    arguments = {"branch": "podium/fix", "files": ["podium.yaml (changed)"], "diff": diff}
    (change,) = changes_of("import_guarded_files", arguments)
    assert change.title == "guarded files of podium/fix"
    assert [line.kind for line in change.lines][:5] == ["at", "at", "at", "del", "add"]
