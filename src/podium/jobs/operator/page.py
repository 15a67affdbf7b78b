"""Operator's page: message in, five-block answer out, receipts as they come, and undo."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from podium.app.id_lookup import find_id
from podium.app.receipts import proven
from podium.app.run_list import with_host_status
from podium.app.work_request import queues_of
from podium.app.workload import see_queues
from podium.core.errors import PodiumError
from podium.core.model import Json
from podium.core.work import Run
from podium.jobs.operator import OPERATOR
from podium.jobs.operator.answer_blocks import block_lines
from podium.jobs.operator.composition import (
    answer_of_run,
    chosen_packs,
    habits_of,
    operator_options,
    operator_run,
    undo,
)
from podium.jobs.operator.message_context import context_value
from podium.jobs.operator.models import CallResult, OperatorAnswer, OperatorMode
from podium.jobs.operator.submission import CONSOLE, ask
from podium.ports import RunQuery, StoreView
from podium.web.access.authentication import Operator, Viewer
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import CurrentContext, WebContext
from podium.web.live.sse import Part, Topic, streamed, topic_updates
from podium.web.pages.templates import page, render

HINTS = {
    "INTENT": "what was understood",
    "PLAN": "what would be done",
    "RESULT": "what was done",
    "TOOL IMPACT": "what it affects",
    "RISKS / GATES": "risks and approvals",
    "NEXT ACTIONS": "what you can do now",
}
UNDER_WAY = ("awaiting_approval", "enqueued")
MAX_FIELDS = 12


@dataclass(frozen=True)
class AnswerBlock:
    """One of the five: facts with a name, and other lines beneath them."""

    title: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]

    @property
    def hint(self) -> str:
        return HINTS[self.title]


@dataclass(frozen=True)
class CallView:
    """A call of the plan, with what proves that it was done."""

    result: CallResult
    tier: str
    undo: str
    """The tool that takes it back; empty where nothing does."""
    receipt: str
    """`RUN#NUMBER`; empty before there is one."""

    @property
    def checks(self) -> int:
        """Rows that were read back to see that it is true."""
        rows = self.result.fields.get("verification")
        return len(rows) if isinstance(rows, list) else 0


@dataclass(frozen=True)
class AnswerView:
    """An answer as the template takes it."""

    answer: OperatorAnswer
    blocks: tuple[AnswerBlock, ...]
    calls: tuple[CallView, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    """Context sent with the message, to be sent again."""
    proof: str = ""
    """Result of verifying the receipt chain; empty before it was verified."""
    is_proven: bool = False
    queue_problem: str = ""
    """Reason why nobody serves the queue, with the next step."""

    @property
    def is_under_way(self) -> bool:
        return self.answer.run_id is not None and self.answer.status in UNDER_WAY

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of what the message lacks, each to be filled in."""
        classification = self.answer.classification
        if self.answer.status != "clarify" or classification is None:
            return ()
        names = (
            part.strip()
            for evidence in classification.missing_evidence
            for part in evidence.split(" or ")
        )
        return tuple(dict.fromkeys(name for name in names if name))[:MAX_FIELDS]

    @property
    def can_be_done(self) -> bool:
        """True if it was only looked at, and could be done."""
        return self.answer.status in ("analyzed", "planned") and self.answer.plan is not None

    @property
    def could_be_planned(self) -> bool:
        return self.can_be_done and self.answer.mode is OperatorMode.ANALYZE


def answer_view(
    answer: OperatorAnswer,
    *,
    context: Mapping[str, str] | None = None,
    problems: Sequence[str] | None = None,
    queue_problem: str = "",
) -> AnswerView:
    """`problems` are those of the receipts' chain; None: nobody looked at it."""
    return AnswerView(
        answer=answer,
        blocks=tuple(_block(title, lines) for title, lines in block_lines(answer).items()),
        calls=tuple(_calls(answer)),
        context=context or {},
        proof="" if problems is None else "; ".join(problems) or "sound",
        is_proven=problems is not None and not problems,
        queue_problem=queue_problem,
    )


def _block(title: str, lines: Sequence[str]) -> AnswerBlock:
    """Lines that begin at the margin name a fact; what is indented belongs to what stands above it."""
    facts, others = list[tuple[str, str]](), list[str]()
    for line in lines:
        name, separator, value = line.partition(": ")
        if separator and not line.startswith(" ") and not others:
            facts.append((name, value))
        else:
            others.append(line)
    return AnswerBlock(title, tuple(facts), tuple(others))


def _calls(answer: OperatorAnswer) -> Iterator[CallView]:
    steps = {step.number: step for step in answer.plan.steps} if answer.plan else {}
    for result in answer.results:
        step = steps.get(result.number)
        name = f"{answer.run_id}#{result.receipt}" if result.receipt is not None else ""
        yield CallView(
            result=result,
            tier=str(step.tier) if step else "",
            undo=(step.undo or "") if step else "",
            receipt=name,
        )


def context_texts(form: Mapping[str, Json]) -> dict[str, str]:
    """Read the context's fields of a form, without those that were left empty."""
    return {
        name.removeprefix(FIELD): str(text).strip()
        for name, text in form.items()
        if name.startswith(FIELD) and str(text).strip()
    }


FIELD = "known."
"""Prefix of the context's fields in a form."""


router = APIRouter()

MAX_RUNS = 20
MAX_RECENT = 10
SETTLE_SECONDS = 1.0
MOVING = (
    "approval_requested", "approval_granted", "approval_rejected", "approval_expired",
    "tool_requested", "tool_completed", "tool_failed", "tool_in_doubt", "tool_abandoned", "tool_refused",
    "run_queued", "run_started", "run_succeeded", "run_failed", "run_cancelled", "run_needed_human", "run_parked",
)  # fmt: skip
"""Events after which an answer reads otherwise."""


