"""Planner turn: prompt with the situation, an agent or rules, and a plan at the end, perhaps an empty one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from podium.agents.turn_step import RoleAgent, ask
from podium.core.decisions import Usage, canonical_json
from podium.core.errors import (
    AgentNotLoggedIn,
    BudgetSpent,
    Interrupted,
    LeaseLost,
    NotPossibleNow,
    PodiumError,
    ToolMissing,
)
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.turns import Reply, Turn
from podium.core.work import Run, RunStatus
from podium.jobs.sense.candidate_status import status_of
from podium.jobs.sense.deps import SenseDeps, SenseJob, recorded_without
from podium.jobs.sense.job import CANDIDATE, WORK_ORDER
from podium.jobs.sense.models import Bundle, ParsedPlan, Planned, PlannerStatus
from podium.jobs.sense.options import Profile, SenseOptions
from podium.jobs.sense.planning.bundle import ONLY_DATA, as_data, bundle_json, clean_line, cut
from podium.jobs.sense.planning.plan_parser import parse_plan
from podium.jobs.sense.planning.plan_schema import item_schema, operations_text, zones_text
from podium.ports import Agent, FlowContext, RunQuery, StepContext, StoreView

MAX_RUNS = 200
MAX_LISTED = 20
MAX_LINE_LENGTH = 500


class Situation(FrozenModel):
    """Candidates that wait or were rejected when the planner is asked, newest first."""

    now: UtcDatetime
    waiting: tuple[dict[str, Json], ...] = ()
    rejected: tuple[dict[str, Json], ...] = ()


async def situation(ctx: FlowContext, deps: SenseDeps, *, before: str) -> Situation:
    """Read the situation once per run, as a step in front of the step `before`."""
    run_id = ctx.run.id

    async def look(step: StepContext | None = None) -> Situation:
        now = deps.clock.now()
        return await deps.store.read(lambda view: _situation_at(view, now))

    if await deps.store.read(
        lambda view: recorded_without(view, run_id, "situation", before=before)
    ):
        return await look()
    return await ctx.step("situation", look, returns=Situation)


def _situation_at(view: StoreView, now: UtcDatetime) -> Situation:
    waiting, rejected = [], []
    for run in view.runs(RunQuery(flow=CANDIDATE, limit=MAX_RUNS)):
        status = status_of(view, run)
        if status is None:
            continue
        about: dict[str, Json] = {
            "target": _line(status.target),
            "title": _line(status.title),
            "proposed": run.created_at.isoformat(),
        }
        if status.state == "waiting":
            waiting.append(about)
        if status.state == "rejected":
            rejected.append({**about, "reason": _line(status.why) or "no reason given"})
    stuck = RunQuery(flow=WORK_ORDER, statuses=(RunStatus.NEEDS_HUMAN,), limit=MAX_LISTED)
    waiting += [_stuck(run) for run in view.runs(stuck)]
    return Situation(
        now=now, waiting=tuple(waiting[:MAX_LISTED]), rejected=tuple(rejected[:MAX_LISTED])
    )


def _stuck(run: Run) -> dict[str, Json]:
    order = (run.input or {}).get("order") or {}
    return {
        "target": _line(str(order.get("target") or "")),
        "title": _line(str(order.get("title") or "")),
        "proposed": run.created_at.isoformat(),
        "now": "the worker has the order and needs a person",
    }


def _line(text: str) -> str:
    return cut(clean_line(text), MAX_LINE_LENGTH)


def situation_text(situation: Situation) -> str:
    """The sections of a prompt that tell of it."""
    return "\n\n".join(
        (
            f"# Now\n{situation.now:%Y-%m-%d %H:%M} UTC, a {situation.now:%A}.",
            f"# What waits for a person\n{_listed(situation.waiting)}",
            f"# What people rejected, and why\n{_listed(situation.rejected)}",
        )
    )


def _listed(records: Sequence[dict[str, Json]]) -> str:
    if not records:
        return "Nothing."
    return as_data("\n".join(json.dumps(record, ensure_ascii=False) for record in records))


MOCK_SOURCE = "mock"

_DELIVERABLE = """\
# What to deliver
One plan, with an item for each thing that should be done or that people should know, and no items for what works. If everything works, `items` is empty."""
_RULES = """\
# Rules
- Do not propose again what is waiting for a person. Propose something that was rejected only if the state shows what the \
person could not know, and say in the summary what that is.
- `context_summary` describes the state of the system in a sentence or two. `target` names what an item is about, such as `opal_api`.
- `type`: `health_fix` for something that does not work, `clc_task` for other work on files and programs, `telemetry` for what should be \
measured or recorded, `info` for what people should only know.
- `alert` and `log` describe the problem in `message`. `create_wo` needs `wo_suggestion`, with a `wo_id_hint` of letters, \
digits and dashes, a `title`, and the steps in `tasks`, each of them checkable. An item of the type `noop` or `info` creates \
no work order."""


PLAN = "plan"
"""The step of the planner's answer."""


