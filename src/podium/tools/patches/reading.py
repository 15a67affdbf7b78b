"""A patch of either format, read whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from podium.tools.patches.nouns import FilePatch, PatchUnreadable
from podium.tools.patches.sections import BEGIN, read_sections
from podium.tools.patches.unified import read_unified

MOST_FILES = 40
MOST_HUNKS = 400


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """What a patch says, file by file; each place is named once. Raises `PatchUnreadable`."""
    lines = _unfenced(text.replace("\r\n", "\n").split("\n"))
    marked = any(line.strip() == BEGIN for line in lines)
    files = _joined(read_sections(lines) if marked else read_unified(lines))
    if not files:
        raise PatchUnreadable(
            "there is no change in the patch; send a unified diff with `---`, `+++` and `@@` lines, or "
            f"sections between `{BEGIN}` and `*** End Patch`"
        )
    if len(files) > MOST_FILES or sum(len(file.hunks) for file in files) > MOST_HUNKS:
        raise PatchUnreadable(
            f"the patch is of more than {MOST_FILES} files or {MOST_HUNKS} hunks; send several"
        )
    return files


def _unfenced(lines: Sequence[str]) -> list[str]:
    """Without the fence of a code block around all of it."""
    told = [number for number, line in enumerate(lines) if line.strip()]
    if len(told) < 2 or not lines[told[0]].startswith("```") or lines[told[-1]].strip() != "```":
        return list(lines)
    return list(lines[told[0] + 1 : told[-1]])


def _joined(files: Iterable[FilePatch]) -> tuple[FilePatch, ...]:
    """Two parts about one file as one; any other place that is named twice is refused."""
    known: dict[str, FilePatch] = {}
    for file in files:
        earlier = known.get(file.path)
        if earlier is not None and _only_changes(earlier) and _only_changes(file):
            known[file.path] = replace(earlier, hunks=(*earlier.hunks, *file.hunks))
            continue
        known[file.path] = file
        if earlier is not None:
            raise _twice(file.path)
    places = Counter(place for file in known.values() for place in file.places)
    for place, times in places.items():
        if times > 1:
            raise _twice(place)
    return tuple(known.values())


def _only_changes(file: FilePatch) -> bool:
    return file.kind == "change" and not file.to


def _twice(path: str) -> PatchUnreadable:
    return PatchUnreadable(f"the patch does two different things with {path!r}; send two patches")
