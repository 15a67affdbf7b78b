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
from podium.jobs.duet.claims import as_claimed, claim, door_folder, let_go, pair_folder
from podium.jobs.duet.confinement import (
    DuetConfinement,
    LazyConfinement,
    LazyHookServers,
    MessagesGate,
    duet_fence,
)
from podium.jobs.duet.keyboard import keyboard_came_back
from podium.jobs.duet.models import Pair, PairSide
from podium.jobs.duet.pairs import GENERIC, SIDES, socket_path, terminal_kind
from podium.jobs.duet.role_agents import player_of

if TYPE_CHECKING:
    from podium.agents import AgentOptions
    from podium.agents.tui import Adapter, TerminalPair, TuiAgent, TuiDeps
    from podium.app.app import Podium


async def terminals_of(podium: Podium, pair: Pair) -> DuetSides:
    """Both sides as agents. Their programs are started when they are first asked, if they are not up."""
    from podium.agents import ContractedAgent

    claim(podium, pair)
    terminals = _seated(podium, pair)
    podium.close_with(terminals.pair.close)

    def chair(side: Side) -> DuetSide:
        agent, seat = terminals.agents[side], pair.seat(side)
        contracted = ContractedAgent(agent, redact=podium.redactor.text)
        return DuetSide(
            player_of(podium, side, seat, contracted),
            seat.cwd,
            on_screen=agent.reads_screen,
            keeps_conversation=True,
        )

    return DuetSides(planner=chair("PLANNER"), executer=chair("EXECUTER"))


@asynccontextmanager
async def pair_up(podium: Podium, pair: Pair) -> AsyncIterator[TerminalPair]:
    """The pair with both programs up, ready and told their parts. What was refused leaves nothing behind."""
    from podium.agents.tui.errors import NotListening

    was_there = socket_path(pair.socket, podium.environ).exists()
    claim(podium, pair)
    async with _held(podium, pair) as terminals:
        try:
            await terminals.pair.come_up()
        except (UserMustAct, CallRefused) as error:
            # One whose input is not free is there to be looked at.
            if not was_there and not isinstance(error, NotListening):
                await terminals.pair.depart()
                let_go(podium, pair)
            raise
        yield terminals.pair


async def nudge_side(podium: Podium, pair: Pair, side: Side, words: str) -> None:
    """Say something to a side that rests."""
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        await terminals.pair.nudge(side.lower(), words)


async def interrupt_side(podium: Podium, pair: Pair, side: Side) -> None:
    """End what a side is at. Harmless when the pair is not up."""
    if not socket_path(pair.socket, podium.environ).exists():
        return
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        await terminals.pair.interrupt(side.lower())


async def take_down(podium: Podium, pair: Pair) -> None:
    """End both programs and their server, and remove what they kept."""
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        await terminals.pair.depart()
    let_go(podium, pair)


@asynccontextmanager
async def pair_seen(podium: Podium, pair: Pair) -> AsyncIterator[TerminalPair]:
    """The pair as it is up, for whoever looks on. Raises `NotPossibleNow` for one without terminals."""
    if pair.transport == "headless":
        raise NotPossibleNow(f"pair {pair.name!r} has no terminals: each turn is a call")
    async with _held(podium, as_claimed(podium, pair), steering=True) as terminals:
        yield terminals.pair


@asynccontextmanager
async def pair_held(podium: Podium, pair: Pair) -> AsyncIterator[TerminalPair]:
    """The pair with its sides seated, let go of afterwards. Starts nothing."""
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
    """`steering` starts nothing: it works also where the settings of the agents cannot be used as they are now."""
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
    terminals = TerminalPair(_kit(podium, pair, steering=steering), settings)
    agents = {side: _agent(podium, terminals, side, pair.seat(side), steering) for side in SIDES}
    return _PairTerminals(terminals, agents)


def _agent(
    podium: Podium, terminals: TerminalPair, side: Side, seat: PairSide, steering: bool
) -> TuiAgent:
    kind = terminal_kind(podium, side, seat)
    part = primer(side, on_screen=kind == GENERIC)
    try:
        options = _options(podium, seat)
    except UserMustAct:
        if not steering:
            raise
        options = _unsettled(seat)
    return terminals.side(side.lower(), _adapter(kind, options), options, Path(seat.cwd), part)


def _options(podium: Podium, seat: PairSide) -> AgentOptions:
    """What podium.yaml says of it. How a `command` is read without a terminal means nothing on one."""
    options, settings = options_of(podium, seat.agent), podium.settings.agents.get(seat.agent)
    changes: dict[str, object] = {"command": seat.command} if seat.command else {}
    if settings is not None and settings.kind == "command":
        changes["options"] = {}
    return options.model_copy(update=changes)


def _unsettled(seat: PairSide) -> AgentOptions:
    """For a program that runs already, whose command nobody needs to know any more."""
    from podium.agents import AgentOptions

    return AgentOptions(name=seat.agent, command=seat.command or (seat.agent,))


def _adapter(kind: str, options: AgentOptions) -> Adapter:
    from podium.agents.tui import adapter_for

    return adapter_for(kind, options)


def _kit(podium: Podium, pair: Pair, *, steering: bool) -> TuiDeps:
    from podium.agents.tui import TuiDeps
    from podium.sandbox import end_left_server, hook_command

    doors, folder = door_folder(podium, pair), pair_folder(podium, pair)
    socket = socket_path(pair.socket, podium.environ)

    def fence() -> DuetConfinement:
        return duet_fence(podium, socket, doors)

    async def lapsed(run_id: str, name: str, hold: KeyboardHold) -> None:
        (side,) = [side for side in SIDES if side.lower() == name]
        terminal = Terminal(pair=pair.name, side=side)
        await keyboard_came_back(await podium.store(), run_id, terminal, hold)

    return TuiDeps(
        launcher=podium.launcher,
        # Where a program may be restarted the fence is there first: one that cannot be drawn ends no program.
        enclosures=LazyConfinement(fence) if steering else fence(),
        doors=LazyHookServers(
            lambda: podium.hook_doors(
                doors,
                gate=MessagesGate(podium.gate, str(folder)),
                confinement_provider=LazyConfinement(fence),
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
