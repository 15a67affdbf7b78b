"""The operator's page: plain words in, the five-block answer out, receipts as they come, and the way back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from podium.domain.errors import PodiumError
from podium.domain.operating import OperatorAnswer, OperatorMode
from podium.domain.work import Run
from podium.flows.operator import OPERATOR
from podium.ports import RunQuery, View
from podium.usecases import find_id, how_they_stand, see_queues
from podium.web.access.entering import Operator, Viewer
from podium.web.access.people import ConsoleRole, Person
from podium.web.desk import Desk, DeskHere
from podium.web.live.looks import Topic, told_anew
from podium.web.live.sse import Part, streamed
from podium.web.pages.operator_answer import ShownAnswer, context_texts, shown_answer
from podium.web.pages.rendering import page, render
from podium.wiring.context_values import context_value
from podium.wiring.operating import chosen_packs, habits_of, operator_options
from podium.wiring.operator_seeing import answer_of_run, operator_run, undo
from podium.wiring.proving import proven
from podium.wiring.queues import queues_of
from podium.wiring.submitting import ask

router = APIRouter()

MOST_RUNS = 20
MOST_SAID = 10
SETTLE_SECONDS = 1.0
MOVING = (
    "approval_requested", "approval_granted", "approval_rejected", "approval_expired",
    "tool_requested", "tool_completed", "tool_failed", "tool_in_doubt", "tool_abandoned", "tool_refused",
    "run_queued", "run_started", "run_succeeded", "run_failed", "run_cancelled", "run_needed_human", "run_parked",
)  # fmt: skip
"""Events after which an answer reads otherwise."""


@router.get("/operator")
async def operator_page(request: Request, desk: DeskHere, person: Viewer) -> Response:
    return page(request, "operator.html", **await _around(desk, person), shown=None)


@router.get("/operator/{run_id}")
async def answer_page(request: Request, desk: DeskHere, person: Viewer, run_id: str) -> Response:
    """The answer that a run of the operator stands at."""
    shown = await _shown_run(desk, await _run(desk, run_id), look=True)
    return page(request, "operator.html", **await _around(desk, person), shown=shown)


@router.post("/operator/ask")
async def ask_operator(
    request: Request,
    desk: DeskHere,
    person: Operator,
    text: Annotated[str, Form(max_length=100_000)] = "",
    mode: Annotated[str, Form(max_length=40)] = OperatorMode.ANALYZE,
) -> Response:
    texts = context_texts(dict(await request.form(max_fields=100, max_files=0)))
    context = {name: context_value(said) for name, said in texts.items()}
    answer = await ask(desk.podium, text, mode=mode, context=context, by=person.name)
    return await _answered(request, desk, person, answer, texts)


@router.post("/operator/undo")
async def take_back(
    request: Request,
    desk: DeskHere,
    person: Operator,
    receipt: Annotated[str, Form(max_length=200)],
    mode: Annotated[str, Form(max_length=40)] = OperatorMode.PLAN,
) -> Response:
    """The plan that reverses a receipt. It is gated like any other, so nothing is undone by this alone."""
    wanted = OperatorMode.ENQUEUE if mode == OperatorMode.ENQUEUE else OperatorMode.PLAN
    answer = await undo(desk.podium, receipt, mode=wanted, by=person.name)
    return await _answered(request, desk, person, answer, {}, undoes=receipt)


@router.get("/live/operator")
async def live_before(desk: DeskHere, person: Viewer) -> Response:
    """Says `before` whenever an earlier run may stand otherwise."""
    return streamed(told_anew(desk.hub, [Topic("before", MOVING)], SETTLE_SECONDS))


@router.get("/live/operator/{run_id}")
async def live_answer(desk: DeskHere, person: Viewer, run_id: str) -> Response:
    return streamed(_moving(desk, person, await _run(desk, run_id)))


async def _moving(desk: Desk, person: Person, run: Run) -> AsyncIterator[Part]:
    """The answer now, and again after everything that changes it."""
    yield await _part(desk, person, run.id)
    async with aclosing(desk.hub.follow(run.id, types=MOVING)) as happening:  # type: ignore[type-var]  # a hub gives async generators
        async for _ in happening:
            yield await _part(desk, person, run.id)
    yield await _part(desk, person, run.id)


async def _part(desk: Desk, person: Person, run_id: str) -> Part:
    run = await _run(desk, run_id)
    shown = await _shown_run(desk, run, look=run.status.ended)
    context = {"shown": shown, "person": person, "now": desk.podium.clock.now()}
    return Part(render("operator_live.html", **_rights(person), **context), event="answer")


async def _answered(
    request: Request,
    desk: Desk,
    person: Person,
    answer: OperatorAnswer,
    texts: dict[str, str],
    *,
    undoes: str = "",
) -> Response:
    trouble = await _trouble(desk, answer)
    shown = shown_answer(answer, context=texts, trouble=trouble)
    return page(request, "operator_answer.html", shown=shown, undoes=undoes, **_rights(person))


async def _run(desk: Desk, text: str) -> Run:
    def found(view: View) -> Run:
        return operator_run(view, find_id(view, "run", text))

    return await (await desk.store()).read(found)


async def _shown_run(desk: Desk, run: Run, *, look: bool) -> ShownAnswer:
    """With `look` the chain of its receipts is verified, too."""
    answer = await answer_of_run(desk.podium, run)
    faults = (
        await _faults(desk, run.id) if look and any(e.receipt for e in answer.results) else None
    )
    return shown_answer(answer, faults=faults, trouble=await _trouble(desk, answer))


async def _faults(desk: Desk, run_id: str) -> list[str]:
    try:
        return [each.problem for each in (await proven(desk.podium, run_id)).faults]
    except PodiumError as error:
        return [str(error)]


async def _trouble(desk: Desk, answer: OperatorAnswer) -> str:
    """Why nobody does what waits in the queue."""
    if answer.status != "enqueued":
        return ""
    podium = desk.podium
    seen = await see_queues(await desk.store(), podium.engine, queues_of(podium.configuration))
    queue = operator_options(podium).queue
    return next((each.trouble for each in seen.queues if each.name == queue), "")


async def _around(desk: Desk, person: Person) -> dict[str, Any]:
    """What stands beside every answer: runs and messages of before."""
    podium, runs = desk.podium, list[Run]()
    if podium.has_record:
        query = RunQuery(flow=OPERATOR, limit=MOST_RUNS)
        runs = await (await desk.store()).read(lambda view: view.runs(query))
    said = {habit.said: habit for habit in habits_of(podium).all()}
    return {
        "runs": await how_they_stand(runs, podium.engine),
        "habits": list(reversed(said.values()))[:MOST_SAID],
        "pack": ", ".join(chosen_packs(podium).names),
        "undoes": "",
        **_rights(person),
    }


def _rights(person: Person) -> dict[str, Any]:
    return {
        "may_ask": person.may(ConsoleRole.OPERATOR),
        "may_answer": person.may(ConsoleRole.APPROVER),
    }