@router.get("/operator")
async def operator_page(request: Request, context: CurrentContext, person: Viewer) -> Response:
    return page(request, "operator.html", **await _around(context, person), shown=None)


@router.get("/operator/{run_id}")
async def answer_page(
    request: Request, context: CurrentContext, person: Viewer, run_id: str
) -> Response:
    """The answer that a run of the operator stands at."""
    view = await _run_view(context, await _run(context, run_id), look=True)
    return page(request, "operator.html", **await _around(context, person), shown=view)


@router.post("/operator/ask")
async def ask_operator(
    request: Request,
    context: CurrentContext,
    person: Operator,
    text: Annotated[str, Form(max_length=100_000)] = "",
    mode: Annotated[str, Form(max_length=40)] = OperatorMode.ANALYZE,
) -> Response:
    texts = context_texts(dict(await request.form(max_fields=100, max_files=0)))
    values = {name: context_value(value) for name, value in texts.items()}
    answer = await ask(
        context.podium, text, mode=mode, context=values, by=person.name, session=CONSOLE
    )
    return await _answered(request, context, person, answer, texts)


@router.post("/operator/undo")
async def take_back(
    request: Request,
    context: CurrentContext,
    person: Operator,
    receipt: Annotated[str, Form(max_length=200)],
    mode: Annotated[str, Form(max_length=40)] = OperatorMode.PLAN,
) -> Response:
    """The plan that reverses a receipt. It is gated like any other, so nothing is undone by this alone."""
    chosen = OperatorMode.ENQUEUE if mode == OperatorMode.ENQUEUE else OperatorMode.PLAN
    answer = await undo(context.podium, receipt, mode=chosen, by=person.name)
    return await _answered(request, context, person, answer, {}, undoes=receipt)


@router.get("/live/operator")
async def live_before(context: CurrentContext, person: Viewer) -> Response:
    """Says `before` whenever an earlier run may stand otherwise."""
    return streamed(topic_updates(context.hub, [Topic("before", MOVING)], SETTLE_SECONDS))


@router.get("/live/operator/{run_id}")
async def live_answer(context: CurrentContext, person: Viewer, run_id: str) -> Response:
    return streamed(_moving(context, person, await _run(context, run_id)))


async def _moving(context: WebContext, person: Person, run: Run) -> AsyncIterator[Part]:
    """The answer now, and again after everything that changes it."""
    yield await _part(context, person, run.id)
    async with aclosing(context.hub.follow(run.id, types=MOVING)) as happening:  # type: ignore[type-var]  # a hub gives async generators
        async for _ in happening:
            yield await _part(context, person, run.id)
    yield await _part(context, person, run.id)


async def _part(context: WebContext, person: Person, run_id: str) -> Part:
    run = await _run(context, run_id)
    view = await _run_view(context, run, look=run.status.ended)
    values = {"shown": view, "person": person, "now": context.podium.clock.now()}
    return Part(render("operator_live.html", **_rights(person), **values), event="answer")


async def _answered(
    request: Request,
    context: WebContext,
    person: Person,
    answer: OperatorAnswer,
    texts: dict[str, str],
    *,
    undoes: str = "",
) -> Response:
    queue_problem = await _queue_problem(context, answer)
    view = answer_view(answer, context=texts, queue_problem=queue_problem)
    return page(request, "operator_answer.html", shown=view, undoes=undoes, **_rights(person))


async def _run(context: WebContext, text: str) -> Run:
    def find(view: StoreView) -> Run:
        return operator_run(view, find_id(view, "run", text))

    return await (await context.store()).read(find)


async def _run_view(context: WebContext, run: Run, *, look: bool) -> AnswerView:
    """With `look` the chain of its receipts is verified, too."""
    answer = await answer_of_run(context.podium, run)
    problems = (
        await _receipt_problems(context, run.id)
        if look and any(e.receipt for e in answer.results)
        else None
    )
    return answer_view(
        answer, problems=problems, queue_problem=await _queue_problem(context, answer)
    )


async def _receipt_problems(context: WebContext, run_id: str) -> list[str]:
    try:
        return [problem.problem for problem in (await proven(context.podium, run_id)).faults]
    except PodiumError as error:
        return [str(error)]


async def _queue_problem(context: WebContext, answer: OperatorAnswer) -> str:
    """Explain why nobody serves the queue."""
    if answer.status != "enqueued":
        return ""
    podium = context.podium
    overview = await see_queues(
        await context.store(), podium.engine, queues_of(podium.configuration)
    )
    queue = operator_options(podium).queue
    return next((row.trouble for row in overview.queues if row.name == queue), "")


async def _around(context: WebContext, person: Person) -> dict[str, Any]:
    """Load earlier runs and messages, which the page shows beside every answer."""
    podium, runs = context.podium, list[Run]()
    if podium.has_record:
        query = RunQuery(flow=OPERATOR, limit=MAX_RUNS)
        runs = await (await context.store()).read(lambda view: view.runs(query))
    habits_by_text = {habit.said: habit for habit in habits_of(podium).all()}
    return {
        "runs": await with_host_status(runs, podium.engine),
        "habits": list(reversed(habits_by_text.values()))[:MAX_RECENT],
        "pack": ", ".join(chosen_packs(podium).names),
        "undoes": "",
        **_rights(person),
    }


def _rights(person: Person) -> dict[str, Any]:
    return {
        "may_ask": person.may(ConsoleRole.OPERATOR),
        "may_answer": person.may(ConsoleRole.APPROVER),
    }
