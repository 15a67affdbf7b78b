"""Flow of a duet: reserve a free pair, then pass plans and results between planner and executer until the planner reports."""

from __future__ import annotations

from podium.core.errors import LockHeld, ReplyInvalid
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.turns import MessageBlock
from podium.jobs.duet.events import PairSeated
from podium.jobs.duet.message_router import DuetDeps, MessageRouter, Words
from podium.jobs.duet.models import DUET, DuetJob, DuetResult, Pair
from podium.jobs.duet.prompts import plan_words, result_words, task_words
from podium.ports import FlowBody, FlowContext, RunQuery, StepContext, StoreView, Transaction

SEAT = "seat"
MAX_RUNS = 10_000


async def seated(ctx: FlowContext, kit: DuetDeps, job: DuetJob) -> Pair:
    """A pair that is this task's alone until its run has ended. Raises `LockHeld` when none is free."""

    async def take(step: StepContext) -> Pair:
        changes = kit.store.changes()
        while (pair := await kit.store.write(lambda tx: _taken(tx, step, job))) is None:
            if not job.patient:
                raise await kit.store.read(lambda view: _held(view, step.run_id))
            await anext(changes)
        return pair

    pair = await ctx.step(SEAT, take, returns=Pair)
    # Not a step: a task that had ended and goes on may find another one there.
    changes = kit.store.changes()
    while held := await kit.store.read(lambda view: _held_by_other(view, ctx.run.id, pair)):
        if not job.patient:
            raise held
        await anext(changes)
    return pair


def holders(view: StoreView, but_not: str = "") -> dict[str, str]:
    """Pairs that are at work: name → id of the run that holds it."""
    found: dict[str, str] = {}
    for run in view.runs(RunQuery(flow=DUET, limit=MAX_RUNS)):
        step = None if run.status.ended or run.id == but_not else view.step(run.id, SEAT)
        output = step.output if step is not None else None
        if isinstance(output, dict):
            found[str(output.get("name"))] = run.id
    return found


def _taken(tx: Transaction, step: StepContext, job: DuetJob) -> Pair | None:
    """Look and take in one transaction: of two tasks only one gets the pair."""
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
    told = ", ".join(
        f"{name!r} works on task {short_id(holder)}"
        for name, holder in holders(view, but_not=run_id).items()
    )
    return LockHeld(
        f"no pair is free: {told}; wait for it, `podium duet queue add` the task, end that one with "
        "`podium duet abort TASK`, or go on with it by `podium resume TASK` where nobody works on it"
    )


def play_duet(kit: DuetDeps) -> FlowBody:
    """The flow, with its kit in hand."""

    async def play(ctx: FlowContext, job: DuetJob) -> Json:
        # The terminals of a pair are on this host.
        await ctx.pin()
        pair = await seated(ctx, kit, job)
        router = MessageRouter(
            ctx, kit, await kit.stage(pair), job.limits, task=short_id(ctx.run.id)
        )
        plan = await router.hear("PLANNER", 1, ("plan", "report"), _task(job.text))
        rounds = 1
        while plan.type == "plan":
            result = await router.hear("EXECUTER", rounds, ("result",), _plan(plan))
            is_last = rounds == job.limits.rounds
            plan = await router.hear(
                "PLANNER",
                rounds,
                ("report",) if is_last else ("report", "plan"),
                _result(result, may_go_on=not is_last),
                or_words=True,
            )
            rounds += plan.type == "plan"
        return _result_of(plan, router.task, pair.name, rounds).model_dump(mode="json")

    return play


def _task(text: str) -> Words:
    return lambda awaited, on_screen: task_words(text, awaited, on_screen=on_screen)


def _plan(plan: MessageBlock) -> Words:
    return lambda awaited, on_screen: plan_words(plan, awaited, on_screen=on_screen)


def _result(result: MessageBlock, *, may_go_on: bool) -> Words:
    return lambda awaited, on_screen: result_words(
        result, awaited, on_screen=on_screen, may_go_on=may_go_on
    )


def _result_of(report: MessageBlock, task: str, pair: str, rounds: int) -> DuetResult:
    if not report.body.strip():
        raise ReplyInvalid(
            f"PLANNER's report on task {task} is empty; `podium duet retry` asks again"
        )
    return DuetResult(done=True, report=report.body, rounds=rounds, task_id=task, pair=pair)
