"""Flows whose kit is made when the first of their runs is hosted: most processes host none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from podium.ports import FlowBody, FlowContext


def when_needed(build: Callable[[], Awaitable[FlowBody]]) -> FlowBody:
    """A body that is built by the first run which needs it. What building raises is that run's failure."""
    made: list[FlowBody] = []
    building = asyncio.Lock()

    async def body(ctx: FlowContext, given: Any) -> Any:
        async with building:
            if not made:
                made.append(await build())
        return await made[0](ctx, given)

    return body
