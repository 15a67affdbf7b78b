"""How long a person waits for a command, against a bare interpreter."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from benchmarks.figures import Figure, median
from podium.domain.gating import Approval, Tier
from podium.domain.work import Run, RunStatus
from podium.ports import Tx
from podium.wiring import load_configuration, open_podium
from podium.wiring.clock import SystemClock, SystemIds

ROUNDS = 15
RUNS = 200

CLOCK, IDS = SystemClock(), SystemIds()


async def measure() -> list[Figure]:
    podium = str(Path(sys.executable).with_name("podium"))
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PODIUM_HOME": str(Path(folder) / "home")}
        project = Path(folder) / "project"
        project.mkdir()
        approvals = await _filled(project, env)
        place = ["--project", str(project)]
        commands = {
            "bare": [[sys.executable, "-c", "pass"]] * ROUNDS,
            "version": [[podium, "--version"]] * ROUNDS,
            "runs": [[podium, "runs", *place]] * ROUNDS,
            "approve": [[podium, "approve", each, *place] for each in approvals],
        }
        took = await asyncio.to_thread(_timed, commands, env)
    return [
        Figure(
            "podium --version",
            took["version"],
            "ms",
            took["bare"],
            "python -c pass",
            most_ratio=3.0,
        ),
        Figure(f"podium runs, of {RUNS}", took["runs"], "ms", most=700.0),
        Figure("podium approve, of an open approval", took["approve"], "ms", most=700.0),
    ]


def _timed(commands: dict[str, list[list[str]]], env: dict[str, str]) -> dict[str, float]:
    """Milliseconds of each kind, taken in turn. A command that fails would only look quick."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name, each in commands.items():
            began = time.perf_counter()
            subprocess.run(each[number], env=env, capture_output=True, check=True)
            seconds[name].append(time.perf_counter() - began)
    return {name: median(each) * 1000 for name, each in seconds.items()}


async def _filled(project: Path, env: dict[str, str]) -> list[str]:
    """A project with runs and, for each round, an approval that waits for a person."""
    runs = [
        Run(id=IDS.new("run"), flow="bench", status=RunStatus.WAITING, created_at=CLOCK.now())
        for _ in range(RUNS)
    ]
    approvals = [_approval(run) for run in runs[:ROUNDS]]

    def fill(tx: Tx) -> None:
        for run in runs:
            tx.add_run(run)
        for approval in approvals:
            tx.save_approval(approval)

    async with open_podium(load_configuration(env, project=project), env) as podium:
        await (await podium.store()).write(fill)
    return [approval.id for approval in approvals]


def _approval(run: Run) -> Approval:
    now = CLOCK.now()
    return Approval(
        id=IDS.new("apr"),
        run_id=run.id,
        call_key=f"{run.id}:step:0",
        digest="sha256:0",
        tool="write_file",
        summary="write a file",
        tier=Tier.T2,
        requested_at=now,
        deadline=now + timedelta(days=1),
    )
