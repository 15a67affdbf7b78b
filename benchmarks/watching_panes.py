"""Cost of waiting for fifty programs at once that redraw their screens ten times a second."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure
from podium.agents.deps import AgentOptions
from podium.agents.tui import (
    GenericTui,
    TerminalPair,
    TerminalSettings,
    TuiAgent,
    TuiDeps,
)
from podium.core.turns import AwaitedMessage, Turn, TurnLimits
from podium.jobs.duet.prompts import task_prompt
from podium.platform.system_clock import SystemClock
from podium.sandbox import ProcessLauncher, end_left_server
from podium.testing import FakeConfinementProvider, FakeHookDoors, MemoryTranscripts, retry_until
from podium.testing.fake_tuis import ScriptedAnswers, happened, tui_command

PANES = int(os.environ.get("PODIUM_BENCH_PANES", "50"))
SECONDS = 20.0
SETTLED_SECONDS = 3.0
_PIPES = ("dd", "sh")
"""What tmux hands a pane's output to."""


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="pw-") as folder:
        (server, supervisor), alone = await _waited_for(Path(folder) / "waited")
    beyond = server + supervisor - alone
    return [
        Figure(f"tmux alone, {PANES} panes that move", alone * 100, "%"),
        Figure("its supervisor, waiting for all of them", supervisor * 100, "%"),
        Figure("supervisor and pipes beyond tmux alone", beyond * 100, "%", most=5.0),
    ]


async def _waited_for(folder: Path) -> tuple[tuple[float, float], float]:
    """The shares of the server with its pipes, and of this process with its own, while each pane owes an answer;
    and that of the server when the same panes go on and nobody looks: another screen costs tmux something else."""
    settings = _settings(folder)
    terminals = TerminalPair(_deps(folder), settings)
    agents = [_agent(terminals, folder, number) for number in range(PANES)]
    waiting: list[asyncio.Task[object]] = []
    try:
        await terminals.come_up()
        waiting = [
            asyncio.get_running_loop().create_task(agent.ask(_turn(number, folder)))
            for number, agent in enumerate(agents)
        ]
        await retry_until(lambda: _all_are(folder, "busy"))
        program = (await terminals.states())[0].pid
        server = _parent(program)
        watched = await _shares(server)
        _close_pipes(settings)
        return watched, _share_alone(server)
    finally:
        for item in waiting:
            item.cancel()
        if waiting:
            await asyncio.wait(waiting)
        await terminals.depart()


def _close_pipes(settings: TerminalSettings) -> None:
    """The supervisor then hears of nothing, and the server works for its panes alone."""
    tmux = ("tmux", "-S", str(settings.socket))
    asked = (*tmux, "list-panes", "-a", "-F", "#{pane_id}")
    panes = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    for pane in panes:
        subprocess.run((*tmux, "pipe-pane", "-t", pane), check=True)


def _settings(folder: Path) -> TerminalSettings:
    folder.mkdir(mode=0o700)
    ScriptedAnswers(ways=("stuck",)).write_to(folder / "answers.json")
    return TerminalSettings(socket=folder / "s", folder=folder / "own", columns=100, rows=30)


def _command(folder: Path, number: int) -> tuple[str, ...]:
    return tui_command("spinning", folder / f"{number}.jsonl", folder / "answers.json")


def _deps(folder: Path) -> TuiDeps:
    return TuiDeps(
        launcher=ProcessLauncher(),
        confinement_provider=FakeConfinementProvider(),
        doors=FakeHookDoors(),
        transcripts=MemoryTranscripts(),
        clock=SystemClock(),
        hook_command=("true",),
        user_home=folder,
        environ={},
        end_left=end_left_server,
    )


def _agent(terminals: TerminalPair, folder: Path, number: int) -> TuiAgent:
    options = AgentOptions(
        name=f"p{number}",
        command=_command(folder, number),
        options={"manner": "paste"},
    )
    return terminals.side(options.name, GenericTui(options), options, folder)


def _turn(number: int, folder: Path) -> Turn:
    awaited = AwaitedMessage(sender="PLANNER", types=("plan",), task=f"T{number}", nonce="0123beef")
    return Turn(
        run_id="run_bench",
        step_key=f"turn-{number}",
        role="planner",
        prompt=task_prompt("wait", awaited, on_screen=True),
        workspace=str(folder),
        limits=TurnLimits(seconds=None),
        awaits=awaited,
    )


def _all_are(folder: Path, state: str) -> bool:
    return all(
        any(event.text == state for event in happened(folder / f"{number}.jsonl"))
        for number in range(PANES)
    )


async def _shares(server: int) -> tuple[float, float]:
    """Of one core: the server with its pipes, and this process with its clients."""
    await asyncio.sleep(SETTLED_SECONDS)
    before = _server_seconds(server), _own_seconds(server)
    await asyncio.sleep(SECONDS)
    after = _server_seconds(server), _own_seconds(server)
    return (after[0] - before[0]) / SECONDS, (after[1] - before[1]) / SECONDS


def _share_alone(server: int) -> float:
    """Of one core: the server while this process does nothing at all."""
    time.sleep(SETTLED_SECONDS)
    before = _server_seconds(server)
    time.sleep(SECONDS)
    return (_server_seconds(server) - before) / SECONDS


def _server_seconds(server: int) -> float:
    pipes = sum(_spent(pid) for pid in _below(server) if _name(pid) in _PIPES)
    return _spent(server) + pipes


def _own_seconds(server: int) -> float:
    own = os.getpid()
    return _spent(own) + sum(_spent(pid) for pid in _below(own) if pid != server)


def _below(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _below(child)


def _spent(pid: int) -> float:
    """Processor seconds. None left of a process that has just ended.

    As the scheduler counts them: ticks of 10 ms say little of what works for some microseconds at a time.
    """
    return sum(_ran(path) for path in Path("/proc").glob(f"{pid}/task/*/schedstat")) / 1e9


def _ran(schedstat: Path) -> int:
    try:
        return int(schedstat.read_text().split()[0])
    except OSError:
        return 0


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


if __name__ == "__main__":
    for figure in asyncio.run(measure()):
        print(figure.line())
