"""Order worker: composition of its tools, gate, confinement, inbox and flow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.decisions import Access, Call, Effect, GateContext, Tier
from podium.core.errors import BadArguments, UnknownTool
from podium.core.work import Mode, RunSettings
from podium.jobs.sense import (
    WORKER,
    SenseOptions,
    Weight,
    WorkerDeps,
    candidate,
)
from podium.jobs.sense import work_order as work_order_flow
from podium.jobs.sense.composition import (
    empty_workspace,
    inbox_of,
    sense_options,
    sense_toolboxes,
    thinker,
    trust_of,
)
from podium.jobs.sense.deps import TEXT_ZONE, WRITER, CandidateDeps, Weigh
from podium.jobs.sense.io.tick_files import MODE_VARIABLE
from podium.jobs.sense.models import lower_mode
from podium.jobs.sense.orders.inbox_tender import InboxTender
from podium.jobs.sense.orders.operation_writer import ShowFile
from podium.jobs.sense.orders.policy import OrderConfinement
from podium.jobs.sense.orders.work_order import Operation, WorkOrder, order_text
from podium.jobs.sense.source_factory import own_paths
from podium.ports import FlowBody, Toolbox

if TYPE_CHECKING:
    from podium.agents.turn_step import RoleAgent
    from podium.app.app import Podium
    from podium.policy import RuleGate
    from podium.tools import Registry


REDACTED = "[redacted:"
"""Replacement of a secret in the record."""
COMMANDS_ZONE = "commands"
MAX_FILE_BYTES = 20_000
"""A larger file is not shown to whoever makes operations of words."""


async def inbox_tender(podium: Podium) -> InboxTender:
    """Build the tender that turns files of the inbox into runs."""
    mode = worker_mode(podium)
    looks_only = mode in ("sensing", "dry-run")
    return InboxTender(
        inbox=inbox_of(podium, sense_options(podium)),
        engine=await podium.hosting_engine(),
        store=await podium.store(),
        ids=podium.ids,
        settings=RunSettings(mode=mode, budgets=podium.settings.budgets.budgets()).model_dump(
            mode="json"
        ),
        root=str(podium.folders.project),
        notify=podium.notify,
        redact=podium.redactor.text,
        paused=f"mode {mode} executes nothing, so orders stay in the inbox" if looks_only else "",
    )


def worker_mode(podium: Podium) -> Mode:
    """Return the worker's mode: the configured one, lowered by the environment as the loop's is."""
    return lower_mode(podium.settings.mode, podium.environ.get(MODE_VARIABLE, "").strip())


async def build_work_order(podium: Podium) -> FlowBody:
    """Build the flow that performs an order."""
    options = sense_options(podium)
    bench = await _bench(podium, options)
    deps = WorkerDeps(
        store=await podium.store(),
        clock=podium.clock,
        ids=podium.ids,
        options=options,
        inbox=inbox_of(podium, options),
        toolbox=bench.toolbox,
        weigh=lambda order: _weight(podium, bench, options, order),
        order_text=order_text,
        trust=trust_of(podium),
        approval_seconds=bench.gate.approval_seconds,
        writer=await writer_of(podium, options),
        show=_viewer(podium, bench, options),
        budget=await podium.budget_tracker(),
        workspace=empty_workspace(podium),
    )
    return work_order_flow(deps)


async def writer_of(podium: Podium, options: SenseOptions) -> RoleAgent | None:
    """Return the agent that writes operations from an order's text; None if there is none."""
    if not options.writer:
        return None
    agent = await thinker(podium, options.writer, WRITER)
    return None if isinstance(agent, str) else agent


async def viewer(podium: Podium, options: SenseOptions) -> ShowFile:
    """The files that whoever makes operations of words may see."""
    return _viewer(podium, await _bench(podium, options), options)


def _viewer(podium: Podium, bench: _Bench, options: SenseOptions) -> ShowFile:
    """Return a reader of text files in the safe zones that the gate leaves open."""
    from podium.jobs.sense.io.content import hiding
    from podium.jobs.sense.io.sources import SourceDeps, file_text

    root = podium.folders.project
    deps = SourceDeps(
        root=root,
        clock=podium.clock,
        redact=hiding(podium.redactor.text),
        is_own=own_paths(options.layout),
        file_bytes=MAX_FILE_BYTES,
    )

    def may_see(path: str) -> bool:
        inside = any(Path(path).is_relative_to(zone) for zone in options.safe_zones)
        closed = any(zone in Path(path).parts for zone in options.forbidden_zones)
        return inside and not closed and not bench.gate.passed_over(str(root / path), str(root))

    return lambda path: file_text(deps, path, may_see)


async def weigher(podium: Podium, options: SenseOptions) -> Weigh:
    """Return a function that computes an order's weight, by the gate that will judge its operations."""
    bench = await _bench(podium, options)
    return lambda order: _weight(podium, bench, options, order)


