"""`podium bench duet`: pairs of programs that misbehave in every way that was seen hand work to each other."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path

from podium.domain.errors import BadInput, TimedOut
from podium.domain.events import MessageHeard
from podium.domain.messages import Side
from podium.domain.model import Noun
from podium.domain.work import Run, RunStatus
from podium.testing import retry_until
from podium.testing.tui_zoo import Answers
from podium.testing.tui_zoo.bodies import LONG, SHORT
from podium.wiring.bench_duet_stage import ZooPair, ZooSeat, zoo_pair
from podium.wiring.bench_duet_tally import Handoff, KindScore, handoff_of, prompts_of, score
from podium.wiring.bench_duet_theatre import LEG_SECONDS, Theatre, theatre
from podium.wiring.bench_duet_troubles import Trouble, troubles
from podium.wiring.bench_duet_truth import Confusion, watched

KINDS = (
    "composer", "ink", "alternate", "slow", "unbracketed", "wrapping", "echo", "banner", "resizing", "spinning",
    "swallowing", "blinking",
)  # fmt: skip
WAYS = (
    "plain", "status", "partial", "wordy", "malformed", "resize", "recap", "quoting", "unfenced", "strays", "crash", "twice",
)  # fmt: skip
"""Ways to answer that bring the message in the end."""
PLANS = 2
HANDOFFS_OF_A_TASK = 2 * PLANS + 1
HANG_SECONDS = 2 * LEG_SECONDS * HANDOFFS_OF_A_TASK
"""A task that has neither ended nor told of a trouble by then hangs."""
AT_ONCE = 2
"""Pairs that play at a time."""
_HANDOFFS_OF_A_PAIR = 40
_MOST_FAILED = 3
"""Of one pair, before it is given up."""
_REST_SECONDS = 20.0
_GLANCE_SECONDS = 0.2
_SIZES = ((160, 45), (200, 50))

Tell = Callable[[str], None]


class DuetScore(Noun):
    """The whole result."""

    pairs: int
    tasks: int
    kinds: tuple[KindScore, ...]
    handoffs: int
    exact: int
    inexact: tuple[Handoff, ...]
    """Those whose bodies came otherwise, and all that are wrong."""
    wrong: int
    """Wrong routings: something else than the answer was handed on, or it did not arrive exactly once."""
    hangs: int
    """Silent ones."""
    failed: tuple[str, ...]
    """Tasks that did not come to a good end, in the words that a person is told."""
    troubles: tuple[Trouble, ...]
    confusion: dict[str, dict[str, int]]
    """The program's own state → what was seen → how often."""

    @property
    def passed(self) -> bool:
        return not (self.wrong or self.hangs or self.failed) and all(
            each.as_expected == each.tries for each in self.troubles
        )


class Played(Noun):
    """What came of one pair."""

    tasks: int
    handoffs: tuple[Handoff, ...]
    failed: tuple[str, ...]
    hangs: int


