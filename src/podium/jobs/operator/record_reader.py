"""Reader of records: calls a pack's own tools that only read, through a tool door that records nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from podium.core.decisions import (
    Call,
    CallOutcome,
    Decision,
    Effect,
    GateContext,
    Permit,
    Receipt,
    Refusal,
    ToolSpec,
)
from podium.core.errors import NotPossibleNow, PodiumError
from podium.core.model import Json
from podium.core.packs import Pack
from podium.jobs.operator.ports import OPERATOR
from podium.jobs.operator.records import PackRecords
from podium.ports import Checkpoint

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.ports import Gate, Toolbox
    from podium.tools import Registry

MAX_READS = 60
"""Calls for one message."""
LOOKUP = "lookup"


def open_records(podium: Podium, pack: Pack) -> PackRecords | None:
    """Open the records of a pack for one message. None where there are none yet: nothing is made by looking."""
    return (
        PackRecords(pack, _RecordReader(podium, pack).read) if _has_records(podium, pack) else None
    )


def _has_records(podium: Podium, pack: Pack) -> bool:
    """Return whether tools of the pack were performed here. Podium's own records are those of the project."""
    if not pack.registry.lookup:
        return False
    if all(
        isinstance(tool.handler, dict) and "service" in tool.handler for tool in pack.registry.tools
    ):
        return podium.has_record
    return (podium.folders.state / "packs" / pack.name).is_dir()


class _RecordReader:
    """Performs reads for one message."""

    def __init__(self, podium: Podium, pack: Pack) -> None:
        self._podium = podium
        self._pack = pack
        self._toolbox: Toolbox | None = None
        self._reads = 0

    async def read(self, tool: str, arguments: Mapping[str, Json]) -> Mapping[str, Json] | None:
        self._reads += 1
        if self._reads > MAX_READS:
            return None
        try:
            toolbox = self._toolbox = self._toolbox or self._opened()
            call = toolbox.normalise(
                tool, dict(arguments),
                run_id=LOOKUP, step_key=LOOKUP, index=self._reads, role=OPERATOR,
            )  # fmt: skip
            outcome = await toolbox.perform(call)
        except PodiumError:
            return None
        if not isinstance(outcome, CallOutcome) or not outcome.ok:
            return None
        return outcome.result if isinstance(outcome.result, dict) else None

    def _opened(self) -> Toolbox:
        from podium.jobs.operator.services import operator_services
        from podium.tools import Registry
        from podium.tools.packs import pack_tools

        podium, state = self._podium, self._podium.folders.state / "packs" / self._pack.name
        services = operator_services(podium)
        registry = Registry(
            pack_tools(self._pack, settings=podium.environ, state=state, services=services)
        )
        lookups = self._pack.registry.lookup
        sources = [source for one in lookups for source in (one.find, one.get) if source]
        tools = frozenset(source.tool for source in sources)
        door = LookupDoor(podium.gate, registry, tools, podium.settings.mode, podium.clock.now)
        return podium.toolbox_behind(door, registry=registry)


class LookupDoor:
    """Permits the tools of lookups where the policy allows them, and no other. Nothing of it is recorded."""

    def __init__(
        self,
        gate: Gate,
        registry: Registry,
        tools: frozenset[str],
        mode: str,
        now: Callable[[], datetime],
    ) -> None:
        self._gate = gate
        self._registry = registry
        self._tools = tools
        self._mode = mode
        self._now = now

    async def request(self, call: Call) -> Permit | Refusal:
        spec = self._registry.spec(call.tool)
        decision = self._decided(call, spec)
        if decision.effect is not Effect.ALLOW or call.tool not in self._tools:
            return Refusal(call=call, decision=decision, say=decision.reason)
        return Permit(call=call, digest=LOOKUP, decision=decision)

    def _decided(self, call: Call, spec: ToolSpec | None) -> Decision:
        context = GateContext(tool=spec, mode=self._mode, root=call.root, now=self._now())
        return self._gate.decide(call, context)

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Nothing that only reads is left open."""

    async def settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        """Give a receipt that nobody keeps: a lookup proves nothing."""
        call, now = permit.call, self._now()
        return Receipt(
            run_id=call.run_id,
            number=0,
            call_key=call.key,
            tool=call.tool,
            digest=permit.digest,
            status="completed" if outcome.ok else "failed",
            tier=permit.decision.tier,
            rule=permit.decision.rule,
            requested_at=now,
            settled_at=now,
        )

    async def abandon(self, permit: Permit) -> Receipt:
        raise NotPossibleNow(f"{permit.call.tool} was only looked up")
