"""Flow of a duet: reserve a free pair, then pass plans and results between planner and executer until the planner reports."""

from __future__ import annotations

from podium.core.errors import LockHeld, ReplyInvalid
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.turns import MessageBlock
from podium.jobs.duet.events import PairSeated
from podium.jobs.duet.message_router import DuetDeps, MessageRouter, PromptBuilder
from podium.jobs.duet.models import DUET, DuetJob, DuetResult, Pair
from podium.jobs.duet.prompts import plan_prompt, result_prompt, task_prompt
from podium.ports import FlowBody, FlowContext, RunQuery, StepContext, StoreView, Transaction

PAIR_STEP = "seat"
MAX_RUNS = 10_000


async def reserve_pair(ctx: FlowContext, deps: DuetDeps, job: DuetJob) -> Pair:
    """Reserve a pair for this task until its run has ended. Raises `LockHeld` when none is free."""

    async def take(step: StepContext) -> Pair:
        changes = deps.store.changes()
        while (pair := await deps.store.write(lambda tx: _taken(tx, step, job))) is None:
            if not job.patient:
                raise await deps.store.read(lambda view: _held(view, step.run_id))
            await anext(changes)
        return pair

    pair = await ctx.step(PAIR_STEP, take, returns=Pair)
    # Not a step: a task that had ended and goes on may find another one there.
    changes = deps.store.changes()
    while held := await deps.store.read(lambda view: _held_by_other(view, ctx.run.id, pair)):
        if not job.patient:
            raise held
        await anext(changes)
    return pair


def holders(view: StoreView, but_not: str = "") -> dict[str, str]:
    """Map the names of busy pairs to the runs that hold them."""
    run_ids: dict[str, str] = {}
    for run in view.runs(RunQuery(flow=DUET, limit=MAX_RUNS)):
        step = None if run.status.ended or run.id == but_not else view.step(run.id, PAIR_STEP)
        output = step.output if step is not None else None
        if isinstance(output, dict):
            run_ids[str(output.get("name"))] = run.id
    return run_ids


def _taken(tx: Transaction, step: StepContext, job: DuetJob) -> Pair | None:
    """Find and take a free pair in one transaction, so that only one of two tasks gets it."""
    busy = holders(tx)
    pair = next((pair for pair in job.pairs if pair.name not in busy), None)
    if pair is None:
        return None
    tx.append(
        step.run_id,
        PairSeated(
            pair=pair.name,
            planner=pair.planner.agent,
            executer=pair.executer.agent,
            transport=pair.transport,
        ),
    )
    step.checkpoint(tx, pair)
    return pair


def _held_by_other(view: StoreView, run_id: str, pair: Pair) -> LockHeld | None:
    return _held(view, run_id) if pair.name in holders(view, but_not=run_id) else None


def _held(view: StoreView, run_id: str) -> LockHeld:
    listing = ", ".join(
        f"{name!r} works on task {short_id(holder)}"
        for name, holder in holders(view, but_not=run_id).items()
    )
    return LockHeld(
        f"no pair is free: {listing}; wait for it, `podium duet queue add` the task, end that one with "
        "`podium duet abort TASK`, or go on with it by `podium resume TASK` where nobody works on it"
    )


def play_duet(deps: DuetDeps) -> FlowBody:
    """Build the flow."""

    async def play(ctx: FlowContext, job: DuetJob) -> Json:
        # The terminals of a pair are on this host.
        await ctx.pin()
        pair = await reserve_pair(ctx, deps, job)
        router = MessageRouter(
            ctx, deps, await deps.prepare_sides(pair), job.limits, task=short_id(ctx.run.id)
        )
        plan = await router.request_message("PLANNER", 1, ("plan", "report"), _task(job.text))
        rounds = 1
        while plan.type == "plan":
            result = await router.request_message("EXECUTER", rounds, ("result",), _plan(plan))
            is_last = rounds == job.limits.rounds
            plan = await router.request_message(
                "PLANNER",
                rounds,
                ("report",) if is_last else ("report", "plan"),
                _result(result, may_go_on=not is_last),
                or_plain_text=True,
            )
            rounds += plan.type == "plan"
        return _result_of(plan, router.task, pair.name, rounds).model_dump(mode="json")

    return play


def _task(text: str) -> PromptBuilder:
    return lambda awaited, on_screen: task_prompt(text, awaited, on_screen=on_screen)


def _plan(plan: MessageBlock) -> PromptBuilder:
    return lambda awaited, on_screen: plan_prompt(plan, awaited, on_screen=on_screen)


def _result(result: MessageBlock, *, may_go_on: bool) -> PromptBuilder:
    return lambda awaited, on_screen: result_prompt(
        result, awaited, on_screen=on_screen, may_go_on=may_go_on
    )


def _result_of(report: MessageBlock, task: str, pair: str, rounds: int) -> DuetResult:
    if not report.body.strip():
        raise ReplyInvalid(
            f"PLANNER's report on task {task} is empty; `podium duet retry` asks again"
        )
    return DuetResult(done=True, report=report.body, rounds=rounds, task_id=task, pair=pair)
