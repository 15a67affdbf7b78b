"""`/api/v1/runs/{run}/trace`: every event of a run, a line each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from podium.app.run_report import follow_logs
from podium.app.run_timeline import look_at_run
from podium.core.model import whole_text
from podium.ports import Store
from podium.web.access.authentication import Viewer
from podium.web.api.requests import Name, Position
from podium.web.context import CurrentContext

router = APIRouter(tags=["traces"])

LINES = "application/jsonl"


@router.get(
    "/runs/{run}/trace",
    response_class=StreamingResponse,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}}},
)
async def download_trace(
    context: CurrentContext, person: Viewer, run: Name, after: Position = 0
) -> StreamingResponse:
    """The trace as JSON lines: what the run's `execution_trace.jsonl` holds."""
    store = await context.store()
    run_id = (await look_at_run(store, context.podium.engine, run)).run.id
    name = f'attachment; filename="{run_id}.jsonl"'
    return StreamingResponse(
        _lines(store, run_id, after), media_type=LINES, headers={"content-disposition": name}
    )


async def _lines(store: Store, run_id: str, after: int) -> AsyncIterator[str]:
    async for event in follow_logs(store, run_id, after_seq=after):
        yield json.dumps(whole_text(event.line()), ensure_ascii=False) + "\n"
