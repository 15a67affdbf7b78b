"""Failure cases of the benchmark: programs that withhold a message, and adapters' reports compared with the truth."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from podium.agents.contract.messages import read_messages
from podium.core.errors import NeedsHuman, PodiumError
from podium.core.model import FrozenModel
from podium.core.turns import AwaitedMessage, Turn, TurnLimits
from podium.jobs.duet.bench.fake_pair import ZooPair, ZooSeat, zoo_pair
from podium.jobs.duet.prompts import task_words
from podium.testing.tui_zoo import Answers, Happened

SETTLED_SECONDS = 0.4
"""A state counts when it has lasted so long: a program paints a moment after it changed."""
_PAUSE_SECONDS = 0.2

_STARTED_AGAIN = ""

Confusion = Counter[tuple[str, str]]
"""The program's own state and what was seen → how often."""


@dataclass(frozen=True)
class Sighting:
    """What one side looked like at a moment."""

    side: str
    began: float
    ended: float
    seen: str


@dataclass
class Watcher:
    """Asks again and again what the sides of a pair are at, as `podium duet status` does."""

    pair: ZooPair
    sightings: list[Sighting] = field(default_factory=list)

    async def watch(self) -> None:
        while True:
            began = time.monotonic()
            # A server that is not up yet, or just goes.
            with suppress(PodiumError):
                for state in await self.pair.terminals.states():
                    if state.pane:
                        seen = state.status or "dead"
                        self.sightings.append(Sighting(state.name, began, time.monotonic(), seen))
            await asyncio.sleep(_PAUSE_SECONDS)

    def confusion(self) -> Confusion:
        found: Confusion = Counter()
        for seat in self.pair.seats:
            states = states_of(seat.happened())
            for sighting in self.sightings:
                if sighting.side == seat.name and (truth := true_state(states, sighting)):
                    found[truth, sighting.seen] += 1
        return found


@asynccontextmanager
async def watched(pair: ZooPair) -> AsyncIterator[Watcher]:
    watcher = Watcher(pair)
    task = asyncio.get_running_loop().create_task(watcher.watch())
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.wait({task})


def states_of(told: Sequence[Happened]) -> list[tuple[float, str]]:
    """When each state of a program began. Dead is one that was not started again: when that was is not known here."""
    marks = [each for each in told if each.what in ("state", "died")]
    names = [_STARTED_AGAIN if each.what == "died" else each.text for each in marks]
    if marks and marks[-1].what == "died":
        names[-1] = "dead"
    return [(each.at, name) for each, name in zip(marks, names, strict=True)]


def true_state(states: Sequence[tuple[float, str]], sighting: Sighting) -> str | None:
    """The state throughout a sighting and for a while before. None: it changed, or is not known."""
    state = None
    for at, name in states:
        if at > sighting.ended:
            break
        state = name if at <= sighting.began - SETTLED_SECONDS else None
    return state or None


ANSWERED, HANG = "answered", "hang"
HANG_SECONDS = 180.0
_SEEN_SECONDS = 3 * SETTLED_SECONDS
"""How long a state is kept up, so that it is seen."""
_AT_ONCE = 3


@dataclass(frozen=True)
class Case:
    """A program in trouble, and what is to come of asking it, time after time."""

    name: str
    kind: str
    ways: tuple[str, ...]
    expected: tuple[str, ...]
    """Of each turn: `answered`, the type of another message, or the name of the error that tells of it."""
    seconds: float = 60.0
    """Of a turn."""


