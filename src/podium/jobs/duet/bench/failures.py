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
from podium.jobs.duet.bench.fake_pair import FakePair, FakeSide, open_fake_pair
from podium.jobs.duet.prompts import task_prompt
from podium.testing.fake_tuis import Happened, ScriptedAnswers

SETTLED_SECONDS = 0.4
"""A state counts when it has lasted so long: a program paints a moment after it changed."""
_PAUSE_SECONDS = 0.2

_STARTED_AGAIN = ""

Confusion = Counter[tuple[str, str]]
"""(State reported by the program, observed status) → number of sightings."""


@dataclass(frozen=True)
class Sighting:
    """Observed status of one side at one time."""

    side: str
    began: float
    ended: float
    status: str


@dataclass
class Watcher:
    """Polls the status of both sides of a pair, as `podium duet status` does."""

    pair: FakePair
    sightings: list[Sighting] = field(default_factory=list)

    async def watch(self) -> None:
        while True:
            began = time.monotonic()
            # A server that is not up yet, or just goes.
            with suppress(PodiumError):
                for state in await self.pair.terminals.states():
                    if state.pane:
                        status = state.status or "dead"
                        self.sightings.append(Sighting(state.name, began, time.monotonic(), status))
            await asyncio.sleep(_PAUSE_SECONDS)

    def confusion(self) -> Confusion:
        counts: Confusion = Counter()
        for side in self.pair.sides:
            states = states_of(side.happened())
            for sighting in self.sightings:
                if sighting.side == side.name and (truth := true_state(states, sighting)):
                    counts[truth, sighting.status] += 1
        return counts


@asynccontextmanager
async def watched(pair: FakePair) -> AsyncIterator[Watcher]:
    watcher = Watcher(pair)
    task = asyncio.get_running_loop().create_task(watcher.watch())
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.wait({task})


def states_of(events: Sequence[Happened]) -> list[tuple[float, str]]:
    """List the start time and name of each state. A program is dead when it was not started again; that time is unknown."""
    changes = [event for event in events if event.what in ("state", "died")]
    names = [_STARTED_AGAIN if change.what == "died" else change.text for change in changes]
    if changes and changes[-1].what == "died":
        names[-1] = "dead"
    return [(change.at, name) for change, name in zip(changes, names, strict=True)]


def true_state(states: Sequence[tuple[float, str]], sighting: Sighting) -> str | None:
    """Return the state that held throughout a sighting and shortly before. None: it changed, or is unknown."""
    state = None
    for at, name in states:
        if at > sighting.ended:
            break
        state = name if at <= sighting.began - SETTLED_SECONDS else None
    return state or None


ANSWERED, HANG = "answered", "hang"
HANG_SECONDS = 180.0
_STATE_SECONDS = 3 * SETTLED_SECONDS
"""Duration of a state, long enough to be observed."""
_AT_ONCE = 3


@dataclass(frozen=True)
class FailureCase:
    """A failing program, and the expected outcome of each turn."""

    name: str
    kind: str
    ways: tuple[str, ...]
    expected: tuple[str, ...]
    """Of each turn: `answered`, the type of another message, or the name of the error that tells of it."""
    seconds: float = 60.0
    """Of a turn."""


CASES = (
    FailureCase("works forever", "ink", ("stuck", "plain"), ("TimedOut", ANSWERED), seconds=4.0),
    FailureCase(
        "spins forever", "spinning", ("stuck", "plain"), ("TimedOut", ANSWERED), seconds=4.0
    ),
    FailureCase("asks before it starts", "modal", ("plain",), ("NeedsHuman", ANSWERED)),
    FailureCase("asks in between", "composer", ("asks",), ("NeedsHuman", ANSWERED)),
    FailureCase("asks in between", "ink", ("asks",), ("NeedsHuman", ANSWERED)),
    FailureCase("dies on every message", "crashing", ("plain",), ("AgentLost",)),
    FailureCase("dies in the middle, once", "composer", ("crash",), (ANSWERED,)),
    FailureCase("dies in the middle, once", "alternate", ("crash",), (ANSWERED,)),
    FailureCase("forgets the block", "composer", ("forgets",), (ANSWERED,), seconds=16.0),
    FailureCase("says nothing", "ink", ("silent",), (ANSWERED,), seconds=16.0),
    FailureCase("is blocked", "composer", ("blocker",), ("blocker",)),
)


