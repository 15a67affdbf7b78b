"""Costs that confinement adds to a start, and to each command that a confined tree starts itself.

Everything is timed in turn within one run, so that the differences stand whatever else the machine does.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable

from benchmarks.figures import Figure, median
from podium.core.processes import (
    Confinement,
    ExecRules,
    Mount,
    ProcessSpec,
    ProgramRules,
    SubcommandRules,
)
from podium.sandbox import ProcessLauncher
from podium.sandbox.confining.bubblewrap import options

ROUNDS = 40
EXECS = 300
EXEC_ROUNDS = 7
RULES = ExecRules(
    refused={"sudo": "no", "su": "no", "mount": "no"},
    programs=(ProgramRules(program="git", subcommands={"status": SubcommandRules()}),),
)


async def measure() -> list[Figure]:
    launcher = ProcessLauncher()
    with tempfile.TemporaryDirectory() as folder:
        work = (Mount(source=folder, target=folder, writable=True),)
        plain = Confinement(kind="kernel", network="none", mounts=work)
        guarded = Confinement(kind="kernel", network="none", mounts=work, execs=RULES)
        mounted = _words_of_mounts(plain, folder)
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "bare": lambda: _bare("true"),
            "launcher": lambda: launcher.run(ProcessSpec(argv=("true",), cwd=folder)),
            "mounts": lambda: _bare(*mounted, "true"),
            "confined": lambda: launcher.run(
                ProcessSpec(argv=("true",), cwd=folder, confinement=guarded)
            ),
        }
        taken = await _in_turn(ways)
        inside = await _every_exec(launcher, folder, guarded)
    bare = median(taken["bare"])
    return [
        Figure("bubblewrap's mounts alone", median(taken["mounts"]), "ms", bare, "bare spawn"),
        Figure("what the mounts add", median(taken["mounts"]) - bare, "ms", most=10.0),
        Figure("a tree started unconfined", median(taken["launcher"]), "ms", bare, "bare spawn"),
        Figure("a tree started confined", median(taken["confined"]), "ms", bare, "bare spawn"),
        Figure(
            "what confinement adds to a start", median(taken["confined"]) - bare, "ms", most=80.0
        ),
        *inside,
    ]


def _words_of_mounts(confinement: Confinement, folder: str) -> tuple[str, ...]:
    program = shutil.which("bwrap") or "bwrap"
    env = {"PATH": "/usr/bin:/bin", "HOME": "/home/agent"}
    root = os.geteuid() == 0
    return (program, *options(confinement, folder, env, disable_userns=True, as_root=root), "--")


async def _bare(*argv: str) -> None:
    process = await asyncio.create_subprocess_exec(*argv)
    await process.wait()


async def _in_turn(ways: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, list[float]]:
    """Milliseconds of each, one after the other, again and again. The first round only warms up."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            await way()
            if number:
                taken[name].append((time.perf_counter() - began) * 1000)
    return taken


async def _every_exec(launcher: ProcessLauncher, folder: str, guarded: Confinement) -> list[Figure]:
    script = f"i=0; while [ $i -lt {EXECS} ]; do /bin/true; i=$((i+1)); done"
    plain: list[float] = []
    ours: list[float] = []
    for _ in range(EXEC_ROUNDS):
        for confinement, taken in ((Confinement(), plain), (guarded, ours)):
            spawn = ProcessSpec(argv=("sh", "-c", script), cwd=folder, confinement=confinement)
            ended = await launcher.run(spawn)
            taken.append(ended.seconds * 1000 / EXECS)
    floor = statistics.median(plain)
    whole = statistics.median(ours)
    return [
        Figure("a command inside, judged", whole, "ms", floor, "outside"),
        Figure("what judging adds to a command", whole - floor, "ms", most=0.5),
    ]
