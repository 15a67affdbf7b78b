"""Patches of either format (unified diff, `*** Begin Patch`), read as changes of files.

The numbers in `@@ -1,7 +1,8 @@` are held against nothing: a hunk goes on until something that cannot
belong to it. Only where a removed line looks like the head of the next file they decide."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from podium.tools.edits import Hunk

Kind = Literal["add", "change", "delete"]

_MAX_EXCERPT_CHARACTERS = 80


class PatchUnreadable(ValueError):
    """The text is no patch, or could be read in two ways. The message says where and why."""


@dataclass(frozen=True)
class FilePatch:
    """Change of one file."""

    kind: Kind
    path: str
    to: str = ""
    """The new place, when it is moved."""
    hunks: tuple[Hunk, ...] = ()
    """Of a file that is removed: all its lines, if the patch tells them."""
    content: str = ""
    """Of a file that is added."""
    mode: int | None = None
    """Permission bits of a file that is added. None: the usual ones."""

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.to) if self.to else (self.path,)


def unreadable(lines: Sequence[str], at: int, why: str) -> PatchUnreadable:
    """The error about one line of the patch."""
    excerpt = lines[at][:_MAX_EXCERPT_CHARACTERS] if at < len(lines) else "end of the patch"
    return PatchUnreadable(f"line {at + 1} of the patch ({excerpt!r}): {why}")


def named(lines: Sequence[str], at: int, path: str) -> str:
    """A path as it stands in a line of the patch."""
    if not path:
        raise unreadable(lines, at, "the file name is missing")
    if path.startswith('"'):
        raise unreadable(
            lines, at, "quoted file names are not supported; write the name without quotes"
        )
    return path


_NO_END = "\\"
"""Begins the line that says that the one before it has no line end."""


@dataclass
class HunkBody:
    """Collects the lines of one hunk."""

    line: int | None = None
    below: tuple[str, ...] = ()
    at_end: bool = False
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    _open: list[bool] = field(default_factory=lambda: [False, False])
    _last: str = ""
    _unsigned_blanks: int = 0
    """Number of empty lines at the end without even the blank of a context line."""

    def take(self, lines: Sequence[str], at: int) -> None:
        """One line of the patch. Raises `PatchUnreadable` when it is none of a hunk."""
        text = lines[at]
        sign, rest = (text[:1], text[1:]) if text else (" ", "")
        if sign == _NO_END:
            self._note_open_end()
            return
        if sign not in (" ", "+", "-"):
            raise unreadable(lines, at, "each line of a hunk must begin with a space, `+` or `-`")
        self._unsigned_blanks = 0 if text else self._unsigned_blanks + 1
        self._last = sign
        if sign != "+":
            self.old.append(rest)
        if sign != "-":
            self.new.append(rest)

    def hunk(self) -> Hunk:
        """Empty lines at its end only part it from what follows."""
        if self._unsigned_blanks:
            del self.old[-self._unsigned_blanks :], self.new[-self._unsigned_blanks :]
        return Hunk(
            old=tuple(self.old),
            new=tuple(self.new),
            line=self.line,
            below=self.below,
            at_end=self.at_end or self._open[0],
            ends_open=(self._open[0], self._open[1]),
        )

    @property
    def is_empty(self) -> bool:
        return not (self.old or self.new)

    def _note_open_end(self) -> None:
        if self._last in (" ", "-"):
            self._open[0] = True
        if self._last in (" ", "+"):
            self._open[1] = True


BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
_MOVE = "*** Move to:"
_END_OF_FILE = "*** End of File"
_NUMBERED = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def read_sections(lines: Sequence[str]) -> Iterator[FilePatch]:
    """The files of a patch in this format. Raises `PatchUnreadable`."""
    at = next(number for number, line in enumerate(lines) if line.strip() == BEGIN) + 1
    ends = [number for number, line in enumerate(lines) if line.strip() == _END]
    if not ends or any(line.strip() for line in lines[ends[0] + 1 :]):
        raise unreadable(lines, len(lines), f"the last line must be `{_END}`")
    while at < ends[0]:
        if not lines[at].strip():
            at += 1
            continue
        end = _next_section(lines, at + 1, ends[0])
        yield _section(lines, at, end)
        at = end


def _next_section(lines: Sequence[str], at: int, end: int) -> int:
    while at < end and not lines[at].startswith((_ADD, _DELETE, _UPDATE)):
        at += 1
    return at


def _section(lines: Sequence[str], at: int, end: int) -> FilePatch:
    head = lines[at]
    for prefix in (_ADD, _DELETE, _UPDATE):
        if head.startswith(prefix):
            path = named(lines, at, head.removeprefix(prefix).strip())
            break
    else:
        raise unreadable(
            lines, at, f"a section must begin with `{_ADD}`, `{_UPDATE}` or `{_DELETE}`"
        )
    if prefix == _ADD:
        return FilePatch("add", path, content=_added(lines, at + 1, end))
    if prefix == _DELETE:
        _must_be_blank(lines, at + 1, end)
        return FilePatch("delete", path)
    to = ""
    if at + 1 < end and lines[at + 1].startswith(_MOVE):
        at += 1
        to = named(lines, at, lines[at].removeprefix(_MOVE).strip())
    hunks = tuple(_hunks(lines, at + 1, end))
    if not hunks and not to:
        raise unreadable(lines, at, "the section changes nothing")
    return FilePatch("change", path, to=to, hunks=hunks)


def _added(lines: Sequence[str], at: int, end: int) -> str:
    while end > at and not lines[end - 1]:
        end -= 1
    for number in range(at, end):
        if not lines[number].startswith("+"):
            raise unreadable(lines, number, "each line of a new file must begin with `+`")
    return "".join(f"{line[1:]}\n" for line in lines[at:end])


def _must_be_blank(lines: Sequence[str], at: int, end: int) -> None:
    for number in range(at, end):
        if lines[number].strip():
            raise unreadable(lines, number, "a section that deletes a file must have no lines")


def _hunks(lines: Sequence[str], at: int, end: int) -> Iterator[Hunk]:
    body = HunkBody()
    for number in range(at, end):
        line = lines[number]
        if line.startswith("@@"):
            if not body.is_empty:
                yield body.hunk()
                body = HunkBody()
            _take_head(body, line)
        elif line.strip() == _END_OF_FILE:
            body.at_end = True
        elif body.at_end and line.strip():
            raise unreadable(lines, number, f"only `@@` may follow `{_END_OF_FILE}`")
        else:
            body.take(lines, number)
    if not body.is_empty:
        yield body.hunk()


def _take_head(body: HunkBody, line: str) -> None:
    """Several of them in a row lead from the outside to the inside."""
    if numbers := _NUMBERED.match(line):
        body.line = int(numbers[1])
    elif head := line.removeprefix("@@").strip().removesuffix("@@").strip():
        body.below = (*body.below, head)


_GIT = "diff --git "
_NOTHING = "/dev/null"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_MODES = {"100644": 0o644, "100755": 0o755}
_SIGNATURE = "-- "
"""Begins the last lines of a mailed patch."""
_IDLE = ("index ", "similarity index ", "dissimilarity index ")


@dataclass
class _PatchFile:
    """Part of one file that was read so far."""

    at: int
    git: str = ""
    old: str = ""
    new: str = ""
    moved: list[str] = field(default_factory=list)
    mode: int | None = None
    kind: str = ""
    hunks: list[Hunk] = field(default_factory=list)


def read_unified(lines: Sequence[str]) -> Iterator[FilePatch]:
    """The files of a unified diff. Text before the first is skipped. Raises `PatchUnreadable`."""
    at, current = 0, None
    while at < len(lines):
        line = lines[at]
        if line.startswith(_GIT) or (_is_head(lines, at) and not (current and _waits(current))):
            if current:
                yield _file_patch(lines, current)
            current = _PatchFile(at)
        if current is None:
            at += 1
        elif line.startswith(_GIT):
            current.git = line.removeprefix(_GIT)
            at += 1
        elif _is_head(lines, at):
            current.old, current.new = _path(line), _path(lines[at + 1])
            at += 2
        elif line.startswith("@@"):
            at = _take_hunk(lines, at, current)
        elif line == _SIGNATURE and len(lines) - at <= 4:
            break
        else:
            _take_header(lines, at, current)
            at += 1
    if current:
        yield _file_patch(lines, current)


def _waits(file: _PatchFile) -> bool:
    """Check that git announced the file and its `---` line is still to come."""
    return bool(file.git) and not file.old and not file.hunks


def _is_head(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _path(line: str) -> str:
    """Behind a tab stands a time."""
    return line[4:].split("\t", 1)[0].rstrip()


def _take_hunk(lines: Sequence[str], at: int, file: _PatchFile) -> int:
    if not file.old:
        raise unreadable(lines, at, "a hunk must follow the `---` and `+++` lines of its file")
    numbers = _HUNK.match(lines[at])
    body = HunkBody(line=int(numbers[1]) if numbers else None)
    if not numbers and (head := lines[at].removeprefix("@@").strip(" @")):
        body.below = (head,)
    expected = (int(numbers[2] or 1), int(numbers[3] or 1)) if numbers else (0, 0)
    at += 1
    while at < len(lines) and not _ends(lines, at, body, expected):
        body.take(lines, at)
        at += 1
    hunk = body.hunk()
    if hunk.old == hunk.new and hunk.ends_open[0] == hunk.ends_open[1]:
        raise unreadable(lines, at - 1, "the hunk that ends here changes nothing")
    file.hunks.append(hunk)
    return at


def _ends(lines: Sequence[str], at: int, body: HunkBody, expected: tuple[int, int]) -> bool:
    line = lines[at]
    if line.startswith(("@@", _GIT)):
        return True
    missing = (expected[0] - len(body.old), expected[1] - len(body.new))
    if line == _SIGNATURE and missing == (0, 0):
        return True
    # Of a removed `-- x` and an added `++ y` the same two lines are made, but hunks follow a head.
    heads = _is_head(lines, at) and lines[at + 2 : at + 3] and lines[at + 2].startswith("@@")
    return bool(heads) and missing != (1, 1)


def _take_header(lines: Sequence[str], at: int, file: _PatchFile) -> None:
    line = lines[at]
    label, _, value = line.rpartition(" ")
    if line.startswith(("Binary files ", "GIT binary patch")):
        raise unreadable(lines, at, "binary files cannot be patched; only text files can")
    if line.startswith(("copy from ", "copy to ")):
        raise unreadable(lines, at, "a patch cannot copy files; add the complete file instead")
    if label in ("old mode", "new mode"):
        raise unreadable(lines, at, "a patch cannot change permission bits; omit this line")
    if line.startswith(("rename from ", "rename to ")):
        file.moved.append(named(lines, at, line.split(" ", 2)[2].strip()))
    elif label == "new file mode":
        if value not in _MODES:
            raise unreadable(lines, at, "only regular files of mode 100644 or 100755 can be added")
        file.kind, file.mode = "add", _MODES[value]
    elif label == "deleted file mode":
        file.kind = "delete"
    elif line.strip() and not line.startswith(_IDLE):
        raise unreadable(lines, at, "this line is neither part of a hunk nor a file header")


def _file_patch(lines: Sequence[str], file: _PatchFile) -> FilePatch:
    old, new = _names(lines, file)
    hunks = tuple(file.hunks)
    if len(file.moved) == 2:
        return FilePatch("change", file.moved[0], to=file.moved[1], hunks=hunks)
    if old == _NOTHING or (file.kind == "add" and not hunks):
        return FilePatch("add", new, content=_content(lines, file), mode=file.mode)
    if new == _NOTHING or (file.kind == "delete" and not hunks):
        return FilePatch("delete", old, hunks=hunks)
    if old != new:
        raise unreadable(
            lines,
            file.at,
            f"the names {old!r} and {new!r} differ; to rename a file, use `rename from` and `rename to`",
        )
    if not hunks:
        raise unreadable(lines, file.at, "this file has no changes")
    return FilePatch("change", old, hunks=hunks)


def _names(lines: Sequence[str], file: _PatchFile) -> tuple[str, str]:
    if not file.old:
        # Git writes no `---` line where there is no hunk, and then both names are the same.
        half = len(file.git) // 2
        file.old, file.new = file.git[:half].rstrip(), file.git[half + 1 :]
    old = named(lines, file.at, file.old)
    new = named(lines, file.at, file.new)
    prefixed = old.startswith(("a/", _NOTHING)) and new.startswith(("b/", _NOTHING))
    if not prefixed:
        return old, new
    return old.removeprefix("a/"), new.removeprefix("b/")


def _content(lines: Sequence[str], file: _PatchFile) -> str:
    if len(file.hunks) > 1 or any(hunk.old for hunk in file.hunks):
        raise unreadable(
            lines, file.at, "a new file must have one hunk, and all its lines must begin with `+`"
        )
    text = "".join(f"{line}\n" for hunk in file.hunks for line in hunk.new)
    return text[:-1] if file.hunks and file.hunks[0].ends_open[1] else text


MAX_FILES = 40
MAX_HUNKS = 400


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """Parse a patch, file by file; each path is named once. Raises `PatchUnreadable`."""
    lines = _unfenced(text.replace("\r\n", "\n").split("\n"))
    marked = any(line.strip() == BEGIN for line in lines)
    files = _joined(read_sections(lines) if marked else read_unified(lines))
    if not files:
        raise PatchUnreadable(
            "the patch contains no changes; send a unified diff with `---`, `+++` and `@@` lines, or "
            f"sections between `{BEGIN}` and `*** End Patch`"
        )
    if len(files) > MAX_FILES or sum(len(file.hunks) for file in files) > MAX_HUNKS:
        raise PatchUnreadable(
            f"the patch has more than {MAX_FILES} files or {MAX_HUNKS} hunks; split it into several patches"
        )
    return files


def _unfenced(lines: Sequence[str]) -> list[str]:
    """Without the fence of a code block around all of it."""
    nonblank = [number for number, line in enumerate(lines) if line.strip()]
    if (
        len(nonblank) < 2
        or not lines[nonblank[0]].startswith("```")
        or lines[nonblank[-1]].strip() != "```"
    ):
        return list(lines)
    return list(lines[nonblank[0] + 1 : nonblank[-1]])


def _joined(files: Iterable[FilePatch]) -> tuple[FilePatch, ...]:
    """Two parts about one file as one; any other place that is named twice is refused."""
    patches: dict[str, FilePatch] = {}
    for file in files:
        earlier = patches.get(file.path)
        if earlier is not None and _only_changes(earlier) and _only_changes(file):
            patches[file.path] = replace(earlier, hunks=(*earlier.hunks, *file.hunks))
            continue
        patches[file.path] = file
        if earlier is not None:
            raise _twice(file.path)
    path_counts = Counter(path for file in patches.values() for path in file.paths)
    for path, times in path_counts.items():
        if times > 1:
            raise _twice(path)
    return tuple(patches.values())


def _only_changes(file: FilePatch) -> bool:
    return file.kind == "change" and not file.to


def _twice(path: str) -> PatchUnreadable:
    return PatchUnreadable(
        f"the patch makes two different changes to {path!r}; split it into two patches"
    )


__all__ = ["FilePatch", "PatchUnreadable", "read_patch"]
