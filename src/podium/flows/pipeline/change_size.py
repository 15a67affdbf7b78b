"""The change of a branch without Podium's own documents, and whether it is small."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from podium.domain.guarded_files import is_guarded
from podium.domain.model import Noun
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.spec import Mode
from podium.flows.pipeline.trip import BACKLOG, MEMORY
from podium.ports import Step

_OWN_ATTRIBUTES = tuple(f"+/{path} merge=union" for path in (MEMORY, BACKLOG))
_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)
_PATHS = re.compile(r'diff --git "?a/(.*?)"? "?b/(.*?)"?$', re.MULTILINE)


def sections_of(diff: str, own: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Path and text of each file of a diff, without the documents that are Podium's own."""
    for text in _SECTION.split(diff):
        named = _PATHS.match(text)
        if named and named[2] not in own and not _is_own_attributes(named[2], text):
            yield named[2], text


def _is_own_attributes(path: str, text: str) -> bool:
    """Whether this is nothing but the lines by which Podium lets its own lists be merged."""
    if path != ".gitattributes":
        return False
    body = [line for line in text.split("\n") if line[:1] in ("+", "-")]
    changed = [line for line in body if not line.startswith(("+++", "---"))]
    return bool(changed) and all(line.rstrip("\r") in _OWN_ATTRIBUTES for line in changed)


class _Size(Noun):
    reason: str = ""


async def why_not_small(desk: Desk, name: str, mode: Mode) -> str:
    """Why the change is too large, or too delicate, for the stages that the mode skips. Empty: it is not."""
    trip = desk.trip

    async def measure(step: Step) -> _Size:
        diff = await trip.workspace.diff(trip.base)
        return _Size(reason=_reason(sections_of(diff, trip.own_documents), mode))

    size: _Size = await desk.ctx.step(
        f"measure:{name}", measure, index=trip.visits[name], returns=_Size
    )
    return size.reason


def _reason(sections: Iterable[tuple[str, str]], mode: Mode) -> str:
    paths, lines = [], 0
    for path, text in sections:
        paths.append(path)
        body = text.split("\n@@", 1)[1:]
        lines += sum(line[:1] in ("+", "-") for part in body for line in part.split("\n"))
    if guarded := [path for path in paths if is_guarded(path)]:
        return f"The change touches {guarded[0]}, which guards the project"
    if len(paths) > mode.max_files:
        return f"The change touches {len(paths)} files, more than {mode.max_files}"
    if lines > mode.max_lines:
        return f"The change has {lines} lines, more than {mode.max_lines}"
    return ""
