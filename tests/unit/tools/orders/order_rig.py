"""The tools of work orders on a store in memory, and calls that a crash interrupts."""

from __future__ import annotations

from pathlib import Path

from podium.core.decisions import Call, CallOutcome, Permit
from podium.jobs.sense.orders.order_tools import order_tools, sense_tools
from podium.tools import builtin_tools
from tests.unit.tools.rig import Rig, make_rig

INBOX, CANDIDATES = "bridge/inbox/CLC", "g/reports/wo_candidates"


def order_rig(tmp_path: Path) -> Rig:
    return make_rig(tmp_path, [*builtin_tools(), *order_tools(), *sense_tools(INBOX, CANDIDATES)])


async def act_and_crash(rig: Rig, call: Call) -> CallOutcome:
    """Perform a permitted call, and lose the record of how it ended."""
    permit = await rig.door.request(call)
    assert isinstance(permit, Permit), permit
    return await rig.toolbox._act(rig.registry.tool(call.tool), call)


async def perform(rig: Rig, call: Call) -> CallOutcome:
    outcome = await rig.toolbox.perform(call)
    assert isinstance(outcome, CallOutcome), outcome
    return outcome


async def undo_last(rig: Rig, index: int = 50) -> CallOutcome:
    undo = (await rig.receipts())[-1].undo
    assert undo is not None
    return await rig.use(undo["tool"], index, **undo["arguments"])
