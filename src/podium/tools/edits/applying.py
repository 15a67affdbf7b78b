"""All edits of a text, or none: each found in the original, none across another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as with_changes
from itertools import pairwise

from podium.tools.edits.dedented import indented_as_its_line
from podium.tools.edits.eliding import elided_changes, refuse_placeholder
from podium.tools.edits.layout import Layout
from podium.tools.edits.matches import Match, one_of
from podium.tools.edits.merging import merged
from podium.tools.edits.nearest import nearest
from podium.tools.edits.nouns import Candidate, Change, Edit, EditRefused, Level, Reason
from podium.tools.edits.pasted import unwrapped
from podium.tools.edits.sequences import occurrences
from podium.tools.edits.snippets import Lookup, loose_matches

_STRICT = (Level.LINES, Level.INDENT, Level.TABS)


@dataclass(frozen=True)
class Done:
    """Where one edit was made and how its place was found."""

    line: int
    """From 1, in the original."""
    level: Level


@dataclass(frozen=True)
class Edited:
    """The new text, and what was done."""

    before: Layout
    text: str
    changes: tuple[Change, ...]
    """Sorted by place."""
    done: tuple[Done, ...]
    """In the order of the edits."""


def apply_edits(text: str, edits: Sequence[Edit]) -> Edited:
    """All edits made in the text. Raises `EditRefused` when one of them cannot be, beyond doubt."""
    lookup = Lookup(Layout(text))
    found: list[tuple[int, Change]] = []
    done: list[Done] = []
    for number, edit in enumerate(edits, start=1):
        try:
            changes = _changes_of(edit, lookup)
        except EditRefused as refused:
            raise refused.of_edit(number) from None
        found += [(number, change) for change in changes]
        done.append(Done(lookup.layout.line_at(changes[0].start) + 1, changes[0].level))
    found.sort(key=lambda each: (each[1].start, each[1].end))
    refuse_overlaps(lookup.layout, found)
    changes = [change for _, change in found]
    after = lookup.layout.rewritten(changes)
    if after == text:
        raise EditRefused(
            Reason.NOTHING, "the edits change nothing: the file stands as they want it"
        )
    return Edited(lookup.layout, after, tuple(changes), tuple(done))


def refuse_overlaps(layout: Layout, found: Sequence[tuple[int, Change]]) -> None:
    """Raise `EditRefused` when two of the numbered, sorted changes touch the same text."""
    for (number, change), (other, following) in pairwise(found):
        if following.start < change.end:
            line = layout.line_at(following.start)
            raise EditRefused(
                Reason.OVERLAP,
                f"edits {number} and {other} change the same text; make them one edit",
                [Candidate(line + 1, layout.lines[line])],
                max(number, other),
            )


def _changes_of(edit: Edit, lookup: Lookup) -> list[Change]:
    """What one edit changes: at least one change."""
    find, replace = lookup.layout.plain(edit.find), lookup.layout.plain(edit.replace)
    edit = with_changes(edit, find=find, replace=replace)
    if not find:
        raise EditRefused(Reason.MISSING, "`find` is empty; quote the text that shall be replaced")
    if find == replace:
        raise EditRefused(Reason.NOTHING, "`find` and `replace` are the same: nothing would change")
    refuse_placeholder(find, replace)
    changes = _exact(edit, lookup) or _loose(edit, lookup) or _elided(edit, lookup)
    changes = changes or _unwrapped(edit, lookup)
    if not changes:
        raise _missing(edit, lookup)
    return changes


def _exact(edit: Edit, lookup: Lookup) -> list[Change]:
    layout = lookup.layout
    places = occurrences(edit.find, layout.text)
    if not places:
        return []
    matches = [Match(at, at + len(edit.find), Level.EXACT) for at in places]
    match = one_of(matches, layout, edit.at_line)
    replace = indented_as_its_line(layout, match, edit.find, edit.replace)
    return [Change(match.start, match.end, replace, Level.EXACT)]


def _loose(edit: Edit, lookup: Lookup) -> list[Change]:
    find, replace, deletes = _trimmed(edit.find, edit.replace)
    matches = loose_matches(lookup, find) if find.strip() else []
    if not matches:
        return []
    match = one_of(matches, lookup.layout, edit.at_line)
    return [_change(lookup.layout, match, find, replace, deletes=deletes)]


def _trimmed(find: str, replace: str) -> tuple[str, str, bool]:
    """Without line ends that both begin or end with; whether whole lines go, with their ends."""
    while find.startswith("\n") and replace.startswith("\n"):
        find, replace = find[1:], replace[1:]
    while find.endswith("\n") and replace.endswith("\n"):
        find, replace = find[:-1], replace[:-1]
    deletes = not replace and find.endswith("\n")
    return (find[:-1] if deletes else find), replace, deletes


def _change(layout: Layout, match: Match, find: str, replace: str, *, deletes: bool) -> Change:
    if deletes:
        return Change(match.start, min(match.end + 1, len(layout.text)), "", match.level)
    if match.is_part and find.count("\n") != replace.count("\n"):
        raise EditRefused(
            Reason.DOUBTFUL,
            "`find` is a part of a line and spelt differently there, and `replace` has another number "
            "of lines; quote whole lines with their indentation",
        )
    own = layout.text[match.start : match.end].split("\n")
    try:
        text = merged(own, find.split("\n"), replace.split("\n"), match.shift)
    except EditRefused as refused:
        line = layout.line_at(match.start)
        place = Candidate(line + 1, layout.lines[line])
        raise EditRefused(refused.reason, refused.words, [place]) from None
    return Change(match.start, match.end, text, match.level)


def _elided(edit: Edit, lookup: Lookup) -> list[Change]:
    return elided_changes(lookup.layout, edit.find, edit.replace, edit.at_line) or []


def _unwrapped(edit: Edit, lookup: Lookup) -> list[Change]:
    layout = lookup.layout
    for other in unwrapped(edit):
        find, replace = other.edit.find, other.edit.replace
        matches = loose_matches(lookup, find) if find.strip() else []
        matches = [match for match in matches if match.level in _STRICT]
        if other.line is not None:
            matches = [each for each in matches if layout.line_at(each.start) + 1 == other.line]
        if matches:
            match = one_of(matches, layout, edit.at_line)
            change = _change(layout, match, find, replace, deletes=False)
            return [with_changes(change, level=Level.PASTED)]
    return []


def _missing(edit: Edit, lookup: Lookup) -> EditRefused:
    layout = lookup.layout
    there = occurrences(edit.replace, layout.text) if len(edit.replace.strip()) >= 4 else []
    if there:
        line = layout.line_at(there[0])
        words = f"`find` does not stand in the file, but `replace` does, at line {line + 1}: it seems done"
        return EditRefused(Reason.MISSING, words, [Candidate(line + 1, layout.lines[line])])
    near = nearest(lookup, edit.find)
    words = "`find` does not stand in the file; read it again and quote it as it is"
    return EditRefused(Reason.MISSING, words, near)
