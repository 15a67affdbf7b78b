"""Page `/duet`: both panes, the message history of a task, and its controls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from podium.app.submission import WorkRequest, submit
from podium.core.errors import BadInput
from podium.core.turns import PairName
from podium.jobs.duet.project_terminals import pair_standing
from podium.jobs.duet.task_control import abort_task, nudge_task, pairs_in_use, retry_task
from podium.jobs.duet.task_table import DuetTask, see_duets, see_ladder, with_hosts
from podium.render.event import describe
from podium.web.access.authentication import Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.context import CurrentContext, WebContext
from podium.web.live.sse import Part, streamed
from podium.web.pages.templates import page

router = APIRouter(prefix="/duet")

MAIN = "main"
MAX_TASKS = 20
MAX_RUNGS = 100
_NEWS = (
    "pair_seated", "leg_opened", "message_heard", "block_ignored", "side_nudged", "keyboard_taken",
    "keyboard_returned", "run_needed_human", "run_failed", "run_cancelled", "run_succeeded", "run_retried", "run_waiting",
    "run_queued", "run_started",
)  # fmt: skip

PairHere = Annotated[PairName, Query()]
TaskHere = Annotated[str, Query(max_length=60)]


@router.get("")
async def duet_page(
    request: Request, context: CurrentContext, person: Viewer, pair: PairHere = MAIN
) -> Response:
    """Everything but the panes is in a part of its own, which comes anew whenever something happens."""
    names = [each.name for each in pairs_in_use(context.podium, context.podium.environ)]
    if pair not in names:
        raise BadInput(f"there is no pair {pair!r}; pairs: {', '.join(names)}")
    return page(
        request, "duet.html", pair=pair, names=names, may_steer=person.may(ConsoleRole.OPERATOR)
    )


@router.get("/state")
async def duet_state(
    request: Request,
    context: CurrentContext,
    person: Viewer,
    pair: PairHere = MAIN,
    task: TaskHere = "",
) -> Response:
    """How both sides stand, the tasks, and the ladder of one of them."""
    pairs = {each.name: each for each in pairs_in_use(context.podium, context.podium.environ)}
    if pair not in pairs:
        raise BadInput(f"there is no pair {pair!r}; pairs: {', '.join(pairs)}")
    tasks = await _tasks(context, pair)
    shown = next((each for each in tasks if task in (each.task_id, each.run_id)), None)
    shown = shown or (tasks[0] if tasks else None)
    rungs = await see_ladder(await context.store(), shown.run_id, MAX_RUNGS) if shown else []
    return page(
        request,
        "duet_state.html",
        pair=pair,
        standing=await pair_standing(context.podium, pairs[pair]),
        tasks=tasks,
        shown=shown,
        rungs=[(rung, describe(rung.told)) for rung in rungs],
        may_steer=person.may(ConsoleRole.OPERATOR),
    )


@router.get("/live")
async def duet_live(context: CurrentContext, person: Viewer) -> Response:
    """Says `duet` whenever there is something new to see."""
    return streamed(_news(context))


@router.post("/tasks")
async def send_task(
    request: Request,
    context: CurrentContext,
    person: Operator,
    text: Annotated[str, Form(max_length=1_000_000)] = "",
    pair: Annotated[PairName, Form()] = MAIN,
) -> Response:
    wish = WorkRequest(flow="duet", text=text, options={"pairs": [pair]})
    await submit(context.podium, wish, by=person.name)
    return _seen(request, pair)


@router.post("/tasks/{task}/nudge")
async def nudge(request: Request, context: CurrentContext, person: Operator, task: str) -> Response:
    found, _ = await nudge_task(context.podium, task)
    return _seen(request, found.pair)


@router.post("/tasks/{task}/abort")
async def abort(request: Request, context: CurrentContext, person: Operator, task: str) -> Response:
    found = await abort_task(context.podium, task, by=person.name, why="in the console", wait=False)
    return _seen(request, found.pair)


@router.post("/tasks/{task}/retry")
async def retry(request: Request, context: CurrentContext, person: Operator, task: str) -> Response:
    run = await retry_task(context.podium, task, by=person.name)
    tasks = await see_duets(await context.store(), also_ended=True)
    return _seen(request, next((task.pair for task in tasks if task.run_id == run.id), MAIN))


async def _tasks(context: WebContext, pair: str) -> list[DuetTask]:
    """Those of the pair and those that wait for any, the newest first."""
    tasks = await see_duets(await context.store(), also_ended=True)
    ours = [task for task in tasks if task.pair == pair or (not task.pair and task.is_open)]
    return await with_hosts(ours[::-1][:MAX_TASKS], context.podium.engine)


async def _news(context: WebContext) -> AsyncIterator[Part]:
    # What came between the page and this stream, or while it was broken off, is seen by looking once.
    yield Part("new", event="duet")
    async with aclosing(context.hub.follow(types=_NEWS)) as events:  # type: ignore[type-var]  # it is a generator
        async for _ in events:
            yield Part("new", event="duet")


def _seen(request: Request, pair: str) -> Response:
    """Where what was done is seen: the part for a page that is open, else the page."""
    path = "/duet/state" if "hx-request" in request.headers else "/duet"
    return RedirectResponse(f"{path}?{urlencode({'pair': pair or MAIN})}", status_code=303)
