"""Benchmark `podium bench duet`: messages passed between misbehaving terminal programs, scored and printed."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path

from podium.cli.screen import Screen
from podium.core.errors import BadInput, TimedOut
from podium.core.model import FrozenModel, Json
from podium.core.turns import MessageBlock, Side, section_of
from podium.core.work import Run, RunStatus
from podium.jobs.duet.bench.failures import Confusion, Trouble, troubles, watched
from podium.jobs.duet.bench.fake_pair import (
    LEG_SECONDS,
    Theatre,
    ZooPair,
    ZooSeat,
    theatre,
    zoo_pair,
)
from podium.jobs.duet.events import MessageHeard
from podium.render.text import counted, shown_line
from podium.testing import retry_until
from podium.testing.tui_zoo import Answers
from podium.testing.tui_zoo.bodies import LONG, SHORT
from podium.testing.tui_zoo.prompts import whole_prompt


class Handoff(FrozenModel):
    """One message that the router took from a side and handed on."""

    sender: str
    """Kind of program that said it."""
    receiver: str
    """Kind of program that was to take it. Empty: it was for the person."""
    way: str
    exact: bool
    """Its body is what the program said, to the byte."""
    meant: bool
    """The program said a block of this id, type and address as an answer: nothing else was taken for it."""
    copies: int
    """How often the receiver took it."""

    @property
    def wrong(self) -> bool:
        """It was not the answer, did not arrive, or arrived more than once."""
        return not self.meant or self.copies != 1


class KindScore(FrozenModel):
    """How one kind of program did, on whichever side."""

    kind: str
    said: int
    """Messages of it that were handed on."""
    exact: int
    taken: int
    """Messages that it took from the other side."""
    enters: float
    """Presses of Enter for each message that it took, on average."""
    wrong: int


def handoff_of(
    heard: MessageHeard,
    sender: ZooSeat,
    receiver: ZooSeat | None,
    ways: Sequence[str],
    *,
    since: int = 0,
) -> Handoff:
    """The marks of one message that was handed on.

    `since`: prompts that the receiver had taken before this task. Programs say the same body in many tasks.
    """
    message = heard.message
    told = sender.happened()
    asked = [each.text for each in told if each.what == "asked"]
    said = [each for each in told if each.what == "said" and each.text == message.id]
    meant = [each for each in said if (each.to, each.type) == (message.to, message.type)]
    return Handoff(
        sender=sender.kind,
        receiver=receiver.kind if receiver else "",
        way=ways[asked.index(message.id) % len(ways)] if message.id in asked else "",
        exact=bool(meant) and meant[-1].body == message.body,
        meant=bool(meant),
        copies=_copies(message, receiver, since) if receiver else 1,
    )


def score(kind: str, handoffs: Iterable[Handoff], seats: Iterable[ZooSeat]) -> KindScore:
    all_of_them = list(handoffs)
    said = [each for each in all_of_them if each.sender == kind]
    taken = [each for each in all_of_them if each.receiver == kind]
    enters = [
        each.enters
        for seat in seats
        if seat.kind == kind
        for each in seat.happened()
        if each.what == "took"
    ]
    return KindScore(
        kind=kind,
        said=len(said),
        exact=sum(each.exact for each in said),
        taken=sum(each.copies > 0 for each in taken),
        enters=sum(enters) / len(enters) if enters else 0.0,
        wrong=sum(each.wrong for each in said),
    )


def _copies(message: MessageBlock, receiver: ZooSeat, since: int) -> int:
    """How often the program took it; what it was given again because it had died counts once."""
    text = "\n".join(prompts_of(receiver)[since:])
    again = sum(each.what == "died" for each in receiver.happened())
    copies = text.count(section_of(message))
    return max(copies - again, 1) if copies else 0


def prompts_of(seat: ZooSeat) -> list[str]:
    """All that a program took; what was handed over as a file, from there."""
    if not seat.record.exists():
        return []
    return [whole_prompt(json.loads(line)) for line in seat.record.read_text().splitlines()]


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
_MAX_FAILED = 3
"""Of one pair, before it is given up."""
_REST_SECONDS = 20.0
_GLANCE_SECONDS = 0.2
_SIZES = ((160, 45), (200, 50))

Tell = Callable[[str], None]


class DuetScore(FrozenModel):
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


class Played(FrozenModel):
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
    while len(done) < handoffs and not hangs and len(failed) < _MAX_FAILED:
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


_KINDS = ("KIND", "SAID", "EXACT", "TOOK", "ENTERS EACH", "WRONG")
_TROUBLES = ("TROUBLE", "KIND", "TO BE TOLD", "TRIES", "TOLD SO", "OTHERWISE")
_SEEN = ("starting", "ready", "busy", "asking", "unknown", "dead")


def duet_record(score: DuetScore) -> dict[str, Json]:
    return {**score.model_dump(mode="json"), "passed": score.passed}


def tell_duet(screen: Screen, score: DuetScore) -> None:
    screen.table(_KINDS, [_kind_row(each) for each in score.kinds])
    screen.line(
        f"{score.handoffs} handed on by {counted(score.pairs, 'pair')} in {counted(score.tasks, 'task')}: "
        f"{score.exact} exact, {score.wrong} routed wrongly, {counted(score.hangs, 'silent hang')}"
    )
    for (kind, way), count in Counter((each.sender, each.way) for each in score.inexact).items():
        screen.line(f"not exact: {kind}, {way}: {count}")
    screen.line()
    screen.table(_TROUBLES, [_trouble_row(each) for each in score.troubles])
    screen.line()
    screen.table(("TRULY", *(f"SEEN {seen.upper()}" for seen in _SEEN)), _confusion_rows(score))
    for words in score.failed:
        screen.line(f"failed: {shown_line(words)}")


def _kind_row(each: KindScore) -> tuple[str, ...]:
    figures = (each.said, each.exact, each.taken)
    return (each.kind, *map(str, figures), f"{each.enters:.2f}", str(each.wrong))


def _trouble_row(each: Trouble) -> tuple[str, ...]:
    told = (each.expected, str(each.tries), str(each.as_expected))
    return (each.name, each.kind, *told, "; ".join(each.otherwise))


def _confusion_rows(score: DuetScore) -> list[tuple[str, ...]]:
    return [
        (truth, *(str(seen.get(each, 0)) for each in _SEEN))
        for truth, seen in score.confusion.items()
    ]
