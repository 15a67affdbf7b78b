"""The story of a duet: a planner plans a task, an executer carries it out, until the planner reports that it is done."""

from __future__ import annotations

from podium.domain.duets import DuetJob, DuetResult
from podium.domain.errors import ReplyInvalid
from podium.domain.ids import short_id
from podium.domain.messages import Message
from podium.domain.model import Json
from podium.flows.duet.kit import DuetKit
from podium.flows.duet.legs import Router, Words
from podium.flows.duet.prompting import plan_words, result_words, task_words
from podium.flows.duet.seating import seated
from podium.ports import FlowBody, FlowContext


def play_duet(kit: DuetKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def play(ctx: FlowContext, job: DuetJob) -> Json:
        # The terminals of a pair are on this host.
        await ctx.pin()
        pair = await seated(ctx, kit, job)
        router = Router(ctx, kit, await kit.stage(pair), job.limits, task=short_id(ctx.run.id))
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


def _plan(plan: Message) -> Words:
    return lambda awaited, on_screen: plan_words(plan, awaited, on_screen=on_screen)


def _result(result: Message, *, may_go_on: bool) -> Words:
    return lambda awaited, on_screen: result_words(
        result, awaited, on_screen=on_screen, may_go_on=may_go_on
    )


def _result_of(report: Message, task: str, pair: str, rounds: int) -> DuetResult:
    if not report.body.strip():
        raise ReplyInvalid(
            f"PLANNER's report on task {task} is empty; `podium duet retry` asks again"
        )
    return DuetResult(done=True, report=report.body, rounds=rounds, task_id=task, pair=pair)
