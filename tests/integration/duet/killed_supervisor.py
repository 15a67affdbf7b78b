"""A supervisor of a duet that may be killed at any moment: `python -m tests.integration.duet.killed_supervisor FOLDER EXECUTER TASKS`.

It goes on with what the one before it left, and says `works` when it does and `done` when all tasks have ended.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from podium.jobs.duet.bench.fake_pair import FakePair, PairRunner, open_runner
from podium.jobs.duet.models import DUET
from podium.ports import RunQuery
from podium.testing.fake_tuis import ScriptedAnswers


def a_pair(folder: Path, executer: str) -> FakePair:
    """The same pair for whoever holds it."""
    pair = FakePair(folder)
    answers = ScriptedAnswers(ways=("status", "plain", "partial", "recap"), plans=2)
    pair.add_side("PLANNER", "ink", answers)
    pair.add_side("EXECUTER", executer, answers)
    return pair


async def main(folder: Path, executer: str, tasks: int) -> None:
    pair = a_pair(folder, executer)
    async with open_runner(pair) as harness:
        print("works", flush=True)
        await finish_all(harness, tasks)
    await pair.terminals.close()
    print("done", flush=True)


async def finish_all(harness: PairRunner, tasks: int) -> None:
    for run in await harness.engine.runs(RunQuery(flow=DUET, limit=1000)):
        if not run.status.ended:
            await harness.engine.resume(run.id)
            await harness.engine.finish(run.id, stop_when_waiting=True)
    while len(await harness.engine.runs(RunQuery(flow=DUET, limit=1000))) < tasks:
        await harness.play(rounds=3)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
