"""Where candidates stand, read off their runs."""

from __future__ import annotations

from contextlib import aclosing

from podium.domain.events import RunCancelRequested
from podium.domain.model import Json
from podium.domain.sensing import Candidate, CandidateStanding, Planned, PlannerStatus
from podium.domain.work import Run, RunStatus
from podium.flows.sense.evidence import writer_said
from podium.flows.sense.kit import SENSE
from podium.ports import EventQuery, RunQuery, Store, View

AT_REST = (RunStatus.WAITING, RunStatus.NEEDS_HUMAN)
PUT_OFF = (
    "put off: a quota is used up, the mode was lowered or a folder could not be written; it is tried again every "
    "five minutes"
)


async def standings_of(store: Store, run: Run) -> tuple[CandidateStanding, ...]:
    """Where the candidates of a plan stand once none of them goes on by itself."""
    if run.status is not RunStatus.SUCCEEDED or not isinstance(run.result, dict):
        return ()
    runs: dict[str, str] = run.result["runs"]
    held: dict[str, str] = run.result["held_back"]
    planned = Planned.model_validate(run.result["planned"])
    kept_back = [
        CandidateStanding(
            wo_id=each.wo_id,
            state="held back",
            why=held[each.wo_id],
            title=each.suggestion.title,
            target=each.item.target,
        )
        for each in planned.plan.candidates
        if each.wo_id in held
    ]
    return (*await at_rest(store, runs), *kept_back)


async def at_rest(store: Store, runs: dict[str, str]) -> list[CandidateStanding]:
    found: list[CandidateStanding | None] = []
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            found = await store.read(lambda view: _looked_at(view, runs))
            if all(each is not None for each in found):
                break
    return [each for each in found if each is not None]


def _looked_at(view: View, runs: dict[str, str]) -> list[CandidateStanding | None]:
    found = [view.run(run_id) for run_id in runs.values()]
    # One that the record has forgotten has ended long ago.
    return [standing_of(view, run) for run in found if run is not None]


def standing_of(view: View, run: Run) -> CandidateStanding | None:
    """Where a candidate stands, by its run; None while it goes on by itself."""
    standing = _standing(view, run)
    if standing is None:
        return None
    return standing.model_copy(update={"cannot": writer_said(view, run.id)})


def _standing(view: View, run: Run) -> CandidateStanding | None:
    if run.status is RunStatus.SUCCEEDED:
        return CandidateStanding.model_validate(run.result)
    order: dict[str, Json] = run.input["order"]
    asked = view.approvals(run_id=run.id)
    weighed = asked[0].arguments if asked else {}
    common = {
        "wo_id": run.input["wo_id"],
        "run_id": run.id,
        "title": order.get("title", ""),
        "target": order.get("target", ""),
        "approval_id": asked[0].id if asked else "",
        "tier": weighed.get("tier", ""),
        "zones": tuple(weighed.get("zones", ())),
    }
    if run.status in AT_REST:
        why = PUT_OFF if run.only_sleeps else f"waits for {run.waiting_for}"
        if _is_gone(view, run):
            why = f"{why}; the newest plan does not ask for it any more"
        return CandidateStanding(state="waiting", why=why, **common)
    if run.status is RunStatus.CANCELLED:
        return CandidateStanding(state="expired", why=_why_cancelled(view, run), **common)
    if run.status.ended:
        why = run.failure.message if run.failure else str(run.status)
        return CandidateStanding(state="refused", why=why, **common)
    return None


def _is_gone(view: View, run: Run) -> bool:
    """Whether what it is about is no longer in the plan, as far as the last planner that answered knows."""
    for newest in view.runs(RunQuery(flow=SENSE, statuses=(RunStatus.SUCCEEDED,), limit=1)):
        planned: dict[str, Json] = newest.result["planned"]
        if planned["status"] != PlannerStatus.OK or newest.created_at <= run.created_at:
            return False
        asked = (Candidate.model_validate(each) for each in planned["plan"]["candidates"])
        return run.input["subject"] not in {each.subject for each in asked}
    return False


def _why_cancelled(view: View, run: Run) -> str:
    wished = view.events(EventQuery(run_id=run.id, types=("run_cancel_requested",)))
    for event in wished:
        if isinstance(event.body, RunCancelRequested):
            return event.body.why or f"cancelled by {event.body.by}"
    return str(run.status)
