"""Cost of one decision of the gate."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.figures import Figure, median, percentile
from podium.app.policy_trial import policy_cases, shipped_cases
from podium.core.decisions import Access, Call, GateContext, PathUse
from podium.policy import PolicyLayer, RuleGate, compile_policy, default_policy, split_command
from podium.policy.shell import read_line
from podium.tools import Registry, builtin_tools

ROUNDS = 5000
LINE_ROUNDS = 5


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
        *_lines(gate, shell.model_copy(update={"confined": True, "network": "listed"})),
    ]


def _lines(gate: RuleGate, context: GateContext) -> list[Figure]:
    """Every shipped line, ordinary and hostile, read by the grammar anew each time."""
    cases = [case for name, data in shipped_cases() for case in policy_cases(data, name)]
    calls = [_line_call(str(case.command)) for case in cases]
    seconds: list[float] = []
    for _ in range(LINE_ROUNDS):
        for call in calls:
            read_line.cache_clear()
            began = time.process_time()
            gate.decide(call, context)
            seconds.append(time.process_time() - began)
    return [
        Figure("shell line read and judged, p50 of CPU", median(seconds) * 1e6, "us", most=150.0),
        Figure(
            "shell line read and judged, p99 of CPU",
            percentile(seconds, 0.99) * 1e6,
            "us",
            most=1000.0,
        ),
    ]


def _line_call(line: str) -> Call:
    commands, undecidable = split_command(line)
    return Call(
        run_id="run_1",
        step_key="s",
        index=0,
        tool="run_command",
        arguments={"command": line},
        commands=commands,
        undecidable=undecidable,
    )


def _figure(name: str, decide: Callable[[], object]) -> Figure:
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        decide()
        seconds.append(time.perf_counter() - began)
    return Figure(name, median(seconds) * 1e6, "us", most=100.0)
