"""A run goes again from one of its steps."""

from __future__ import annotations

from podium.domain.errors import BadInput
from podium.domain.work import Run
from podium.ports import Engine, Store, View
from podium.usecases.find_id import find_id


async def retry(
    store: Store, engine: Engine, run: str, *, from_step: str | None = None, by: str
) -> Run:
    """Forget a step and all after it, and host the run here. Without a step: from what failed."""
    run_id = await store.read(lambda view: _checked(view, run, from_step))
    return await engine.retry(run_id, from_step=from_step, by=by)


def _checked(view: View, run: str, from_step: str | None) -> str:
    run_id = find_id(view, "run", run)
    if from_step is not None:
        keys = [step.key for step in view.steps(run_id)]
        if from_step not in keys:
            raise BadInput(
                f"run {run_id} has no step {from_step!r}; its steps: {', '.join(keys) or 'none'}"
            )
    return run_id
