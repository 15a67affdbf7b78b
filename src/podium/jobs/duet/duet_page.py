"""Page `/duet`: both panes, the message history of a task, and its controls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from podium.app.work_request import WorkRequest, submit
from podium.core.errors import BadInput
from podium.core.turns import PairName
from podium.jobs.duet.project_terminals import pair_status
from podium.jobs.duet.task_control import abort_task, nudge_task, pairs_in_use, retry_task
from podium.jobs.duet.task_table import DuetTask, list_duets, task_history, with_hosts
from podium.render.event import describe
from podium.web.access.authentication import Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.context import CurrentContext, WebContext
from podium.web.live.sse import Part, streamed
from podium.web.pages.templates import page

router = APIRouter(prefix="/duet")

MAIN = "main"
MAX_TASKS = 20
MAX_TASK_EVENTS = 100
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
    """Render the page. Everything but the panes is a partial that is reloaded on every event."""
    names = [
        project_pair.name for project_pair in pairs_in_use(context.podium, context.podium.environ)
    ]
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
    """Render the status of both sides, the tasks, and the message history of one of them."""
    pairs = {
        project_pair.name: project_pair
        for project_pair in pairs_in_use(context.podium, context.podium.environ)
    }
    if pair not in pairs:
        raise BadInput(f"there is no pair {pair!r}; pairs: {', '.join(pairs)}")
    tasks = await _tasks(context, pair)
    selected = next(
        (duet_task for duet_task in tasks if task in (duet_task.task_id, duet_task.run_id)), None
    )
    selected = selected or (tasks[0] if tasks else None)
    history = (
        await task_history(await context.store(), selected.run_id, MAX_TASK_EVENTS)
        if selected
        else []
    )
    return page(
        request,
        "duet_state.html",
        pair=pair,
        status=await pair_status(context.podium, pairs[pair]),
        tasks=tasks,
        selected=selected,
        entries=[(entry, describe(entry.event)) for entry in history],
        may_steer=person.may(ConsoleRole.OPERATOR),
    )


@router.get("/live")
async def duet_live(context: CurrentContext, person: Viewer) -> Response:
    """Stream a `duet` event on every change."""
    return streamed(_news(context))


@router.post("/tasks")
async def send_task(
    request: Request,
    context: CurrentContext,
    person: Operator,
    text: Annotated[str, Form(max_length=1_000_000)] = "",
    pair: Annotated[PairName, Form()] = MAIN,
) -> Response:
    work_request = WorkRequest(flow="duet", text=text, options={"pairs": [pair]})
    await submit(context.podium, work_request, by=person.name)
    return _redirect(request, pair)


@router.post("/tasks/{task}/nudge")
async def nudge(request: Request, context: CurrentContext, person: Operator, task: str) -> Response:
    duet_task, _ = await nudge_task(context.podium, task)
    return _redirect(request, duet_task.pair)


@router.post("/tasks/{task}/abort")
async def abort(request: Request, context: CurrentContext, person: Operator, task: str) -> Response:
    duet_task = await abort_task(
        context.podium, task, by=person.name, why="in the console", wait=False
    )
    return _redirect(request, duet_task.pair)


@router.post("/tasks/{task}/retry")
async def retry(request: Request, context: CurrentContext, person: Operator, task: str) -> Response:
    run = await retry_task(context.podium, task, by=person.name)
    tasks = await list_duets(await context.store(), also_ended=True)
    return _redirect(request, next((task.pair for task in tasks if task.run_id == run.id), MAIN))


async def _tasks(context: WebContext, pair: str) -> list[DuetTask]:
    """List tasks of the pair and those that wait for any pair, newest first."""
    tasks = await list_duets(await context.store(), also_ended=True)
    ours = [task for task in tasks if task.pair == pair or (not task.pair and task.is_open)]
    return await with_hosts(ours[::-1][:MAX_TASKS], context.podium.engine)


async def _news(context: WebContext) -> AsyncIterator[Part]:
    # What came between the page and this stream, or while it was broken off, is seen by looking once.
    yield Part("new", event="duet")
    async with aclosing(context.hub.follow(types=_NEWS)) as events:  # type: ignore[type-var]  # it is a generator
        async for _ in events:
            yield Part("new", event="duet")


def _redirect(request: Request, pair: str) -> Response:
    """Redirect to the state of the pair: to the partial for an open page, else to the page."""
    path = "/duet/state" if "hx-request" in request.headers else "/duet"
    return RedirectResponse(f"{path}?{urlencode({'pair': pair or MAIN})}", status_code=303)