CASES = (
    Case("works for ever", "ink", ("stuck", "plain"), ("TimedOut", ANSWERED), seconds=4.0),
    Case("spins for ever", "spinning", ("stuck", "plain"), ("TimedOut", ANSWERED), seconds=4.0),
    Case("asks before it begins", "modal", ("plain",), ("NeedsHuman", ANSWERED)),
    Case("asks in between", "composer", ("asks",), ("NeedsHuman", ANSWERED)),
    Case("asks in between", "ink", ("asks",), ("NeedsHuman", ANSWERED)),
    Case("dies of every message", "crashing", ("plain",), ("AgentLost",)),
    Case("dies in the middle, once", "composer", ("crash",), (ANSWERED,)),
    Case("dies in the middle, once", "alternate", ("crash",), (ANSWERED,)),
    Case("forgets the block", "composer", ("forgets",), (ANSWERED,), seconds=16.0),
    Case("says nothing", "ink", ("silent",), (ANSWERED,), seconds=16.0),
    Case("is blocked", "composer", ("blocker",), ("blocker",)),
)


class Trouble(FrozenModel):
    """How often one trouble was told as it should be."""

    name: str
    kind: str
    expected: str
    tries: int
    as_expected: int
    otherwise: tuple[str, ...] = ()
    """What came instead."""
    hangs: int = 0


async def troubles(
    folder: Path, tries: int, tell: Callable[[str], None]
) -> tuple[list[Trouble], Confusion]:
    """Each case so many times, with what was seen of the programs meanwhile."""
    room = asyncio.Semaphore(_AT_ONCE)
    confusion: Confusion = Counter()
    came: dict[int, list[tuple[str, ...]]] = {number: [] for number in range(len(CASES))}

    async def one(number: int, time: int) -> None:
        async with room, zoo_pair(folder / f"t{number}-{time}") as pair:
            async with watched(pair) as watcher:
                came[number].append(await _outcomes(pair, CASES[number]))
            confusion.update(watcher.confusion())
        tell(f"{CASES[number].kind} {CASES[number].name}: {', then '.join(came[number][-1])}")

    async with asyncio.TaskGroup() as group:
        for number in range(len(CASES)):
            for time in range(tries):
                group.create_task(one(number, time))
    return [_trouble(CASES[number], outcomes) for number, outcomes in came.items()], confusion


async def _outcomes(pair: ZooPair, case: Case) -> tuple[str, ...]:
    answers = Answers(ways=case.ways, start_seconds=_SEEN_SECONDS)
    seat = pair.seat("PLANNER", case.kind, answers)
    outcomes: list[str] = []
    number = 0
    for _ in case.expected:
        outcomes.append(await _outcome(seat, _turn(number, case, seat)))
        await asyncio.sleep(_SEEN_SECONDS)
        if outcomes[-1] == NeedsHuman.__name__:
            await pair.terminals.send_keys(seat.name, "y")  # the same turn is asked again
        else:
            number += 1
    return tuple(outcomes)


async def _outcome(seat: ZooSeat, turn: Turn) -> str:
    try:
        async with asyncio.timeout(HANG_SECONDS):
            reply = await seat.agent.ask(turn)
    except TimeoutError:
        return HANG
    except PodiumError as trouble:
        return type(trouble).__name__
    found = turn.awaits.found_in(read_messages(reply.text)) if turn.awaits else None
    if found is None:
        return "nothing"
    return ANSWERED if found.type == "plan" else found.type


def _turn(number: int, case: Case, seat: ZooSeat) -> Turn:
    awaited = AwaitedMessage(
        sender="PLANNER", types=("plan",), task=f"T{number}", nonce=f"{number:04}beef"
    )
    return Turn(
        run_id="run_bench",
        step_key=f"turn-{number}",
        role="planner",
        prompt=task_words("mend the roof", awaited, on_screen=True),
        workspace=str(seat.record.parent),
        limits=TurnLimits(seconds=case.seconds),
        awaits=awaited,
    )


def _trouble(case: Case, outcomes: list[tuple[str, ...]]) -> Trouble:
    return Trouble(
        name=case.name,
        kind=case.kind,
        expected=", then ".join(case.expected),
        tries=len(outcomes),
        as_expected=outcomes.count(case.expected),
        otherwise=tuple(", then ".join(each) for each in outcomes if each != case.expected),
        hangs=sum(HANG in each for each in outcomes),
    )
