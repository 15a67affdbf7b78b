"""Command `podium bench duet`: messages passed between misbehaving terminal programs, scored and printed."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.app import Options, command_app
from podium.cli.screen import Screen
from podium.core.errors import BadInput, TimedOut
from podium.core.model import FrozenModel, Json
from podium.core.turns import MessageBlock, Side, section_of
from podium.core.work import Run, RunStatus
from podium.jobs.duet.bench.failures import CaseScore, Confusion, run_cases, watched
from podium.jobs.duet.bench.fake_pair import (
    HOP_SECONDS,
    FakePair,
    FakeSide,
    PairRunner,
    open_fake_pair,
    open_runner,
)
from podium.jobs.duet.events import MessageHeard
from podium.render.text import counted, escaped_line
from podium.testing import retry_until
from podium.testing.fake_tuis import ScriptedAnswers
from podium.testing.fake_tuis.answers import LONG, SHORT
from podium.testing.fake_tuis.messages import whole_prompt


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
    """Number of times the receiver took it."""

    @property
    def wrong(self) -> bool:
        """It was not the answer, did not arrive, or arrived more than once."""
        return not self.meant or self.copies != 1


class KindScore(FrozenModel):
    """Score of one kind of program on either side."""

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
    received: MessageHeard,
    sender: FakeSide,
    receiver: FakeSide | None,
    ways: Sequence[str],
    *,
    since: int = 0,
) -> Handoff:
    """Score one message that was handed on.

    `since`: prompts that the receiver had taken before this task. Programs say the same body in many tasks.
    """
    message = received.message
    events = sender.happened()
    asked = [event.text for event in events if event.what == "asked"]
    blocks = [event for event in events if event.what == "said" and event.text == message.id]
    meant = [block for block in blocks if (block.to, block.type) == (message.to, message.type)]
    return Handoff(
        sender=sender.kind,
        receiver=receiver.kind if receiver else "",
        way=ways[asked.index(message.id) % len(ways)] if message.id in asked else "",
        exact=bool(meant) and meant[-1].body == message.body,
        meant=bool(meant),
        copies=_copies(message, receiver, since) if receiver else 1,
    )


def score(kind: str, handoffs: Iterable[Handoff], sides: Iterable[FakeSide]) -> KindScore:
    all_of_them = list(handoffs)
    sent = [handoff for handoff in all_of_them if handoff.sender == kind]
    taken = [handoff for handoff in all_of_them if handoff.receiver == kind]
    enters = [
        event.enters
        for side in sides
        if side.kind == kind
        for event in side.happened()
        if event.what == "took"
    ]
    return KindScore(
        kind=kind,
        said=len(sent),
        exact=sum(handoff.exact for handoff in sent),
        taken=sum(handoff.copies > 0 for handoff in taken),
        enters=sum(enters) / len(enters) if enters else 0.0,
        wrong=sum(handoff.wrong for handoff in sent),
    )


def _copies(message: MessageBlock, receiver: FakeSide, since: int) -> int:
    """Count how often the program took a message. Repeats after a restart count once."""
    text = "\n".join(prompts_of(receiver)[since:])
    again = sum(event.what == "died" for event in receiver.happened())
    copies = text.count(section_of(message))
    return max(copies - again, 1) if copies else 0


def prompts_of(side: FakeSide) -> list[str]:
    """List the prompts that a program took, with the text of those handed over as a file."""
    if not side.record.exists():
        return []
    return [whole_prompt(json.loads(line)) for line in side.record.read_text().splitlines()]


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
HANG_SECONDS = 2 * HOP_SECONDS * HANDOFFS_OF_A_TASK
"""A task that has neither ended nor told of a trouble by then hangs."""
AT_ONCE = 2
"""Pairs that play at a time."""
_HANDOFFS_OF_A_PAIR = 40
_MAX_FAILED = 3
"""Of one pair, before it is given up."""
_REST_SECONDS = 20.0
_GLANCE_SECONDS = 0.2
_SIZES = ((160, 45), (200, 50))

Report = Callable[[str], None]


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
    troubles: tuple[CaseScore, ...]
    confusion: dict[str, dict[str, int]]
    """State reported by the program → observed status → number of sightings."""

    @property
    def passed(self) -> bool:
        return not (self.wrong or self.hangs or self.failed) and all(
            case.as_expected == case.tries for case in self.troubles
        )


class PlayedDuet(FrozenModel):
    """Result of one pair."""

    tasks: int
    handoffs: tuple[Handoff, ...]
    failed: tuple[str, ...]
    hangs: int


async def bench_duet(handoffs: int, report: Report = lambda line: None) -> DuetScore:
    """Run tasks until `handoffs` messages were handed on. Raises `ToolMissing` without tmux."""
    if handoffs < 1:
        raise BadInput("--handoffs must be at least 1")
    pairs = pairs_for(handoffs)
    semaphore = asyncio.Semaphore(AT_ONCE)
    played: list[PlayedDuet] = []
    sides: list[FakeSide] = []
    confusion: Confusion = Counter()
    with tempfile.TemporaryDirectory(prefix="pb-") as folder:

        async def one(number: int, kinds: tuple[str, str]) -> None:
            async with semaphore, open_fake_pair(Path(folder) / str(number)) as pair:
                async with watched(pair) as watcher:
                    done = await play_pair(pair, kinds, -(-handoffs // len(pairs)))
                confusion.update(watcher.confusion())
            played.append(done)
            sides.extend(pair.sides)
            report(f"{kinds[0]} → {kinds[1]}: {len(done.handoffs)} passed on")

        async with asyncio.TaskGroup() as group:
            for number, kinds in enumerate(pairs):
                group.create_task(one(number, kinds))
        case_scores, case_confusion = await run_cases(Path(folder), max(1, handoffs // 250), report)
        confusion.update(case_confusion)
        return _scored(played, sides, confusion, case_scores)


def pairs_for(handoffs: int) -> list[tuple[str, str]]:
    """List (planner, executer) kinds: each kind on either side equally often, with a different partner each time."""
    rounds = min(len(KINDS), max(1, round(handoffs / _HANDOFFS_OF_A_PAIR / len(KINDS))))
    shifts = (1 + step * 5 for step in range(rounds))
    return [
        (kind, KINDS[(at + shift) % len(KINDS)])
        for shift in shifts
        for at, kind in enumerate(KINDS)
    ]


async def play_pair(pair: FakePair, kinds: tuple[str, str], handoffs: int) -> PlayedDuet:
    """Start planner and executer of these kinds and run tasks until `handoffs` messages were handed on."""
    pair.add_side("PLANNER", kinds[0], _answers(kinds[0]))
    pair.add_side("EXECUTER", kinds[1], _answers(kinds[1]))
    resizing = asyncio.get_running_loop().create_task(_resize_on_request(pair))
    try:
        async with open_runner(pair) as runner:
            return await _tasks(runner, handoffs)
    finally:
        resizing.cancel()
        await asyncio.wait({resizing})


async def _tasks(runner: PairRunner, handoffs: int) -> PlayedDuet:
    done: list[Handoff] = []
    failed: list[str] = []
    hangs = tasks = 0
    while len(done) < handoffs and not hangs and len(failed) < _MAX_FAILED:
        tasks += 1
        taken = {side.side: len(prompts_of(side)) for side in runner.pair.sides}
        try:
            async with asyncio.timeout(HANG_SECONDS):
                ended = await runner.play(rounds=PLANS + 1)
        except TimeoutError:
            hangs += 1
            continue
        if ended.status is not RunStatus.SUCCEEDED:
            failed.append(_failure_text(ended, runner.pair))
        await _are_done(runner.pair)
        done += [
            _handoff(received, runner.pair, taken) for received in await runner.handed_on(ended.id)
        ]
    return PlayedDuet(tasks=tasks, handoffs=tuple(done), failed=tuple(failed), hangs=hangs)


async def _are_done(pair: FakePair) -> None:
    """Wait until both programs are ready: one may still paint or send a second block after its first."""
    with suppress(TimedOut):
        await retry_until(lambda: all(side.rests for side in pair.sides), seconds=_REST_SECONDS)


def _handoff(received: MessageHeard, pair: FakePair, taken: Mapping[Side, int]) -> Handoff:
    by_side = {side.side: side for side in pair.sides}
    sender = by_side[received.sender]
    receiver = next((by_side[side] for side in by_side if side == received.routed_to), None)
    since = taken[receiver.side] if receiver else 0
    return handoff_of(received, sender, receiver, WAYS, since=since)


def _failure_text(run: Run, pair: FakePair) -> str:
    who = " → ".join(side.kind for side in pair.sides)
    why = run.failure.message if run.failure else f"it waits for {run.waiting_for}"
    return f"{who}: {run.status}: {why}"


async def _resize_on_request(pair: FakePair) -> None:
    """Resize the terminals for programs that stopped in the middle of a block and wait for it."""
    answered = 0
    sizes = cycle(_SIZES)
    while True:
        await asyncio.sleep(_GLANCE_SECONDS)
        if (halves := sum(side.halves() for side in pair.sides)) > answered:
            answered = halves
            await pair.terminals.resize(*next(sizes))


def _answers(kind: str) -> ScriptedAnswers:
    """Build the answers of a kind. Only short bodies on an alternate screen, which loses what scrolls off."""
    bodies = SHORT if kind == "alternate" else (*SHORT, *LONG)
    return ScriptedAnswers(
        ways=WAYS, bodies=bodies, plans=PLANS, think_seconds=0.02, start_seconds=0.6
    )


def _scored(
    played: Sequence[PlayedDuet],
    sides: Sequence[FakeSide],
    confusion: Confusion,
    case_scores: Sequence[CaseScore],
) -> DuetScore:
    handoffs = [handoff for one in played for handoff in one.handoffs]
    truths = dict.fromkeys(truth for truth, _ in sorted(confusion))
    return DuetScore(
        pairs=len(played),
        tasks=sum(one.tasks for one in played),
        kinds=tuple(score(kind, handoffs, sides) for kind in KINDS),
        handoffs=len(handoffs),
        exact=sum(handoff.exact for handoff in handoffs),
        inexact=tuple(handoff for handoff in handoffs if handoff.wrong or not handoff.exact),
        wrong=sum(handoff.wrong for handoff in handoffs),
        hangs=sum(one.hangs for one in played) + sum(case.hangs for case in case_scores),
        failed=tuple(failure for one in played for failure in one.failed),
        troubles=tuple(case_scores),
        confusion={
            truth: {status: n for (true, status), n in sorted(confusion.items()) if true == truth}
            for truth in truths
        },
    )


_KIND_HEADERS = ("KIND", "SENT", "EXACT", "RECEIVED", "ENTERS PER MESSAGE", "WRONG")
_CASE_HEADERS = ("FAILURE", "KIND", "EXPECTED", "TRIES", "AS EXPECTED", "OTHER")
_STATUSES = ("starting", "ready", "busy", "asking", "unknown", "dead")


def duet_record(score: DuetScore) -> dict[str, Json]:
    return {**score.model_dump(mode="json"), "passed": score.passed}


def print_duet_score(screen: Screen, score: DuetScore) -> None:
    screen.table(_KIND_HEADERS, [_kind_row(kind) for kind in score.kinds])
    screen.line(
        f"{counted(score.handoffs, 'message')} passed on by {counted(score.pairs, 'pair')} in {counted(score.tasks, 'task')}: "
        f"{score.exact} exact, {score.wrong} routed wrongly, {counted(score.hangs, 'silent hang')}"
    )
    for (kind, way), count in Counter(
        (handoff.sender, handoff.way) for handoff in score.inexact
    ).items():
        screen.line(f"not exact: {kind}, {way}: {count}")
    screen.line()
    screen.table(_CASE_HEADERS, [_case_row(case) for case in score.troubles])
    screen.line()
    screen.table(
        ("ACTUAL", *(f"SEEN {status.upper()}" for status in _STATUSES)), _confusion_rows(score)
    )
    for failure in score.failed:
        screen.line(f"failed: {escaped_line(failure)}")


def _kind_row(score: KindScore) -> tuple[str, ...]:
    figures = (score.said, score.exact, score.taken)
    return (score.kind, *map(str, figures), f"{score.enters:.2f}", str(score.wrong))


def _case_row(case: CaseScore) -> tuple[str, ...]:
    counts = (case.expected, str(case.tries), str(case.as_expected))
    return (case.name, case.kind, *counts, "; ".join(case.otherwise))


def _confusion_rows(score: DuetScore) -> list[tuple[str, ...]]:
    return [
        (truth, *(str(statuses.get(status, 0)) for status in _STATUSES))
        for truth, statuses in score.confusion.items()
    ]


app = command_app()


@app.command()
def duet(
    context: typer.Context,
    handoffs: Annotated[
        int, typer.Option("--handoffs", metavar="N", min=1, help="Number of messages to pass on.")
    ] = 1000,
) -> None:
    """Benchmark message handoffs between pairs of misbehaving terminal programs.

    Uses real tmux, fake terminal agents and the flow of `podium duet`. Exits with 1 when a message
    was routed wrongly, a task hung without an error, or a failure was not reported.

    \b
    Example:
      podium bench duet
      podium bench duet --handoffs 100 --json
    """
    options: Options = context.obj
    screen = Screen(json=options.json)
    score = asyncio.run(bench_duet(handoffs, screen.stderr_line))
    screen.answer(duet_record(score), lambda: print_duet_score(screen, score))
    raise typer.Exit(0 if score.passed else 1)
