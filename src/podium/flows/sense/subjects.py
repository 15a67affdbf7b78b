"""What is not proposed again: a subject that waits, or that was settled a short while ago."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from podium.domain.sensing import Candidate
from podium.domain.work import Run
from podium.flows.sense.kit import CANDIDATE, SenseKit
from podium.ports import FlowContext, RunQuery, Step, View

MOST_LOOKED_AT = 1_000
SETTLED = ("delivered", "rejected", "approved")


async def held_back(
    ctx: FlowContext, kit: SenseKit, candidates: Sequence[Candidate]
) -> dict[str, str]:
    """Candidates that are not put forward now, each with why."""
    if not candidates:
        return {}

    async def look(step: Step) -> dict[str, str]:
        return await kit.store.read(partial(_found, kit, candidates))

    return await ctx.step("held-back", look)


def _found(kit: SenseKit, candidates: Sequence[Candidate], view: View) -> dict[str, str]:
    since = view.now() - timedelta(seconds=kit.options.again_seconds)
    newest: dict[str, Run] = {}
    for run in view.runs(RunQuery(flow=CANDIDATE, limit=MOST_LOOKED_AT)):
        if isinstance(run.input, dict):
            newest.setdefault(str(run.input.get("subject")), run)
    reasons = {
        each.wo_id: _why(newest[each.subject], since)
        for each in candidates
        if each.subject in newest
    }
    return {wo_id: why for wo_id, why in reasons.items() if why}


def _why(run: Run, since: datetime) -> str:
    wo_id = run.input.get("wo_id")
    if not run.status.ended:
        return f"{wo_id} about the same subject waits already"
    state = run.result.get("state", "") if isinstance(run.result, dict) else ""
    if state in SETTLED and run.finished_at is not None and run.finished_at > since:
        return f"{wo_id} about the same subject was {state} a short while ago"
    return ""
