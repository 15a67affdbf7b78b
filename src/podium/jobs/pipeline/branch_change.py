"""Size of the branch's change, and the forecast of conflicts with other running tasks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from podium.core.events import BranchCollision
from podium.core.model import FrozenModel
from podium.core.protected_paths import is_guarded
from podium.jobs.pipeline.branch_documents import ACTIVE_FOLDERS
from podium.jobs.pipeline.spec import Mode
from podium.jobs.pipeline.state import BACKLOG, MEMORY, StageContext
from podium.ports import StepContext
from podium.render.text import counted

_OWN_ATTRIBUTES = tuple(f"+/{path} merge=union" for path in (MEMORY, BACKLOG))
_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)
_PATHS = re.compile(r'diff --git "?a/(.*?)"? "?b/(.*?)"?$', re.MULTILINE)


def sections_of(diff: str, own: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Path and text of each file of a diff, without the documents that are Podium's own."""
    for text in _SECTION.split(diff):
        named = _PATHS.match(text)
        if named and named[2] not in own and not _is_own_attributes(named[2], text):
            yield named[2], text


def changed_lines(section: str) -> tuple[int, int]:
    """Lines that a file's section of a diff adds and removes. None of a binary file."""
    body = section.split("\n@@", 1)[1:]
    marks = [line[:1] for part in body for line in part.split("\n")]
    return marks.count("+"), marks.count("-")


def _is_own_attributes(path: str, text: str) -> bool:
    """True for a diff of `.gitattributes` that only adds the lines by which Podium's own lists are merged."""
    if path != ".gitattributes":
        return False
    body = [line for line in text.split("\n") if line[:1] in ("+", "-")]
    changed = [line for line in body if not line.startswith(("+++", "---"))]
    return bool(changed) and all(line.rstrip("\r") in _OWN_ATTRIBUTES for line in changed)


class _Size(FrozenModel):
    reason: str = ""


async def why_not_small(context: StageContext, name: str, mode: Mode) -> str:
    """Reason why the change is too large, or too delicate, for the stages that the mode skips. Empty: it is not."""
    state = context.state

    async def measure(step: StepContext) -> _Size:
        diff = await state.workspace.diff(state.base)
        return _Size(reason=_reason(sections_of(diff, state.own_documents), mode))

    size: _Size = await context.flow.step(
        f"measure:{name}", measure, index=state.stage_runs[name], returns=_Size
    )
    return size.reason


def _reason(sections: Iterable[tuple[str, str]], mode: Mode) -> str:
    paths, lines = [], 0
    for path, text in sections:
        paths.append(path)
        lines += sum(changed_lines(text))
    if guarded := [path for path in paths if is_guarded(path)]:
        return f"The change touches the guarded file {guarded[0]}"
    if len(paths) > mode.max_files:
        return f"The change touches {counted(len(paths), 'file')} (limit {mode.max_files})"
    if lines > mode.max_lines:
        return f"The change has {counted(lines, 'line')} (limit {mode.max_lines})"
    return ""


_MAX_PATHS = 50


class _Other(FrozenModel):
    """A run whose branch cannot be merged with this one's."""

    run_id: str
    branch: str
    paths: tuple[str, ...]


async def forecast_conflicts(context: StageContext, name: str) -> StageContext:
    """Tell this run and the other one of every live branch that collides with what was just delivered."""
    state = context.state

    async def work(step: StepContext) -> list[_Other]:
        collisions = [
            collision
            for collision in await _colliding(context)
            if collision.branch not in state.collides
        ]
        for collision in collisions:
            await context.deps.journal.append(
                collision.run_id,
                _collision_event(collision.branch, state.branch, state.run_id, collision),
            )
        return collisions

    collisions = await context.flow.step(
        f"radar:{name}", work, index=state.stage_runs[name], returns=list[_Other]
    )
    for collision in collisions:
        context.flow.note(
            _collision_event(state.branch, collision.branch, collision.run_id, collision)
        )
    collides = state.collides | {collision.branch for collision in collisions}
    return context.with_state(replace(state, collides=collides))


async def _colliding(context: StageContext) -> list[_Other]:
    deps, own = context.deps, context.state.workspace.record
    runs = {
        workspace.branch: workspace.run_id
        for workspace in deps.workspaces.existing()
        if workspace.run_id
    }
    others = []
    for collision in await deps.workspaces.collisions(own.id):
        run_id = runs.get(f"refs/heads/{collision.other}", "")
        # Documents of the work itself are archived under names of their own.
        paths = [path for path in collision.paths if not path.startswith(ACTIVE_FOLDERS)]
        if paths and run_id and await _is_live(context, run_id):
            others.append(
                _Other(run_id=run_id, branch=collision.other, paths=tuple(paths[:_MAX_PATHS]))
            )
    return others


async def _is_live(context: StageContext, run_id: str) -> bool:
    run = await context.deps.budget.store.read(lambda view: view.run(run_id))
    return run is not None and not run.status.ended


def _collision_event(branch: str, other: str, run_id: str, collision: _Other) -> BranchCollision:
    return BranchCollision(
        branch=branch, other_branch=other, other_run=run_id, paths=collision.paths
    )
