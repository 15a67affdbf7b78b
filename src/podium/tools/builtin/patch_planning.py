"""What a patch comes to in the files that are there: planned whole before anything is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.domain.errors import OutcomeUnknown, ToolBroke
from podium.domain.model import Json
from podium.tools.edits import EditRefused, apply_hunks, decoded, diff_between
from podium.tools.intents import keep_for_undo
from podium.tools.patches import FilePatch
from podium.tools.places import LARGEST_BYTES
from podium.tools.replacing import Replacement, Standing, standing_at
from podium.tools.scope import ToolScope

_WORDS = {"add": "added", "change": "changed", "delete": "deleted"}

NOTHING = Standing(None)


class PatchRefused(Exception):
    """One file's part of the patch does not fit. Nothing was changed."""

    def __init__(self, path: str, why: EditRefused) -> None:
        super().__init__(f"{path!r}: {why.words}")
        self.path = path
        self.why = why


@dataclass(frozen=True)
class Planned:
    """What one file's part of the patch comes to."""

    told: dict[str, Json]
    replacements: tuple[Replacement, ...]
    diff: str
    can_undo: bool


def plan(scope: ToolScope, file: FilePatch, places: Mapping[str, str]) -> Planned:
    """Raises `PatchRefused`, or `ToolBroke` for a file that cannot be patched at all."""
    path, to = _from_and_to(file, places)
    before = standing_at(scope, path)
    if to != path and standing_at(scope, to).content is not None:
        raise ToolBroke(f"{to!r} is there already and is not replaced; nothing was changed")
    try:
        after = _after(file, path, before)
        diff = diff_between(to, _text(before), _text(after), was=path)
        can_undo = _keep(scope, before)
    except EditRefused as refused:
        raise PatchRefused(path, refused) from None
    told: dict[str, Json] = {"path": to, "change": "moved" if file.to else _WORDS[file.kind]}
    told |= {"from": path} if file.to else {}
    told |= {"sha256": after.sha256, "bytes": len(after.content or b"")}
    return Planned(told, tuple(_replacements(path, to, before, after)), diff, can_undo)


def what_is_left(
    scope: ToolScope,
    files: Sequence[FilePatch],
    places: Mapping[str, str],
    fixed: Mapping[str, tuple[str | None, str | None]],
) -> Iterator[Replacement]:
    """What an earlier try did not come to. `fixed` has the hashes before and after of every place.

    Raises `OutcomeUnknown` where neither of them stands by now.
    """
    for file in files:
        path, to = _from_and_to(file, places)
        standing = {place: standing_at(scope, place) for place in {path, to}}
        if all(found.sha256 == fixed[place][1] for place, found in standing.items()):
            continue
        # New places are written before old ones are removed, so what the patch starts from is there.
        if standing[path].sha256 != fixed[path][0] or standing[to].sha256 not in fixed[to]:
            raise OutcomeUnknown(
                f"{path!r} was changed meanwhile by somebody else, when a part of the patch may have been "
                "made; read the files it names, and ask for what is still needed"
            )
        after = _after(file, path, standing[path])
        made = _replacements(path, to, standing[path], after)
        yield from (each for each in made if standing[each.path].sha256 != fixed[each.path][1])


def _from_and_to(file: FilePatch, places: Mapping[str, str]) -> tuple[str, str]:
    path = places[file.path]
    return path, places[file.to] if file.to else path


def _replacements(path: str, to: str, before: Standing, after: Standing) -> Iterator[Replacement]:
    if to == path:
        yield Replacement(path, before, after)
    else:
        yield Replacement(to, NOTHING, after)
        yield Replacement(path, before, NOTHING)


def _after(file: FilePatch, path: str, before: Standing) -> Standing:
    """What shall stand there, with the permission bits and the encoding of what does."""
    if file.kind == "add":
        if before.content is not None:
            raise ToolBroke(
                f"{path!r} is there already, and the patch adds it; nothing was changed"
            )
        return Standing(file.content.encode(), file.mode)
    if before.content is None:
        raise ToolBroke(f"there is no {path!r}, which the patch names; nothing was changed")
    if file.kind == "delete":
        _refuse_other_content(file, path, before.content)
        return NOTHING
    if not file.hunks:
        return before
    coded = decoded(before.content)
    content = coded.encoded(apply_hunks(coded.text, file.hunks).text)
    if len(content) > LARGEST_BYTES:
        raise ToolBroke(f"{path!r} would be larger than {LARGEST_BYTES} bytes; nothing was changed")
    return Standing(content, before.mode)


def _refuse_other_content(file: FilePatch, path: str, content: bytes) -> None:
    """A patch that tells what it removes means that content and no other."""
    told = [line for hunk in file.hunks for line in hunk.old]
    text = decoded(content).text.replace("\r\n", "\n")
    if file.hunks and told != text.removesuffix("\n").split("\n"):
        raise ToolBroke(
            f"{path!r} is not what the patch says it removes; nothing was changed. Read it again"
        )


def _text(standing: Standing) -> str | None:
    return None if standing.content is None else decoded(standing.content).text


def _keep(scope: ToolScope, before: Standing) -> bool:
    """Whether the content that goes is kept for undo."""
    if before.content is None:
        return True
    # A secret in UTF-16 shows in the text alone.
    text = decoded(before.content).text
    return scope.redact(text) == text and keep_for_undo(scope, before.content)
