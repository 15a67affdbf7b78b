"""Size of the branch's change, and the forecast of conflicts with other running tasks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from podium.core.events import CollisionSeen
from podium.core.model import FrozenModel
from podium.core.protected_paths import is_guarded
from podium.jobs.pipeline.branch_documents import ACTIVE_FOLDERS
from podium.jobs.pipeline.spec import Mode
from podium.jobs.pipeline.state import BACKLOG, MEMORY, Desk
from podium.ports import StepContext

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


class _Size(FrozenModel):
    reason: str = ""


async def why_not_small(desk: Desk, name: str, mode: Mode) -> str:
    """Why the change is too large, or too delicate, for the stages that the mode skips. Empty: it is not."""
    trip = desk.trip

    async def measure(step: StepContext) -> _Size:
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


_MAX_PATHS = 50


class _Other(FrozenModel):
    """A run whose branch cannot be merged with this one's."""

    run_id: str
    branch: str
    paths: tuple[str, ...]


async def look_around(desk: Desk, name: str) -> None:
    """Tell this run and the other one of every live branch that collides with what was just delivered."""
    trip = desk.trip

    async def work(step: StepContext) -> list[_Other]:
        found = [each for each in await _colliding(desk) if each.branch not in trip.collides]
        for each in found:
            await desk.kit.journal.append(
                each.run_id, _seen(each.branch, trip.branch, trip.run_id, each)
            )
        return found

    for each in await desk.ctx.step(
        f"radar:{name}", work, index=trip.visits[name], returns=list[_Other]
    ):
        trip.collides.add(each.branch)
        desk.ctx.note(_seen(trip.branch, each.branch, each.run_id, each))


async def _colliding(desk: Desk) -> list[_Other]:
    kit, own = desk.kit, desk.trip.workspace.record
    runs = {each.branch: each.run_id for each in kit.workspaces.known() if each.run_id}
    others = []
    for each in await kit.workspaces.collisions(own.id):
        run_id = runs.get(f"refs/heads/{each.other}", "")
        # Documents of the work itself are archived under names of their own.
        paths = [path for path in each.paths if not path.startswith(ACTIVE_FOLDERS)]
        if paths and run_id and await _is_live(desk, run_id):
            others.append(_Other(run_id=run_id, branch=each.other, paths=tuple(paths[:_MAX_PATHS])))
    return others


async def _is_live(desk: Desk, run_id: str) -> bool:
    run = await desk.kit.purse.store.read(lambda view: view.run(run_id))
    return run is not None and not run.status.ended


def _seen(branch: str, other: str, run_id: str, collision: _Other) -> CollisionSeen:
    return CollisionSeen(branch=branch, other_branch=other, other_run=run_id, paths=collision.paths)
