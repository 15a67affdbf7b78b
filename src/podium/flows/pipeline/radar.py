"""Two tasks at once: whoever gets in the way of whom is told, before anybody merges."""

from __future__ import annotations

from podium.domain.events import CollisionSeen
from podium.domain.model import Noun
from podium.flows.pipeline.archiving import ACTIVE_FOLDERS
from podium.flows.pipeline.desk import Desk
from podium.ports import Step

_MOST_PATHS = 50


class _Other(Noun):
    """A run whose branch cannot be merged with this one's."""

    run_id: str
    branch: str
    paths: tuple[str, ...]


async def look_around(desk: Desk, name: str) -> None:
    """Tell this run and the other one of every live branch that collides with what was just delivered."""
    trip = desk.trip

    async def work(step: Step) -> list[_Other]:
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
            others.append(
                _Other(run_id=run_id, branch=each.other, paths=tuple(paths[:_MOST_PATHS]))
            )
    return others


async def _is_live(desk: Desk, run_id: str) -> bool:
    run = await desk.kit.purse.store.read(lambda view: view.run(run_id))
    return run is not None and not run.status.ended


def _seen(branch: str, other: str, run_id: str, collision: _Other) -> CollisionSeen:
    return CollisionSeen(branch=branch, other_branch=other, other_run=run_id, paths=collision.paths)
