"""The whole of it: the duet's flow on its engine and store, programs with composers, every message seen to arrive."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.handoff_harness import LINES, Carrier
from podium.core.work import RunStatus
from podium.jobs.duet.bench.fake_pair import (
    FakePair,
    FakeSide,
    PairRunner,
    open_fake_pair,
    open_runner,
)
from podium.testing.fake_tuis import ScriptedAnswers

_SETTLE_SECONDS = 0.0
"""For a program that is known to take an Enter as soon as it shows a paste."""
_BODY = "\n".join(
    f"step {step} - read the file, change it, run the tests, say what came of it"
    for step in range(1, LINES + 1)
)


async def durable_loop(folder: Path) -> Carrier:
    async with AsyncExitStack() as stack:
        pair = await stack.enter_async_context(open_fake_pair(folder / secrets.token_hex(2)))
        # It answers only when its message has been seen to leave: that is not part of the handoff.
        answers = ScriptedAnswers(bodies=(_BODY,), think_seconds=0.2)
        for side in ("PLANNER", "EXECUTER"):
            pair.add_side(side, "composer", answers, settle_seconds=_SETTLE_SECONDS)
        harness = await stack.enter_async_context(open_runner(pair))
        await pair.terminals.come_up()
        kept = stack.pop_all()

    async def handoff(number: int) -> float:
        return await _handoff(harness, pair)

    return Carrier("durable", handoff, kept.aclose)


async def _handoff(harness: PairRunner, pair: FakePair) -> float:
    """A task is played to its end; its plan's way from the planner to the executer counts."""
    ended = await harness.play(rounds=1)
    if ended.status is not RunStatus.SUCCEEDED:
        raise RuntimeError(f"the task did not succeed: {ended.failure}")
    planner, executer = pair.sides
    plan = [event for event in planner.happened() if (event.what, event.type) == ("said", "plan")][
        -1
    ]
    return _taken_after(executer, plan.at) - plan.at


def _taken_after(fake_side: FakeSide, at: float) -> float:
    return next(
        event.at for event in fake_side.happened() if event.what == "took" and event.at > at
    )
