from __future__ import annotations

import pytest

from podium.tools.edits.patch import FilePatch, PatchUnreadable, read_patch

SECTIONS = """*** Begin Patch
*** Add File: new.txt
+hello
+
+you
*** Update File: src/a.py
*** Move to: src/b.py
@@ class A
@@ def f
 one
-two
+three

@@
-last
+end
*** End of File
*** Delete File: old.txt
*** End Patch
"""

UNIFIED = """Some words before it.

diff --git a/src/a.py b/src/a.py
index 1234567..89abcde 100644
--- a/src/a.py
+++ b/src/a.py
@@ -3,3 +3,3 @@ class A:
 one
-two
+three
 four
diff --git a/run.sh b/run.sh
new file mode 100755
--- /dev/null
+++ b/run.sh
@@ -0,0 +1,1 @@
+echo hi
\\ No newline at end of file
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1,1 +0,0 @@
-gone
diff --git a/x.py b/y.py
similarity index 100%
rename from x.py
rename to y.py
"""


def test_sections_are_read_with_their_marks() -> None:
    added, moved, deleted = read_patch(SECTIONS)

    assert added == FilePatch("add", "new.txt", content="hello\n\nyou\n")
    assert (moved.path, moved.to) == ("src/a.py", "src/b.py")
    first, last = moved.hunks
    assert (first.old, first.new) == (("one", "two"), ("one", "three"))
    assert first.below == ("class A", "def f")
    assert last.at_end
    assert deleted == FilePatch("delete", "old.txt")


def test_a_unified_diff_is_read_with_additions_deletions_and_renames() -> None:
    changed, added, deleted, moved = read_patch(UNIFIED)

    (hunk,) = changed.hunks
    assert (changed.path, hunk.line) == ("src/a.py", 3)
    assert hunk.new == ("one", "three", "four")
    assert added == FilePatch("add", "run.sh", content="echo hi", mode=0o755)
    assert (deleted.kind, deleted.path, deleted.hunks[0].old) == ("delete", "old.txt", ("gone",))
    assert moved == FilePatch("change", "x.py", to="y.py")


def test_a_diff_without_prefixes_fences_and_counts_is_read_too() -> None:
    (file,) = read_patch("```diff\r\n--- a.py\r\n+++ a.py\r\n@@ @@\r\n-one\r\n+two\r\n```\r\n")

    assert (file.path, file.hunks[0].old, file.hunks[0].line) == ("a.py", ("one",), None)


def test_removed_lines_that_look_like_a_head_stay_lines_of_their_hunk() -> None:
    (file,) = read_patch("--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n x\n--- old\n+++ new\n")

    assert file.hunks[0].old == ("x", "-- old")
    assert file.hunks[0].new == ("x", "++ new")


def test_a_mailed_patch_ends_at_its_signature() -> None:
    (file,) = read_patch("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n-- \n2.39.2\n\n")

    assert file.hunks[0].old == ("x",)


def test_two_parts_about_one_file_are_one() -> None:
    part = "*** Update File: a\n@@\n-{}\n+{}\n"

    (file,) = read_patch(f"*** Begin Patch\n{part.format(1, 2)}{part.format(3, 4)}*** End Patch")

    assert [hunk.old for hunk in file.hunks] == [("1",), ("3",)]


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("just words", "the patch contains no changes"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\nno sign\n", "line 6 .*begin with a space"),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n", "rename from"),
        ("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "permission bits"),
        ("diff --git a/f b/f\nnew file mode 120000\n", "only regular files"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "binary files"),
        ('--- "a/\\303"\n+++ "b/\\303"\n@@ -1 +1 @@\n-x\n+y\n', "quoted file names"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n x\n", "changes nothing"),
        ("*** Begin Patch\n*** Add File: a\n+x\n", "the last line must be"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "begin with `\\+`"),
        ("*** Begin Patch\n*** Add File: \n+x\n*** End Patch", "the file name is missing"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", "must have no lines"),
        ("*** Begin Patch\nhello\n*** End Patch", "a section must begin with"),
        (
            "*** Begin Patch\n*** Delete File: a\n*** Add File: a\n+x\n*** End Patch",
            "two different changes to 'a'",
        ),
        (
            "*** Begin Patch\n"
            + "".join(f"*** Delete File: f{number}\n" for number in range(41))
            + "*** End Patch",
            "more than 40 files",
        ),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_with_its_line(patch: str, why: str) -> None:
    with pytest.raises(PatchUnreadable, match=why):
        read_patch(patch)