class PlanReply(BaseModel):
    """The plan. `items` is empty when nothing should be done."""

    # What a model adds beyond the schema is dropped by the parser, and no reason to ask again.
    model_config = ConfigDict(extra="allow")

    timestamp: str = ""
    source: str = ""
    context_summary: str = ""
    items: list[dict[str, Any]] = Field(json_schema_extra={"items": item_schema()})


async def planned(ctx: FlowContext, deps: SenseDeps, job: SenseJob) -> Planned:
    """The plan for a bundle. Never raises for what the planner does or fails to do."""
    planner = deps.planner
    if planner.rules is not None:
        rules, now = planner.rules, await ctx.now("planning")

        async def by_rules(step: StepContext) -> Json:
            return rules(job.bundle, now)

        document = await ctx.step(PLAN, by_rules)
        return _read(document, job, planner.name, ctx.run.id)
    if planner.role_agent is None or planner.profile is None:
        now = await ctx.now("planning")
        return _mock(PlannerStatus.MOCK, planner.name, planner.absent, now)
    return await _asked(ctx, deps, job, planner.role_agent, planner.profile)


async def _asked(
    ctx: FlowContext, deps: SenseDeps, job: SenseJob, agent: RoleAgent, profile: Profile
) -> Planned:
    sheltered = RoleAgent(
        role=agent.role,
        agent=_Sheltered(agent.agent),
        allowed_tools=(),
        limits=agent.limits,
    )
    if spent := await _spent(ctx, deps):
        return _mock(PlannerStatus.ERROR, agent.agent.name, spent, await ctx.now("planning"))
    state = await situation(ctx, deps, before=PLAN)
    reply = await ask(
        ctx, sheltered, planning_prompt(profile, job.bundle, state, deps.options),
        budget=deps.budget, name=PLAN, workspace=deps.planner.workspace,
        contract=PlanReply, provenance=job.bundle.provenance,
    )  # fmt: skip
    now = await ctx.now("planning")
    failure = _PlannerFailure.of(reply)
    if failure is not None:
        return _mock(failure.status, reply.agent or agent.agent.name, failure.why, now, reply.usage)
    name = reply.agent or agent.agent.name
    if _is_echo(reply.payload, job.bundle):
        why = "it returned a plan that was part of its input"
        return _mock(PlannerStatus.ERROR, name, why, now, reply.usage)
    return _read(reply.payload, job, name, ctx.run.id, reply.usage)


async def _spent(ctx: FlowContext, deps: SenseDeps) -> str:
    """Return the message of the budget that has nothing left; empty when none has."""

    async def look(step: StepContext) -> str:
        try:
            await deps.budget.check(ctx.run, step.key)
        except BudgetSpent as error:
            return str(error)
        return ""

    return await ctx.step("afford", look)


