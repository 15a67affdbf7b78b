"""Composition of the sense loop: record, trust book, inbox, planner, dependencies of a tick, two flows, requests of a tick."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.decisions import Tier
from podium.core.model import FrozenModel, Json
from podium.core.work import Mode, QueueSpec, Run, RunSettings, run_settings_of
from podium.jobs.sense import (
    SENSE,
    PlannerDeps,
    RunServices,
    SenseDeps,
    SenseOptions,
    TickDeps,
    Weight,
    begin_tick,
    sense,
)
from podium.jobs.sense.models import Bundle
from podium.jobs.sense.options import Profile, options_in_force, sense_mode
from podium.jobs.sense.orders.work_order import Ack, WorkOrder
from podium.jobs.sense.ports import StateSource
from podium.jobs.sense.trust import EarnedTrust, earned_trust, granted_tier
from podium.ports import FlowBody, Toolbox

if TYPE_CHECKING:
    from podium.agents.turn_step import RoleAgent
    from podium.app.app import Podium
    from podium.app.work_request import Submission
    from podium.config.configuration import Configuration
    from podium.jobs.sense.io.inbox import FolderInbox
    from podium.jobs.sense.io.record import FileRecord, FileTrustBook
    from podium.jobs.sense.io.tick_files import RecordFiles
    from podium.policy import RuleGate


PLANNER = "planner"
"""The role in which an agent plans."""


def sense_options(podium: Podium) -> SenseOptions:
    """Return the options in force. Raises `ConfigInvalid` with the location of the problem."""
    return options_in_force(podium.configuration)


def candidate_mode(podium: Podium, run: Run) -> str:
    """Return the mode a candidate may use now: the one its run recorded, lowered by today's."""
    return run_settings_of(run).mode_with(todays_mode(podium))


def todays_mode(podium: Podium) -> Mode:
    # A run has recorded its mode, which today's can only lower: where nobody set one, that one holds.
    return sense_mode(podium.configuration, podium.environ, unsaid="autonomous")


def sense_queue(configuration: Configuration) -> QueueSpec:
    """The queue of candidates, as podium.yaml has it or as it comes."""
    specs = {spec.name: spec for spec in configuration.settings.queue_specs()}
    return specs.get(SENSE) or QueueSpec(name=SENSE)


def state_folder(podium: Podium) -> Path:
    """Return the folder of the loop's own files, made if needed."""
    folder = podium.folders.make_state() / "sense"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def empty_workspace(podium: Podium) -> str:
    """An empty folder for agents that only think."""
    folder = state_folder(podium) / "desk"
    folder.mkdir(mode=0o700, exist_ok=True)
    return str(folder)


def record_of(podium: Podium, options: SenseOptions) -> FileRecord:
    from podium.jobs.sense.io.record import FileRecord
    from podium.jobs.sense.planning.bundle import bundle_json

    podium.folders.make_state()
    return FileRecord(
        podium.folders.project,
        record_files(options),
        clock=podium.clock,
        redact=podium.redactor.text,
        limit_bytes=options.log_bytes,
        bundle_text=bundle_json,
    )


def record_files(options: SenseOptions) -> RecordFiles:
    from podium.jobs.sense.io.tick_files import RecordFiles

    layout = options.layout
    return RecordFiles(log=layout.log, parser_log=layout.parser_log, telemetry=layout.telemetry)


def trust_of(podium: Podium) -> FileTrustBook:
    from podium.jobs.sense.io.record import FileTrustBook

    return FileTrustBook(podium.folders.project, redact=podium.redactor.text)


def current_trust(podium: Podium) -> tuple[EarnedTrust, ...]:
    return earned_trust(trust_of(podium).entries())


def sources_of(podium: Podium, options: SenseOptions) -> list[StateSource]:
    """The three the loop always has, and those that podium.yaml adds."""
    from podium.jobs.sense.source_factory import build_sources

    return build_sources(podium, options)


def project_sources(configuration: Configuration) -> dict[str, str]:
    """Commands and addresses of sources that the project's file brings, by name: they need trust."""
    from podium.jobs.sense.source_factory import outside_commands

    owners = [layer.name for layer in configuration.layers if SENSE in layer.settings.flows]
    if owners[-1:] != ["project"]:
        return {}
    return outside_commands(options_in_force(configuration))


def inbox_of(podium: Podium, options: SenseOptions) -> FolderInbox:
    from podium.jobs.sense.io.inbox import FolderInbox, InboxFolders

    layout = options.layout
    folders = InboxFolders(
        inbox=layout.inbox,
        claimed=layout.claimed,
        done=layout.done,
        parked=layout.parked,
        acks=layout.acks,
    )
    return FolderInbox(
        podium.folders.project, folders, clock=podium.clock, redact=podium.redactor.text
    )