class _Bench:
    """The worker's tools, and what judges and holds them."""

    def __init__(
        self, registry: Registry, gate: RuleGate, toolbox: Toolbox, confinement: OrderConfinement
    ) -> None:
        self.registry = registry
        self.gate = gate
        self.toolbox = toolbox
        self.confinement = confinement


async def _bench(podium: Podium, options: SenseOptions) -> _Bench:
    from podium.config.policy_layers import build_gate
    from podium.jobs.sense.orders.policy import unconfined_layer, worker_layer
    from podium.policy import exec_rules

    registry = _registry(podium, options)
    gate = build_gate(podium.configuration, (worker_layer(options), unconfined_layer()))
    confinement = OrderConfinement(
        options, podium.configuration.sandbox, exec_rules, podium.folders.user_state / "empty"
    )
    mode = worker_mode(podium)
    door = await podium.tool_door(
        registry=registry, gate=gate, confinement_provider=confinement, mode=mode
    )
    toolbox = podium.toolbox_behind(
        door, registry=registry, gate=gate, confinement_provider=confinement
    )
    return _Bench(registry, gate, toolbox, confinement)


def _registry(podium: Podium, options: SenseOptions) -> Registry:
    from podium.jobs.sense.orders.order_tools import order_tools
    from podium.tools import Registry, builtin_tools

    tools = [*builtin_tools(), *order_tools(options.layout.sessions)]
    if options.pack:
        from podium.app.packs import open_pack
        from podium.tools.packs import pack_tools

        pack = open_pack(podium, options.pack)
        state = podium.folders.state / "packs" / pack.name
        tools += pack_tools(pack, settings=podium.environ, state=state)
    return Registry(tools)


def _weight(podium: Podium, bench: _Bench, options: SenseOptions, order: WorkOrder) -> Weight:
    if REDACTED in order_text(order):
        why = "it contained a secret, which is not stored; let the program read a variable instead"
        return Weight(tier=Tier.T4, refused=why)
    if not order.ops:
        return Weight(tier=Tier.T2, zones=(TEXT_ZONE,))
    tier, zones = Tier.T0, dict[str, None]()
    for number, op in enumerate(order.ops, start=1):
        tool, arguments = op.call
        try:
            call = bench.toolbox.normalise(
                tool, arguments, run_id="", step_key=f"op#{number}", index=0, role=WORKER
            )
        except (BadArguments, UnknownTool) as error:
            why = f"op {number} ({op.line}): {error}"
            return Weight(tier=Tier.T4, refused=why, refused_op=number)
        decision = bench.gate.decide(call, _context(podium, bench, call))
        if decision.effect is Effect.DENY:
            why = f"op {number} ({op.line}): {decision.reason}{_where_else(options, call)}"
            return Weight(tier=decision.tier, refused=why, refused_op=number)
        tier = max(tier, decision.tier)
        zones |= dict.fromkeys(_zones(podium, options, op, call))
    return Weight(tier=tier, zones=tuple(zones))


def _where_else(options: SenseOptions, call: Call) -> str:
    """Name the folders open to writes, for a refused write; empty for calls that write no file."""
    if all(use.access is Access.READ for use in call.paths):
        return ""
    return f"; orders can write only in {', '.join(options.safe_zones)}"


def _context(podium: Podium, bench: _Bench, call: Call) -> GateContext:
    root = str(podium.folders.project)
    held = bench.confinement.held(root)
    return GateContext(
        tool=bench.registry.spec(call.tool),
        mode="autonomous",
        root=root,
        confined=held is not None,
        network=held.network if held else "open",
        hosts=held.hosts if held else (),
        now=podium.clock.now(),
    )


def _zones(podium: Podium, options: SenseOptions, op: Operation, call: Call) -> list[str]:
    """The safe zones in which the operation changes something, or what stands in for one."""
    if op.op == "run":
        return [COMMANDS_ZONE]
    if op.op == "tool":
        return [f"tool:{op.tool}"]
    root = podium.folders.project
    if op.op == "session":
        return [_zone_of(Path(options.layout.sessions), options)]
    return [
        _zone_of(Path(os.path.relpath(use.real, root)), options)
        for use in call.paths
        if use.access is not Access.READ
    ]


def _zone_of(path: Path, options: SenseOptions) -> str:
    zones = [zone for zone in options.safe_zones if path.is_relative_to(zone)]
    return max(zones, key=len, default="elsewhere")


async def build_candidate(podium: Podium) -> FlowBody:
    """Build the flow that takes one candidate from approval to its result."""
    options = sense_options(podium)
    deps = CandidateDeps(
        store=await podium.store(),
        clock=podium.clock,
        options=options,
        weigh=await weigher(podium, options),
        toolbox_for=sense_toolboxes(podium, options),
        order_text=order_text,
        trust=trust_of(podium),
        writer=await writer_of(podium, options),
        show=await viewer(podium, options),
        budget=await podium.budget_tracker(),
        workspace=empty_workspace(podium),
    )
    return candidate(deps)
