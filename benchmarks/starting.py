"""What commands cost in processor time, against a bare interpreter."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from benchmarks.figures import Figure
from podium.domain.gating import Approval, Tier
from podium.domain.work import Run, RunStatus
from podium.ports import Tx
from podium.wiring import load_configuration, open_podium
from podium.wiring.clock import SystemClock, SystemIds

ROUNDS = 9
RUNS = 200
BARE = "python -c pass"

TARGETS = {
    "--version": 1.2,
    "runs": 8.0,
    "show": 8.0,
    "approvals": 8.0,
    "approve": 8.0,
    "policy check": 8.0,
    "duet status": 10.0,
    "sense --once, idle": 10.0,
    "ask": 15.0,
}
"""How many times the processor time of a bare interpreter each command may take."""

CLOCK, IDS = SystemClock(), SystemIds()


async def measure() -> list[Figure]:
    podium = str(Path(sys.executable).with_name("podium"))
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PODIUM_HOME": str(Path(folder) / "home")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # users have compiled modules
        project = Path(folder) / "project"
        project.mkdir()
        runs, approvals = await _filled(project, env)
        arguments = {
            "--version": [["--version"]] * ROUNDS,
            "runs": [["runs"]] * ROUNDS,
            "show": [["show", runs[0]]] * ROUNDS,
            "approvals": [["approvals"]] * ROUNDS,
            "approve": [["approve", approval] for approval in approvals],
            "policy check": [["policy", "check", "--", "ls"]] * ROUNDS,
            "duet status": [["duet", "status"]] * ROUNDS,
            "sense --once, idle": [["sense", "--once", "--if-changed"]] * ROUNDS,
            "ask": [["ask", "system status"]] * ROUNDS,
        }
        commands = {name: [[podium, *each] for each in rows] for name, rows in arguments.items()}
        commands[BARE] = [[sys.executable, "-c", "pass"]] * ROUNDS
        milliseconds = await asyncio.to_thread(_cpu_milliseconds, commands, project, env)
    bare = milliseconds[BARE]
    return [
        Figure(f"podium {name}, CPU", milliseconds[name], "ms", bare, BARE, most_ratio=ratio)
        for name, ratio in TARGETS.items()
    ]


def _cpu_milliseconds(
    commands: dict[str, list[list[str]]], project: Path, env: dict[str, str]
) -> dict[str, float]:
    """User and system time of each command, taken in turn: the least of all rounds, which load disturbs least.

    One round before them is not counted: it compiles modules and makes the first tick, which is not idle.
    """
    for name, rows in commands.items():
        if name != "approve":
            _cpu_seconds(rows[0], project, env)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name, rows in commands.items():
            seconds[name].append(_cpu_seconds(rows[number], project, env))
    return {name: min(each) * 1000 for name, each in seconds.items()}


def _cpu_seconds(command: Sequence[str], project: Path, env: dict[str, str]) -> float:
    """Raises `CalledProcessError` for a command that fails: it would only look quick."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=project, env=env, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def _filled(project: Path, env: dict[str, str]) -> tuple[list[str], list[str]]:
    """A project with runs and, for each round, an approval that waits for a person. Returns their ids."""
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
    return [run.id for run in runs], [approval.id for approval in approvals]


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
