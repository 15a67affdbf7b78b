"""Supervisors of a duet that are killed at any moment: every task is finished once, by whoever comes next."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from podium.core.work import RunStatus
from podium.jobs.duet.bench.fake_pair import FakePair, FakeSide, open_runner
from podium.jobs.duet.events import LegOpened
from podium.jobs.duet.models import DUET
from podium.ports import EventQuery, RunQuery
from podium.testing.fake_tuis.messages import requested_block
from tests.integration.duet.killed_supervisor import a_pair
from tests.unit.sandbox.trees import ROOT

NEVER = 1_000_000


@pytest.fixture
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[FakePair]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine; `sh scripts/need tmux` installs it")
    with TemporaryDirectory(prefix="pk") as folder:
        pair = a_pair(Path(folder), request.param)
        try:
            yield pair
        finally:
            await pair.terminals.depart()


@pytest.mark.soak
@pytest.mark.parametrize("pair", ["composer"], indirect=True)
async def test_every_task_is_finished_once_whoever_is_killed_over_it(pair: FakePair) -> None:
    await kill_and_finish(pair, kills=2)


@pytest.mark.soak
@pytest.mark.parametrize("pair", ["composer", "swallowing"], indirect=True)
async def test_the_same_over_a_hundred_kills(pair: FakePair) -> None:
    await kill_and_finish(pair, kills=100)


async def kill_and_finish(pair: FakePair, kills: int) -> None:
    chance = random.Random(7)
    for _ in range(kills):
        supervisor = start(pair, NEVER)
        time.sleep(chance.uniform(0.0, 2.0))  # any moment will do: that is what is tried
        supervisor.kill()
        supervisor.communicate()
    tasks = await tasks_so_far(pair) + 1
    output, _ = start(pair, tasks).communicate(timeout=500)
    assert output == b"done\n"
    asked = await ids_asked_for(pair, tasks)
    for side in pair.sides:
        taken = [requested_block(text) for text in taken_by(side)]
        counts = Counter(wanted.id if wanted else "" for wanted in taken)
        assert counts == Counter({"": 1, **dict.fromkeys(asked[side.side], 1)}), "primer and legs"
    print(f"{kills} kills, {tasks} tasks, {sum(map(len, asked.values()))} handoffs, each once")


def start(pair: FakePair, tasks: int) -> subprocess.Popen[bytes]:
    """A supervisor that is at work."""
    executer = pair.sides[1]
    words = (str(executer.record.parent), executer.kind, str(tasks))
    command = [sys.executable, "-m", "tests.integration.duet.killed_supervisor", *words]
    supervisor = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == b"works\n"
    return supervisor


def taken_by(side: FakeSide) -> list[str]:
    return [json.loads(line) for line in side.record.read_text().splitlines()]


async def tasks_so_far(pair: FakePair) -> int:
    async with open_runner(pair) as harness:
        return len(await harness.engine.runs(RunQuery(flow=DUET, limit=1000)))


async def ids_asked_for(pair: FakePair, tasks: int) -> dict[str, list[str]]:
    """The id of every leg, by the side that it was put to. All tasks came to a good end."""
    async with open_runner(pair) as harness:
        runs = await harness.engine.runs(RunQuery(flow=DUET, limit=1000))
        query = EventQuery(types=("leg_opened",), limit=100_000)
        events = await harness.store.read(lambda view: view.events(query))
    assert [run.status for run in runs] == [RunStatus.SUCCEEDED] * tasks
    asked: dict[str, list[str]] = {"PLANNER": [], "EXECUTER": []}
    for event in events:
        assert isinstance(event.body, LegOpened)
        leg = event.body.leg
        asked[leg.expected_from].append(f"{leg.task}-{leg.nonce}")
    return asked