async def tick_deps(
    podium: Podium,
    stack: AsyncExitStack | None = None,
    *,
    opening: Callable[[], None] = lambda: None,
) -> TickDeps:
    """Return the dependencies of a tick. Nothing is opened that an idle tick does not need.

    With `stack`, this process serves the loop's queue from the first tick that plans until the stack is
    closed. `opening` is called when that begins.
    """
    options = sense_options(podium)
    mode = sense_mode(podium.configuration, podium.environ)
    opened: list[RunServices] = []

    async def services() -> RunServices:
        if not opened:
            opening()
            engine = await podium.hosting_engine()
            if stack is not None:
                await stack.enter_async_context(engine.serve([sense_queue(podium.configuration)]))
            run_settings = RunSettings(mode=mode, budgets=podium.settings.budgets.budgets())
            settings = run_settings.model_dump(mode="json")
            store = await podium.store()
            opened.append(
                RunServices(engine=engine, store=store, ids=podium.ids, settings=settings)
            )
        return opened[0]

    def answered(wo_id: str) -> Ack | None:
        return inbox_of(podium, options).answered(wo_id)

    return TickDeps(
        root=str(podium.folders.project),
        mode=mode,
        options=options,
        sources=sources_of(podium, options),
        record=record_of(podium, options),
        clock=podium.clock,
        services=services,
        answered=answered,
    )


async def build_sense(podium: Podium) -> FlowBody:
    """Build the flow of a tick that plans."""
    options = sense_options(podium)
    deps = SenseDeps(
        store=await podium.store(),
        clock=podium.clock,
        budget=await podium.budget_tracker(),
        options=options,
        planner=await _planner(podium, options),
    )
    return sense(deps)


async def _planner(podium: Podium, options: SenseOptions) -> PlannerDeps:
    name = options.planner
    if name == "none":
        return PlannerDeps(name=name, absent="podium.yaml sets `planner: none`")
    if name == "rules":
        return PlannerDeps(name=name, rules=_rules(podium, options))
    profile = options.profiles.get(options.profile)
    if profile is None:
        names = ", ".join(sorted(options.profiles)) or "none"
        absent = f"podium.yaml has no profile {options.profile!r}; profiles: {names}"
        return PlannerDeps(name=name, absent=absent)
    agent = await thinker(podium, name, PLANNER, profile)
    if isinstance(agent, str):
        return PlannerDeps(name=name, absent=agent)
    return PlannerDeps(
        name=name, role_agent=agent, profile=profile, workspace=empty_workspace(podium)
    )


def _rules(podium: Podium, options: SenseOptions) -> Callable[[Bundle, datetime], Json]:
    from podium.jobs.sense.planning.rules import load_rules, plan_by_rules

    rules = load_rules(podium.folders.project / options.rules if options.rules else None).book
    return lambda bundle, now: plan_by_rules(rules, bundle, now=now)


async def thinker(
    podium: Podium, name: str, role: str, profile: Profile | None = None
) -> RoleAgent | str:
    """An agent that only answers; or why there is none."""
    from podium.agents import ContractedAgent
    from podium.agents.turn_step import RoleAgent
    from podium.app.agent_builder import build_medium
    from podium.config.settings import AgentSettings
    from podium.core.errors import UserMustAct
    from podium.core.turns import TurnLimits

    unlisted = AgentSettings(kind="gemini") if name == "gemini" else None
    doors = await podium.hook_doors()
    try:
        model = profile.model if profile else ""
        medium = build_medium(podium, name, doors, model=model, unlisted=unlisted)
    except UserMustAct as error:
        return str(error)
    settings = podium.settings.agents.get(name)
    limits = settings.limits if settings else TurnLimits()
    if profile is not None:
        limits = limits.model_copy(update={"seconds": profile.timeout_seconds})
    # Without a nonce: that an answer is no echo is seen by holding it against what was shown.
    agent = ContractedAgent(medium, new_nonce=None, redact=podium.redactor.text)
    return RoleAgent(role=role, agent=agent, allowed_tools=(), limits=limits)


def sense_toolboxes(
    podium: Podium, options: SenseOptions
) -> Callable[[WorkOrder, Weight], Awaitable[Toolbox]]:
    """The loop's two tools, behind a gate that knows today's mode and what autonomy was granted."""
    from podium.config.policy_layers import build_gate
    from podium.jobs.sense.orders.order_tools import sense_tools
    from podium.jobs.sense.orders.policy import earned_layer, sense_layer
    from podium.tools import Registry

    registry = Registry(sense_tools(options.layout.inbox, options.layout.candidates))
    own = sense_layer(options)
    plain = build_gate(podium.configuration, (own,))

    @lru_cache(maxsize=64)
    def earned_gate(target: str, zones: tuple[str, ...], granted: Tier) -> RuleGate:
        return build_gate(podium.configuration, (own, earned_layer(target, zones, granted)))

    def gate_for(order: WorkOrder) -> RuleGate:
        granted = granted_tier(current_trust(podium), order.target, order.zones)
        return plain if granted is None else earned_gate(order.target, order.zones, granted)

    async def toolbox_for(order: WorkOrder, weight: Weight) -> Toolbox:
        gate = await asyncio.to_thread(gate_for, order)
        mode = todays_mode(podium)
        door = await podium.tool_door(registry=registry, gate=gate, mode=mode)
        return podium.toolbox_behind(door, registry=registry, gate=gate)

    return toolbox_for


class TickRequest(FrozenModel):
    """Request of a tick; it has no fields."""


async def submit(submission: Submission) -> Run:
    """Begin a tick; whoever serves the loop's queue plans it."""
    from podium.app.work_request import ASKED_BY

    submission.refuse_queue_slot()
    queue = sense_queue(submission.podium.configuration).name
    deps = await tick_deps(submission.podium)
    return await begin_tick(deps, queue=queue, settings={ASKED_BY: submission.by})
