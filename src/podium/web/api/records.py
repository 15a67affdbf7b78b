"""`/api/v1`: events, receipts and traces, by the page or as they happen."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from podium.app.receipts import Verdict, list_receipts, proven
from podium.app.run_report import follow_logs, list_events, list_run_events
from podium.app.run_timeline import look_at_run
from podium.core.decisions import Receipt
from podium.core.events import Event
from podium.core.model import FrozenModel, json_of, whole_text
from podium.ports import Store
from podium.web.access.authentication import Viewer
from podium.web.api.requests import HIGHEST, Name, NameQuery, Position, Rows
from podium.web.context import CurrentContext
from podium.web.live.hub import Gap, Hub
from podium.web.live.sse import Part, resume_after, streamed

events_router = APIRouter(tags=["events"])

MAX_STREAM_SECONDS = 86_400.0
EventType = Annotated[str, Field(pattern=r"^[a-z_]{1,60}$")]
Types = Annotated[tuple[EventType, ...], Query(max_length=60)]
"""Only events of these types."""
After = Annotated[int | None, Query(ge=0, le=HIGHEST)]
Seconds = Annotated[float | None, Query(gt=0, le=MAX_STREAM_SECONDS, allow_inf_nan=False)]
"""The stream ends by itself after so long. None: it goes on."""
MESSAGE = {
    "type": "object",
    "description": "One message. `data` is an event as JSON or, with `event: gap`, the range of positions that was skipped.",
    "properties": {
        "data": {"type": "string"},
        "event": {"enum": ["message", "gap", "end"]},
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
    "required": ["data"],
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": MESSAGE}}}
}


class EventsListed(FrozenModel):
    """Events in the order they were committed."""

    events: tuple[Event, ...]
    after: int
    """Pass as `after` to get the next page."""
    more: bool


@events_router.get("/events")
async def list_all_events(
    context: CurrentContext,
    person: Viewer,
    after: Position = 0,
    limit: Rows = 100,
    types: Types = (),
) -> EventsListed:
    """Events of all runs, by position."""
    events = await list_events(await context.store(), after=after, limit=limit + 1, types=types)
    listed = events[:limit]
    reached = listed[-1].position if listed else after
    return EventsListed(events=tuple(listed), after=reached, more=len(events) > limit)


@events_router.get("/runs/{run}/events")
async def list_events_of_run(
    context: CurrentContext,
    person: Viewer,
    run: Name,
    after: Position = 0,
    limit: Rows = 100,
    types: Types = (),
) -> EventsListed:
    """Events of one run, by `seq`."""
    store = await context.store()
    events = await list_run_events(store, run, after=after, limit=limit + 1, types=types)
    listed = events[:limit]
    reached = listed[-1].seq if listed else after
    return EventsListed(events=tuple(listed), after=reached, more=len(events) > limit)


@events_router.get("/events/stream", response_class=StreamingResponse, responses=STREAM)
async def follow_all_events(
    request: Request,
    context: CurrentContext,
    person: Viewer,
    after: After = None,
    types: Types = (),
    seconds: Seconds = None,
) -> StreamingResponse:
    """Events of all runs as they happen, as server-sent events.

    Each message is an event as JSON, with its position as id. `Last-Event-ID`, or `after`, says where to
    resume, and without them only new events are sent. `event: gap` names positions that were skipped for a slow
    reader: read them page by page. `event: end` is the last message.
    """
    return streamed(_parts(context.hub, None, resume_after(request, after), types), seconds=seconds)


@events_router.get("/runs/{run}/events/stream", response_class=StreamingResponse, responses=STREAM)
async def follow_events_of_run(
    request: Request,
    context: CurrentContext,
    person: Viewer,
    run: Name,
    after: Position = 0,
    types: Types = (),
    seconds: Seconds = None,
) -> StreamingResponse:
    """Past and future events of one run, as server-sent events, until it has ended.

    Like `/events/stream`, with `seq` as id.
    """
    head = await look_at_run(await context.store(), context.podium.engine, run)
    parts = _parts(context.hub, head.run.id, resume_after(request, after), types)
    return streamed(parts, seconds=seconds)


async def _parts(
    hub: Hub, run_id: str | None, after: int | None, types: tuple[str, ...]
) -> AsyncIterator[Part]:
    stream = hub.follow(run_id, after=after, types=types)
    async with aclosing(stream):  # type: ignore[type-var]  # it is an async generator
        async for item in stream:
            yield _part(item, run_id)


def _part(item: Event | Gap, run_id: str | None) -> Part:
    if isinstance(item, Gap):
        return Part(f'{{"after":{item.after},"to":{item.to}}}', event="gap", id=str(item.to))
    return Part(json_of(item), id=str(item.position if run_id is None else item.seq))


receipts_router = APIRouter(tags=["receipts"])


class ReceiptsListed(FrozenModel):
    receipts: tuple[Receipt, ...]
    left_out: int
    """Number of earlier receipts, beyond the limit."""


class Proof(FrozenModel):
    """Result of verifying the chains of receipts."""

    sound: bool
    verdict: Verdict


@receipts_router.get("/receipts")
async def list_all_receipts(
    context: CurrentContext, person: Viewer, run: NameQuery = "", limit: Rows = 200
) -> ReceiptsListed:
    """List the latest receipts of a run, or of all runs, in chain order."""
    receipts = await list_receipts(await context.store(), run or None)
    listed = receipts[-limit:]
    return ReceiptsListed(receipts=tuple(listed), left_out=len(receipts) - len(listed))


@receipts_router.get("/receipts/verify")
async def verify_receipts(context: CurrentContext, person: Viewer, run: NameQuery = "") -> Proof:
    """Verify that no receipt was edited, removed, reordered or cut off."""
    verdict = await proven(context.podium, run or None)
    return Proof(sound=verdict.sound, verdict=verdict)


traces_router = APIRouter(tags=["traces"])

LINES = "application/jsonl"


@traces_router.get(
    "/runs/{run}/trace",
    response_class=StreamingResponse,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}}},
)
async def download_trace(
    context: CurrentContext, person: Viewer, run: Name, after: Position = 0
) -> StreamingResponse:
    """The trace as JSON lines, with the content of the run's `execution_trace.jsonl`."""
    store = await context.store()
    run_id = (await look_at_run(store, context.podium.engine, run)).run.id
    name = f'attachment; filename="{run_id}.jsonl"'
    return StreamingResponse(
        _lines(store, run_id, after), media_type=LINES, headers={"content-disposition": name}
    )


async def _lines(store: Store, run_id: str, after: int) -> AsyncIterator[str]:
    async for event in follow_logs(store, run_id, after_seq=after):
        yield json.dumps(whole_text(event.line()), ensure_ascii=False) + "\n"
