"""Lookup of candidates and their approvals by the id of a work order or a prefix of it, a run or an approval."""

from __future__ import annotations

from collections.abc import Iterator

from podium.core.decisions import ApprovalStatus
from podium.core.errors import AmbiguousId, UnknownId
from podium.core.work import Run
from podium.jobs.sense.job import CANDIDATE
from podium.ports import RunQuery, StoreView

PAGE = 500


def candidate_runs(view: StoreView) -> Iterator[Run]:
    """Every candidate there ever was, newest first."""
    query = RunQuery(flow=CANDIDATE, limit=PAGE)
    while page := view.runs(query):
        yield from page
        query = query.model_copy(update={"before_id": page[-1].id})


def wo_id_of(run: Run) -> str:
    return str(run.input.get("wo_id", "")) if isinstance(run.input, dict) else ""


def find_candidate(view: StoreView, text: str) -> Run:
    """Find a candidate's run. Raises `UnknownId`, or `AmbiguousId` with the candidates."""
    prefix = text.strip()
    by_order = _by_order(view, prefix)
    if len(by_order) > 1:
        raise AmbiguousId("candidate", text, [wo_id_of(run) for run in by_order])
    run = by_order[0] if by_order else _by_own_id(view, prefix)
    if run is None:
        raise UnknownId("candidate", text)
    return run


def find_approval(view: StoreView, text: str) -> str:
    """Find the approval of a work order, by its id or a prefix; empty when there is none.

    Raises `AmbiguousId` for a prefix of several.
    """
    runs = _by_order(view, text.strip())
    if len(runs) > 1:
        raise AmbiguousId("candidate", text, [wo_id_of(run) for run in runs])
    approvals = view.approvals(run_id=runs[0].id) if runs else []
    pending = [approval for approval in approvals if approval.status is ApprovalStatus.PENDING]
    return next((approval.id for approval in (*pending, *approvals)), "")


def _by_order(view: StoreView, prefix: str) -> list[Run]:
    if not prefix:
        return []
    matches: dict[str, Run] = {}
    for run in candidate_runs(view):
        wo_id = wo_id_of(run)
        if wo_id == prefix:
            return [run]
        if wo_id.startswith(prefix):
            matches.setdefault(wo_id, run)
    # Whoever says a short form means what waits, not what has ended under a like name.
    waiting = [run for run in matches.values() if not run.status.ended]
    return waiting or list(matches.values())


def _by_own_id(view: StoreView, prefix: str) -> Run | None:
    runs = [view.run(run_id) for run_id in view.find_ids("run", prefix)]
    for approval_id in view.find_ids("approval", prefix):
        approval = view.approval(approval_id)
        runs.append(view.run(approval.run_id) if approval else None)
    candidates = [run for run in runs if run is not None and run.flow == CANDIDATE]
    return candidates[0] if len(candidates) == 1 else None