async def bench_duet(handoffs: int, tell: Tell = lambda line: None) -> DuetScore:
    """Play until so many messages were handed on. Raises `ToolMissing` without tmux."""
    if handoffs < 1:
        raise BadInput("there must be at least one handoff; say --handoffs 1000")
    pairs = pairs_for(handoffs)
    room = asyncio.Semaphore(AT_ONCE)
    played: list[Played] = []
    seats: list[ZooSeat] = []
    confusion: Confusion = Counter()
    with tempfile.TemporaryDirectory(prefix="pb-") as folder:

        async def one(number: int, kinds: tuple[str, str]) -> None:
            async with room, zoo_pair(Path(folder) / str(number)) as pair:
                async with watched(pair) as watcher:
                    done = await play_pair(pair, kinds, -(-handoffs // len(pairs)))
                confusion.update(watcher.confusion())
            played.append(done)
            seats.extend(pair.seats)
            tell(f"{kinds[0]} → {kinds[1]}: {len(done.handoffs)} handed on")

        async with asyncio.TaskGroup() as group:
            for number, kinds in enumerate(pairs):
                group.create_task(one(number, kinds))
        found, seen = await troubles(Path(folder), max(1, handoffs // 250), tell)
        confusion.update(seen)
        return _scored(played, seats, confusion, found)


def pairs_for(handoffs: int) -> list[tuple[str, str]]:
    """Planner and executer: every kind on either side equally often, with another partner each time."""
    rounds = min(len(KINDS), max(1, round(handoffs / _HANDOFFS_OF_A_PAIR / len(KINDS))))
    shifts = (1 + step * 5 for step in range(rounds))
    return [
        (kind, KINDS[(at + shift) % len(KINDS)])
        for shift in shifts
        for at, kind in enumerate(KINDS)
    ]


async def play_pair(pair: ZooPair, kinds: tuple[str, str], handoffs: int) -> Played:
    """Seat planner and executer of these kinds, and let them do tasks until so many messages were handed on."""
    pair.seat("PLANNER", kinds[0], _answers(kinds[0]))
    pair.seat("EXECUTER", kinds[1], _answers(kinds[1]))
    resizing = asyncio.get_running_loop().create_task(_resize_when_wanted(pair))
    try:
        async with theatre(pair) as house:
            return await _tasks(house, handoffs)
    finally:
        resizing.cancel()
        await asyncio.wait({resizing})


async def _tasks(house: Theatre, handoffs: int) -> Played:
    done: list[Handoff] = []
    failed: list[str] = []
    hangs = tasks = 0
    while len(done) < handoffs and not hangs and len(failed) < _MOST_FAILED:
        tasks += 1
        taken = {seat.side: len(prompts_of(seat)) for seat in house.pair.seats}
        try:
            async with asyncio.timeout(HANG_SECONDS):
                ended = await house.play(rounds=PLANS + 1)
        except TimeoutError:
            hangs += 1
            continue
        if ended.status is not RunStatus.SUCCEEDED:
            failed.append(_trouble_of(ended, house.pair))
        await _are_done(house.pair)
        done += [_marked(heard, house.pair, taken) for heard in await house.handed_on(ended.id)]
    return Played(tasks=tasks, handoffs=tuple(done), failed=tuple(failed), hangs=hangs)


async def _are_done(pair: ZooPair) -> None:
    """A program may still paint, or send a second block, when the first has been heard."""
    with suppress(TimedOut):
        await retry_until(lambda: all(seat.rests for seat in pair.seats), seconds=_REST_SECONDS)


def _marked(heard: MessageHeard, pair: ZooPair, taken: Mapping[Side, int]) -> Handoff:
    seats = {seat.side: seat for seat in pair.seats}
    sender = seats[heard.sender]
    receiver = next((seats[side] for side in seats if side == heard.routed_to), None)
    since = taken[receiver.side] if receiver else 0
    return handoff_of(heard, sender, receiver, WAYS, since=since)


def _trouble_of(run: Run, pair: ZooPair) -> str:
    who = " → ".join(seat.kind for seat in pair.seats)
    why = run.failure.message if run.failure else f"it waits for {run.waiting_for}"
    return f"{who}: {run.status}: {why}"


async def _resize_when_wanted(pair: ZooPair) -> None:
    """Programs that stopped in the middle of a block wait for it."""
    answered = 0
    sizes = cycle(_SIZES)
    while True:
        await asyncio.sleep(_GLANCE_SECONDS)
        if (halves := sum(seat.halves() for seat in pair.seats)) > answered:
            answered = halves
            await pair.terminals.resize(*next(sizes))


def _answers(kind: str) -> Answers:
    """What is taller than a second screen is lost there, so that one says nothing long."""
    bodies = SHORT if kind == "alternate" else (*SHORT, *LONG)
    return Answers(ways=WAYS, bodies=bodies, plans=PLANS, think_seconds=0.02, start_seconds=0.6)


def _scored(
    played: Sequence[Played],
    seats: Sequence[ZooSeat],
    confusion: Confusion,
    found: Sequence[Trouble],
) -> DuetScore:
    handoffs = [each for one in played for each in one.handoffs]
    truths = dict.fromkeys(truth for truth, _ in sorted(confusion))
    return DuetScore(
        pairs=len(played),
        tasks=sum(one.tasks for one in played),
        kinds=tuple(score(kind, handoffs, seats) for kind in KINDS),
        handoffs=len(handoffs),
        exact=sum(each.exact for each in handoffs),
        inexact=tuple(each for each in handoffs if each.wrong or not each.exact),
        wrong=sum(each.wrong for each in handoffs),
        hangs=sum(one.hangs for one in played) + sum(each.hangs for each in found),
        failed=tuple(words for one in played for words in one.failed),
        troubles=tuple(found),
        confusion={
            truth: {seen: n for (true, seen), n in sorted(confusion.items()) if true == truth}
            for truth in truths
        },
    )
