"""What a planner cannot see in the state: the time, what waits for people, and what they rejected."""

from __future__ import annotations

import json
from collections.abc import Sequence

from podium.domain.model import Json, Moment, Noun
from podium.domain.work import Run, RunStatus
from podium.flows.sense.cleaning import as_data, clean_line, cut
from podium.flows.sense.kit import CANDIDATE, WORK_ORDER, SenseKit, recorded_without
from podium.flows.sense.standings import standing_of
from podium.ports import FlowContext, RunQuery, Step, View

MOST_RUNS = 200
MOST_TOLD = 20
LONGEST_TOLD = 500


class Situation(Noun):
    """At the moment in which the planner is asked. Newest first."""

    now: Moment
    waiting: tuple[dict[str, Json], ...] = ()
    rejected: tuple[dict[str, Json], ...] = ()


async def situation(ctx: FlowContext, kit: SenseKit, *, before: str) -> Situation:
    """Looked at once for a run, and remembered. `before` is the step that it is for."""
    run_id = ctx.run.id

    async def look(step: Step | None = None) -> Situation:
        now = kit.clock.now()
        return await kit.store.read(lambda view: _seen(view, now))

    if await kit.store.read(
        lambda view: recorded_without(view, run_id, "situation", before=before)
    ):
        return await look()
    return await ctx.step("situation", look, returns=Situation)


def _seen(view: View, now: Moment) -> Situation:
    waiting, rejected = [], []
    for run in view.runs(RunQuery(flow=CANDIDATE, limit=MOST_RUNS)):
        standing = standing_of(view, run)
        if standing is None:
            continue
        about: dict[str, Json] = {
            "target": _line(standing.target),
            "title": _line(standing.title),
            "proposed": run.created_at.isoformat(),
        }
        if standing.state == "waiting":
            waiting.append(about)
        if standing.state == "rejected":
            rejected.append({**about, "reason": _line(standing.why) or "none was given"})
    stuck = RunQuery(flow=WORK_ORDER, statuses=(RunStatus.NEEDS_HUMAN,), limit=MOST_TOLD)
    waiting += [_stuck(run) for run in view.runs(stuck)]
    return Situation(
        now=now, waiting=tuple(waiting[:MOST_TOLD]), rejected=tuple(rejected[:MOST_TOLD])
    )


def _stuck(run: Run) -> dict[str, Json]:
    order = (run.input or {}).get("order") or {}
    return {
        "target": _line(str(order.get("target") or "")),
        "title": _line(str(order.get("title") or "")),
        "proposed": run.created_at.isoformat(),
        "now": "the worker has it and needs a person",
    }


def _line(text: str) -> str:
    return cut(clean_line(text), LONGEST_TOLD)


def situation_words(seen: Situation) -> str:
    """The sections of a prompt that tell of it."""
    return "\n\n".join(
        (
            f"# Now\n{seen.now:%Y-%m-%d %H:%M} UTC, a {seen.now:%A}.",
            f"# What waits for a person\n{_listed(seen.waiting)}",
            f"# What people rejected, and why\n{_listed(seen.rejected)}",
        )
    )


def _listed(records: Sequence[dict[str, Json]]) -> str:
    if not records:
        return "Nothing."
    return as_data("\n".join(json.dumps(each, ensure_ascii=False) for each in records))