def planning_prompt(
    profile: Profile, bundle: Bundle, state: Situation, options: SenseOptions
) -> str:
    """The profile's words, what is known as data that is nobody's instruction, and the rules of a plan."""
    zones = zones_text(options.safe_zones, options.forbidden_zones)
    return (
        f"{profile.system.rstrip()}\n\n"
        f"{ONLY_DATA}\n\n"
        f"{situation_text(state)}\n\n"
        f"# The state of the system\n{as_data(bundle_json(bundle))}\n\n"
        f"{_DELIVERABLE}\n\n"
        f"{_RULES}\n"
        f"- A work order is a list of these operations: {operations_text()}. {zones} Do not write a work order for "
        "anything else: tell people about it with an `alert`. `tasks` describe the work in text, for people and the worker; "
        "`ops` are the same work as operations, performed exactly as written. Give `ops` if you know all of their fields; "
        "otherwise leave `ops` out: they are written from the `tasks`.\n"
    )


def _read(
    document: Json, job: SenseJob, planner: str, salt: str, usage: Usage | None = None
) -> Planned:
    plan = parse_plan(document, salt=salt)
    status = PlannerStatus.ERROR if plan.error else PlannerStatus.OK
    return Planned(
        status=status,
        planner=planner,
        why=plan.error,
        plan=plan,
        document=document,
        usage=usage or Usage(),
    )


def _mock(
    status: PlannerStatus, planner: str, why: str, now: datetime, usage: Usage | None = None
) -> Planned:
    """An empty plan in place of the planner's own, and why."""
    document = {
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": MOCK_SOURCE,
        "context_summary": f"No plan from {planner or 'a planner'}: {why}",
        "items": [],
    }
    return Planned(
        status=status,
        planner=planner,
        why=why,
        plan=ParsedPlan(source=MOCK_SOURCE, context_summary=document["context_summary"]),  # type: ignore[arg-type]
        document=document,
        usage=usage or Usage(),
    )


def _is_echo(payload: Json, bundle: Bundle) -> bool:
    """True if the plan already stands in the data: an echo must not be taken for an answer."""
    items = _bare(payload)
    return any(_holds(sensed.content, items) for look in bundle.looks for sensed in look.found)


def _bare(payload: Json) -> Json:
    return payload.get("items") if isinstance(payload, dict) else payload


def _holds(value: Json, items: Json) -> bool:
    if not items:
        return False
    if isinstance(value, dict):
        if value.get("items") == items:
            return True
        return any(_holds(item, items) for item in value.values())
    if isinstance(value, list):
        return any(_holds(item, items) for item in value)
    return isinstance(value, str) and canonical_json(items) in value.replace(" ", "")


class _PlannerFailure(BaseModel):
    """Reason why a planner gave no plan, as it stands in a reply that was made of its failure."""

    status: PlannerStatus
    why: str

    @classmethod
    def of(cls, reply: Reply) -> _PlannerFailure | None:
        reply_payload = reply.payload
        if isinstance(reply_payload, dict) and set(reply_payload) == {"podium_trouble"}:
            return cls.model_validate(reply_payload["podium_trouble"])
        return None


class _Sheltered:
    """An agent whose failures are answers: a tick goes on without its plan."""

    def __init__(self, inner: Agent) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    async def ask(self, turn: Turn) -> Reply:
        try:
            return await self._inner.ask(turn)
        except (Interrupted, LeaseLost, BudgetSpent):
            raise
        except PodiumError as error:
            absent = isinstance(error, ToolMissing | AgentNotLoggedIn | NotPossibleNow)
            status = PlannerStatus.MOCK if absent else PlannerStatus.ERROR
            failure = _PlannerFailure(status=status, why=str(error))
            used: Usage | None = getattr(error, "usage", None)
            return Reply(
                text="",
                payload={"podium_trouble": failure.model_dump(mode="json")},
                agent=self.name,
                usage=used or Usage(turns=0 if absent else 1, complete=absent),
            )
