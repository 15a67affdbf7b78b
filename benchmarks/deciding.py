"""What one decision of the gate costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.figures import Figure, median
from podium.domain.gating import Access, Call, GateContext, PathUse
from podium.gate import PolicyLayer, compile_policy, default_policy
from podium.tools import Registry, builtin_tools

ROUNDS = 5000


async def measure() -> list[Figure]:
    gate = compile_policy([PolicyLayer(origin="built-in", policy=default_policy())])
    registry = Registry(builtin_tools())
    root = "/tmp/project"
    use = PathUse(argument="path", given="a.txt", real=f"{root}/a.txt", access=Access.READ)
    call = Call(
        run_id="run_1",
        step_key="s",
        index=0,
        tool="read_file",
        arguments={"path": "a.txt"},
        paths=(use,),
    )
    context = GateContext(tool=registry.spec("read_file"), root=root, now=datetime.now(UTC))
    command = Call(
        run_id="run_1",
        step_key="s",
        index=0,
        tool="run_command",
        arguments={"command": "git status"},
        commands=(("git", "status"),),
    )
    shell = GateContext(tool=registry.spec("run_command"), root=root, now=datetime.now(UTC))
    return [
        _figure("gate decision, plain tool call", lambda: gate.decide(call, context)),
        _figure("gate decision, command", lambda: gate.decide(command, shell)),
    ]


def _figure(name: str, decide: Callable[[], object]) -> Figure:
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        decide()
        seconds.append(time.perf_counter() - began)
    return Figure(name, median(seconds) * 1e6, "us", most=100.0)
