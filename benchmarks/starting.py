"""Costs of commands in processor time, against a bare interpreter."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from benchmarks.figures import Figure
from podium.app.app import open_podium
from podium.config.configuration import load_configuration
from podium.core.decisions import Approval, Tier
from podium.core.work import Run, RunStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Transaction

ROUNDS = 9
RUNS = 200
BARE = "python -c pass"
FIRST_AGENT = "run, until its first agent starts"
AGENT_PROGRAM = "agents/script_player.py"
"""What the command line of a scripted agent's process holds."""
POLL_SECONDS = 0.002
MAX_SECONDS = 120.0

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
    FIRST_AGENT: 25.0,
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
            "ask": [["ask", "run the tests"]] * ROUNDS,
        }
        commands = {name: [[podium, *row] for row in rows] for name, rows in arguments.items()}
        commands[BARE] = [[sys.executable, "-c", "pass"]] * ROUNDS
        milliseconds = await asyncio.to_thread(_cpu_milliseconds, commands, project, env)
        repository = Path(folder) / "repository"
        _make_repository(repository)
        milliseconds[FIRST_AGENT] = await asyncio.to_thread(
            _first_agent_milliseconds, [podium, "run", "Add a farewell"], repository, env
        )
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
    return {name: min(item) * 1000 for name, item in seconds.items()}


def _cpu_seconds(command: Sequence[str], project: Path, env: dict[str, str]) -> float:
    """Raises `CalledProcessError` for a command that fails: it would only look quick."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=project, env=env, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _make_repository(repository: Path) -> None:
    """A repository with one commit, whose only agent is scripted."""
    repository.mkdir()
    settings = {"agents": {"player": {"kind": "scripted", "script": "script.yaml"}}}
    turns = [{"role": "architect", "when": "", "acts": [{"sleep_seconds": 60}]}]
    (repository / "podium.yaml").write_text(json.dumps(settings))
    (repository / "script.yaml").write_text(json.dumps({"turns": turns}))
    git = ("git", "-c", "user.name=Bench", "-c", "user.email=bench@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], cwd=repository, check=True, capture_output=True)


def _first_agent_milliseconds(
    command: Sequence[str], repository: Path, env: dict[str, str]
) -> float:
    """Processor time until the first agent's program runs, of the command and all processes it started: the least."""
    seconds = [_seconds_until_agent(command, repository, env) for _ in range(ROUNDS)]
    return min(seconds) * 1000


def _seconds_until_agent(command: Sequence[str], repository: Path, env: dict[str, str]) -> float:
    """Read from /proc in clock ticks, so 10 ms is its resolution. Raises `RuntimeError` where no agent starts."""
    process = subprocess.Popen(
        command, cwd=repository, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    give_up_at = time.monotonic() + MAX_SECONDS
    try:
        while process.poll() is None and time.monotonic() < give_up_at:
            tree = list(_tree(process.pid))
            agents = [pid for pid in tree if AGENT_PROGRAM in _command_line(pid)]
            if agents:
                return sum(_used_seconds(pid) for pid in tree if pid not in agents)
            time.sleep(POLL_SECONDS)
    finally:
        process.terminate()
        _, errors = process.communicate()
    raise RuntimeError(f"no agent was started: {errors.decode()}")


def _tree(pid: int) -> Iterator[int]:
    """A process and all beneath it."""
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


def _command_line(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return ""


def _used_seconds(pid: int) -> float:
    """User and system time of a process, with those of its children that have ended and been waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def _filled(project: Path, env: dict[str, str]) -> tuple[list[str], list[str]]:
    """A project with runs and, for each round, an approval that waits for a person. Returns their ids."""
    runs = [
        Run(id=IDS.new("run"), flow="bench", status=RunStatus.WAITING, created_at=CLOCK.now())
        for _ in range(RUNS)
    ]
    approvals = [_approval(run) for run in runs[:ROUNDS]]

    def fill(tx: Transaction) -> None:
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
