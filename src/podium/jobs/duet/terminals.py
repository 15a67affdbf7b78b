"""Pairs on terminals: start, attach to, steer and end the two programs of a tmux server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.agent_builder import options_of
from podium.core.errors import CallRefused, NotPossibleNow, UserMustAct
from podium.core.keyboards import KeyboardHold
from podium.core.terminals import Terminal
from podium.core.turns import Side
from podium.jobs.duet import DuetSide, DuetSides, primer
from podium.jobs.duet.claims import as_claimed, claim, hook_folder, let_go, pair_folder
from podium.jobs.duet.confinement import (
    DuetConfinement,
    LazyConfinement,
    LazyHookServers,
    MessagesGate,
    duet_confinement,
)
from podium.jobs.duet.keyboard import keyboard_came_back
from podium.jobs.duet.models import Pair, PairSide
from podium.jobs.duet.pairs import GENERIC, SIDES, bind_role, socket_path, terminal_kind

if TYPE_CHECKING:
    from podium.agents import AgentOptions
    from podium.agents.tui import Adapter, TerminalPair, TuiAgent, TuiDeps
    from podium.app.app import Podium


async def terminals_of(podium: Podium, pair: Pair) -> DuetSides:
    """Build both sides as agents. A program that is not up is started with its first turn."""
    from podium.agents import ContractedAgent

    claim(podium, pair)
    terminals = _seated(podium, pair)
    podium.close_with(terminals.pair.close)

    def chair(side: Side) -> DuetSide:
        agent, slot = terminals.agents[side], pair.slot(side)
        contracted = ContractedAgent(agent, redact=podium.redactor.text)
        return DuetSide(
            bind_role(podium, side, slot, contracted),
            slot.cwd,
            on_screen=agent.reads_screen,
            keeps_conversation=True,
        )

    return DuetSides(planner=chair("PLANNER"), executer=chair("EXECUTER"))


@asynccontextmanager
async def pair_up(podium: Podium, pair: Pair) -> AsyncIterator[TerminalPair]:
    """Bring up both programs, ready and primed. A refused start leaves nothing behind."""
    from podium.agents.tui.control import NotListening

    was_there = socket_path(pair.socket, podium.environ).exists()
    claim(podium, pair)
    async with _held(podium, pair) as terminals:
        try:
            await terminals.pair.come_up()
        except (UserMustAct, CallRefused) as error:
            # A program whose input is not free stays up for inspection.
            if not was_there and not isinstance(error, NotListening):
                await terminals.pair.depart()
                let_go(podium, pair)
            raise
        yield terminals.pair


async def nudge_side(podium: Podium, pair: Pair, side: Side, text: str) -> None:
    """Send text to an idle side."""
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        await terminals.pair.nudge(side.lower(), text)


async def interrupt_side(podium: Podium, pair: Pair, side: Side) -> None:
    """Interrupt a side. Harmless when the pair is not up."""
    if not socket_path(pair.socket, podium.environ).exists():
        return
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        await terminals.pair.interrupt(side.lower())


async def take_down(podium: Podium, pair: Pair) -> None:
    """End both programs and their server, and remove their files."""
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        await terminals.pair.depart()
    let_go(podium, pair)


@asynccontextmanager
async def observed_pair(podium: Podium, pair: Pair) -> AsyncIterator[TerminalPair]:
    """Open the pair as it is up, read-only. Raises `NotPossibleNow` for a pair without terminals."""
    if pair.transport == "headless":
        raise NotPossibleNow(f"pair {pair.name!r} has no terminals; each turn is an agent call")
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        yield terminals.pair


@asynccontextmanager
async def pair_held(podium: Podium, pair: Pair) -> AsyncIterator[TerminalPair]:
    """Open the pair and release it afterwards. Starts nothing."""
    claim(podium, pair)
    async with _held(podium, pair) as terminals:
        yield terminals.pair


class _PairTerminals:
    """A pair with its two agents."""

    def __init__(self, pair: TerminalPair, agents: dict[Side, TuiAgent]) -> None:
        self.pair = pair
        self.agents = agents


@asynccontextmanager
async def _held(
    podium: Podium, pair: Pair, *, steering: bool = False
) -> AsyncIterator[_PairTerminals]:
    """Open the pair. `steering` starts nothing, and works even if the settings of the agents are invalid now."""
    terminals = _seated(podium, pair, steering=steering)
    try:
        yield terminals
    finally:
        await terminals.pair.close()


def _seated(podium: Podium, pair: Pair, *, steering: bool = False) -> _PairTerminals:
    from podium.agents.tui import TerminalPair, TerminalSettings

    settings = TerminalSettings(
        socket=socket_path(pair.socket, podium.environ),
        folder=pair_folder(podium, pair),
        session=pair.session,
    )
    terminals = TerminalPair(_deps(podium, pair, steering=steering), settings)
    agents = {side: _agent(podium, terminals, side, pair.slot(side), steering) for side in SIDES}
    return _PairTerminals(terminals, agents)


def _agent(
    podium: Podium, terminals: TerminalPair, side: Side, slot: PairSide, steering: bool
) -> TuiAgent:
    kind = terminal_kind(podium, side, slot)
    part = primer(side, on_screen=kind == GENERIC)
    try:
        options = _options(podium, slot)
    except UserMustAct:
        if not steering:
            raise
        options = _unsettled(slot)
    return terminals.side(side.lower(), _adapter(kind, options), options, Path(slot.cwd), part)


def _options(podium: Podium, slot: PairSide) -> AgentOptions:
    """Read the options of podium.yaml, without the headless output options of a `command` agent."""
    options, settings = options_of(podium, slot.agent), podium.settings.agents.get(slot.agent)
    changes: dict[str, object] = {"command": slot.command} if slot.command else {}
    if settings is not None and settings.kind == "command":
        changes["options"] = {}
    return options.model_copy(update=changes)


def _unsettled(slot: PairSide) -> AgentOptions:
    """Build options for a running program, whose command is not needed any more."""
    from podium.agents import AgentOptions

    return AgentOptions(name=slot.agent, command=slot.command or (slot.agent,))


def _adapter(kind: str, options: AgentOptions) -> Adapter:
    from podium.agents.tui import adapter_for

    return adapter_for(kind, options)


def _deps(podium: Podium, pair: Pair, *, steering: bool) -> TuiDeps:
    from podium.agents.tui import TuiDeps
    from podium.sandbox import end_left_server, hook_command

    doors, folder = hook_folder(podium, pair), pair_folder(podium, pair)
    socket = socket_path(pair.socket, podium.environ)

    def confinement() -> DuetConfinement:
        return duet_confinement(podium, socket, doors)

    async def lapsed(run_id: str, name: str, hold: KeyboardHold) -> None:
        (side,) = [side for side in SIDES if side.lower() == name]
        terminal = Terminal(pair=pair.name, side=side)
        await keyboard_came_back(await podium.store(), run_id, terminal, hold)

    return TuiDeps(
        launcher=podium.launcher,
        # Before a program may be restarted its confinement exists: a failure to confine ends no program.
        confinement_provider=LazyConfinement(confinement) if steering else confinement(),
        doors=LazyHookServers(
            lambda: podium.hook_doors(
                doors,
                gate=MessagesGate(podium.gate, str(folder)),
                confinement_provider=LazyConfinement(confinement),
            )
        ),
        transcripts=podium.transcripts,
        clock=podium.clock,
        hook_command=hook_command(),
        user_home=Path(podium.environ.get("HOME") or Path.home()),
        environ=podium.environ,
        end_left=end_left_server,
        door_folder=doors,
        keyboard_lapsed=lapsed,
    )
