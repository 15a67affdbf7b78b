"""The tools of work orders on a store in memory, and calls that a crash interrupts."""

from __future__ import annotations

from pathlib import Path

from podium.core.decisions import Call, CallOutcome, Permit
from podium.jobs.sense.orders.order_tools import order_tools, sense_tools
from podium.tools import builtin_tools
from tests.unit.tools.toolbox_harness import Harness, make_harness

INBOX, CANDIDATES = "bridge/inbox/CLC", "g/reports/wo_candidates"


def order_harness(tmp_path: Path) -> Harness:
    return make_harness(
        tmp_path, [*builtin_tools(), *order_tools(), *sense_tools(INBOX, CANDIDATES)]
    )


async def act_and_crash(harness: Harness, call: Call) -> CallOutcome:
    """Perform a permitted call, and lose the record of how it ended."""
    permit = await harness.door.request(call)
    assert isinstance(permit, Permit), permit
    return await harness.toolbox._act(harness.registry.tool(call.tool), call)


async def perform(harness: Harness, call: Call) -> CallOutcome:
    outcome = await harness.toolbox.perform(call)
    assert isinstance(outcome, CallOutcome), outcome
    return outcome


async def undo_last(harness: Harness, index: int = 50) -> CallOutcome:
    undo = (await harness.receipts())[-1].undo
    assert undo is not None
    return await harness.use(undo["tool"], index, **undo["arguments"])
