"""Taking runs in Podium's own record for workflows that DBOS handed out: each function is part of one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from podium.domain.work import Run, RunStatus
from podium.engine.distributed.enqueueing import (
    asked,
    claimants,
    held_by,
    run_of,
    still_held,
    take_back,
)
from podium.engine.liveness import HELD, Roster
from podium.engine.ownership import Ownership
from podium.ports import Tx, View


class Held(NamedTuple):
    """What a worker has claimed and does not know of, by what should become of it."""

    mine: dict[tuple[str, int], tuple[str, str]]
    """Run and fence → workflow and token, of runs that are this worker's in the record."""
    queued: list[str]
    """Workflows whose runs still wait: they go back to the queue."""
    over: list[tuple[str, str]]
    """Workflow and token of runs that are over or somebody else's: they are settled."""


class Adoption:
    """What a worker may take, and what it takes from the dead."""

    def __init__(self, ownership: Ownership, roster: Roster) -> None:
        self._ownership = ownership
        self._roster = roster

    def adopt(self, tx: Tx, workflows: Sequence[str], token: str) -> list[Run | None]:
        """Take each run that its workflow still stands for. None: it is somebody else's, or over."""
        held = still_held(asked(tx), workflows, token)
        return [self._adopt_one(tx, *run_of(each)) if each in held else None for each in workflows]

    def _adopt_one(self, tx: Tx, run_id: str, fence: int) -> Run | None:
        run = tx.run(run_id)
        if run is None or run.status is not RunStatus.QUEUED or run.fence != fence:
            # Of several workflows of one run only the newest counts.
            return None
        return self._ownership.take(tx, run)

    def unaccounted(self, view: View, known: Collection[str]) -> Held:
        """What this worker has claimed beside the workflows it knows of: an answer was lost on the way."""
        found = Held({}, [], [])
        for workflow, token in held_by(asked(view), self._ownership.worker_id).items():
            if workflow in known:
                continue
            run_id, fence = run_of(workflow)
            run = view.run(run_id)
            if run is not None and run.status is RunStatus.QUEUED and run.fence == fence:
                found.queued.append(workflow)
            elif run is not None and self._is_mine(run, fence):
                found.mine[run_id, run.fence] = (workflow, token)
            else:
                found.over.append((workflow, token))
        return found

    def _is_mine(self, run: Run, queued_fence: int) -> bool:
        mine = run.owner == self._ownership.worker_id and run.fence == queued_fence + 1
        return mine and run.status in HELD

    def dead(self, view: View) -> set[str]:
        """Workers that are dead and still have claims or runs."""
        return (claimants(asked(view)) | view.owners()) - self._roster.alive(view)

    def release(self, tx: Tx, dead: Collection[str]) -> None:
        """Take their runs from the dead, who may come back: the fence refuses them from here on."""
        take_back(asked(tx), set(dead) - self._roster.alive(tx))
        for run in self._roster.orphans(tx):
            if run.owner not in dead:
                continue
            if run.cancel_requested:
                self._ownership.queue_orphan(tx, run)
            else:
                queue_anew(tx, run)


def queue_anew(tx: Tx, run: Run) -> None:
    """Queue under a new number: DBOS may still have a workflow under the old one."""
    update = {"status": RunStatus.QUEUED, "owner": None, "fence": run.fence + 1}
    tx.save_run(run.model_copy(update=update))
