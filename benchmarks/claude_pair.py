"""Two real Claude Code TUIs: from the end of one's answer until the other asks its model with it."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.figures import Figure, percentile
from podium.agents.contract.messages import read_messages
from podium.agents.deps import AgentOptions
from podium.agents.tui import TerminalPair, TerminalSettings, TuiAgent, TuiDeps
from podium.agents.tui.claude import ClaudeTui
from podium.core.turns import (
    AwaitedMessage,
    MessageBlock,
    MessageType,
    Side,
    Turn,
    TurnLimits,
    block_of,
    section_of,
)
from podium.jobs.duet.prompts import plan_prompt, task_prompt
from podium.platform.system_clock import SystemClock
from podium.sandbox import LauncherSettings, ProcessLauncher, end_left_server
from podium.testing import FakeConfinementProvider, FakeHookDoors, MemoryTranscripts
from podium.testing.fake_tuis.answers import CODE, LONG_LINE, MARKDOWN
from podium.testing.modelserver import LoggedRequest, ModelServer
from tests.integration.agents import clis

HANDOFFS = int(os.environ.get("PODIUM_BENCH_CLAUDE_HANDOFFS", "15"))
KEY = "sk-bench-0123456789abcdef"
# No emoji with a skin tone: tmux 3.3a and Claude's painter take them for different widths, and its screen goes wrong.
BODY = f"{CODE}\n\n{MARKDOWN}\n\n{LONG_LINE}"
_ID = r'ID = "(?P<id>[\w-]+)"\s+\[\[POLI:MSG \{"to":"%s"'


@dataclass
class AnswerTimes:
    """When each question to the model was answered."""

    at: list[tuple[float, str]] = field(default_factory=list)

    def __call__(self, seen: LoggedRequest) -> None:
        if seen.is_ask:
            self.at.append((time.monotonic(), seen.prompt))

    def last(self, words: str) -> tuple[float, str]:
        return next(item for item in reversed(self.at) if words in item[1])


async def measure() -> list[Figure]:
    try:
        program = clis.claude()
    except pytest.skip.Exception as missing:
        print(f"skipping claude_pair: {missing}")
        return []
    return await _measure(program)


async def _measure(program: str) -> list[Figure]:
    answer_times = AnswerTimes()
    with tempfile.TemporaryDirectory(prefix="pc-") as folder:
        async with ModelServer(_script(), key=KEY, watcher=answer_times) as server:
            place = Path(folder)
            deps = _deps(place)
            pair = TerminalPair(deps, TerminalSettings(socket=place / "s", folder=place / "own"))
            try:
                planner, executer = (
                    _seated(pair, name, program, server.url, place) for name in _SIDES
                )
                took = [
                    await _handoff(planner, executer, number, answer_times, place)
                    for number in range(HANDOFFS + 1)
                ][1:]
            finally:
                await pair.depart()
    exact = sum(item[1] for item in took)
    times = [item[0] * 1000 for item in took]
    return [
        Figure("two real Claude TUIs, handoff, p50", percentile(times, 0.5), "ms", most=300.0),
        Figure("two real Claude TUIs, handoff, p99", percentile(times, 0.99), "ms"),
        Figure(f"bodies not exact, of {len(took)}", float(len(took) - exact), "", most=0.0),
    ]


_SIDES = ("planner", "executer")


async def _handoff(
    planner: TuiAgent, executer: TuiAgent, number: int, answer_times: AnswerTimes, place: Path
) -> tuple[float, bool]:
    """Seconds, and whether the other's model got it to the byte."""
    first = _awaited("PLANNER", number)
    words = task_prompt(f"do {number}", first, on_screen=False)
    reply = await planner.ask(_turn(first, words, place))
    plan = first.find_in(read_messages(reply.text))
    if plan is None:
        raise RuntimeError(f"no plan in {reply.text!r}")
    second = _awaited("EXECUTER", number)
    await executer.ask(_turn(second, plan_prompt(plan, second, on_screen=False), place))
    ended, _ = answer_times.last(f"do {number}")
    asked, prompt = answer_times.last(plan.id)
    meant = MessageBlock(to="EXECUTER", type="plan", id=plan.id, body=BODY)
    return asked - ended, section_of(meant) in prompt


def _awaited(side: Side, number: int) -> AwaitedMessage:
    types: tuple[MessageType, ...] = ("plan",) if side == "PLANNER" else ("result",)
    return AwaitedMessage(sender=side, types=types, task=f"T{number}", nonce=f"{number:04}beef")


def _turn(awaited: AwaitedMessage, prompt: str, place: Path) -> Turn:
    return Turn(
        run_id="run_bench",
        step_key=f"{awaited.sender}-{awaited.id}",
        role=awaited.sender.lower(),
        prompt=prompt,
        workspace=str(place),
        limits=TurnLimits(seconds=120.0),
        awaits=awaited,
    )


def _seated(pair: TerminalPair, name: str, program: str, url: str, place: Path) -> TuiAgent:
    options = AgentOptions(
        name=name,
        model="claude-sonnet-4-5",
        base_url=url,
        command=(program,),
        env={"ANTHROPIC_API_KEY": "secret://KEY"},
    )
    return pair.side(name, ClaudeTui(), options, place)


def _script() -> dict[str, object]:
    """Answers each question with the block that it asks for."""
    rules = [
        {"when": _ID % to, "each_time": False, "steps": [_answer(to, kind)]}
        for to, kind in (("EXECUTER", "plan"), ("PLANNER", "result"))
    ]
    return {"rules": rules, "default": {"steps": ["Ready."]}}


def _answer(to: str, kind: str) -> str:
    return block_of(MessageBlock(to=to, type=kind, id="{{id}}", body=BODY))


def _deps(place: Path) -> TuiDeps:
    return TuiDeps(
        launcher=ProcessLauncher(
            LauncherSettings(grace_seconds=1.0), resolve_secret={"KEY": KEY}.__getitem__
        ),
        confinement_provider=FakeConfinementProvider(),
        doors=FakeHookDoors(),
        transcripts=MemoryTranscripts(),
        clock=SystemClock(),
        hook_command=("true",),
        user_home=place,
        environ={},
        end_left=end_left_server,
    )


if __name__ == "__main__":
    for figure in asyncio.run(measure()):
        print(figure.line())