class CaseScore(FrozenModel):
    """Number of tries in which a failure was reported as expected."""

    name: str
    kind: str
    expected: str
    tries: int
    as_expected: int
    otherwise: tuple[str, ...] = ()
    """Other outcomes."""
    hangs: int = 0


async def run_cases(
    folder: Path, tries: int, report: Callable[[str], None]
) -> tuple[list[CaseScore], Confusion]:
    """Run each case `tries` times. Returns the scores and the observed statuses."""
    semaphore = asyncio.Semaphore(_AT_ONCE)
    confusion: Confusion = Counter()
    came: dict[int, list[tuple[str, ...]]] = {number: [] for number in range(len(CASES))}

    async def one(number: int, time: int) -> None:
        async with semaphore, open_fake_pair(folder / f"t{number}-{time}") as pair:
            async with watched(pair) as watcher:
                came[number].append(await _outcomes(pair, CASES[number]))
            confusion.update(watcher.confusion())
        report(f"{CASES[number].kind} {CASES[number].name}: {', then '.join(came[number][-1])}")

    async with asyncio.TaskGroup() as group:
        for number in range(len(CASES)):
            for time in range(tries):
                group.create_task(one(number, time))
    return [_case_score(CASES[number], outcomes) for number, outcomes in came.items()], confusion


async def _outcomes(pair: FakePair, case: FailureCase) -> tuple[str, ...]:
    answers = ScriptedAnswers(ways=case.ways, start_seconds=_STATE_SECONDS)
    side = pair.add_side("PLANNER", case.kind, answers)
    outcomes: list[str] = []
    number = 0
    for _ in case.expected:
        outcomes.append(await _outcome(side, _turn(number, case, side)))
        await asyncio.sleep(_STATE_SECONDS)
        if outcomes[-1] == NeedsHuman.__name__:
            await pair.terminals.send_keys(side.name, "y")  # the same turn is asked again
        else:
            number += 1
    return tuple(outcomes)


async def _outcome(side: FakeSide, turn: Turn) -> str:
    try:
        async with asyncio.timeout(HANG_SECONDS):
            reply = await side.agent.ask(turn)
    except TimeoutError:
        return HANG
    except PodiumError as error:
        return type(error).__name__
    message = turn.awaits.find_in(read_messages(reply.text)) if turn.awaits else None
    if message is None:
        return "nothing"
    return ANSWERED if message.type == "plan" else message.type


def _turn(number: int, case: FailureCase, side: FakeSide) -> Turn:
    awaited = AwaitedMessage(
        sender="PLANNER", types=("plan",), task=f"T{number}", nonce=f"{number:04}beef"
    )
    return Turn(
        run_id="run_bench",
        step_key=f"turn-{number}",
        role="planner",
        prompt=task_prompt("mend the roof", awaited, on_screen=True),
        workspace=str(side.record.parent),
        limits=TurnLimits(seconds=case.seconds),
        awaits=awaited,
    )


def _case_score(case: FailureCase, outcomes: list[tuple[str, ...]]) -> CaseScore:
    return CaseScore(
        name=case.name,
        kind=case.kind,
        expected=", then ".join(case.expected),
        tries=len(outcomes),
        as_expected=outcomes.count(case.expected),
        otherwise=tuple(
            ", then ".join(outcome) for outcome in outcomes if outcome != case.expected
        ),
        hangs=sum(HANG in outcome for outcome in outcomes),
    )
