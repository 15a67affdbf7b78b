"""The command line with one more flow: two steps around a wait, each of which leaves a mark."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from podium.app.app import Podium
from podium.app.flow_registry import KERNEL_FLOWS
from podium.cli.error_report import run
from podium.core.errors import AgentLost, TimedOut
from podium.core.job import FlowSpec
from podium.ports import FlowBody, FlowContext, StepContext

NAME = "marks"


async def build(podium: Podium) -> FlowBody:
    folder = podium.folders.project

    async def body(ctx: FlowContext, _input: object) -> str:
        await ctx.step("first", lambda step: mark(folder, step))
        await ctx.wait("go")
        await ctx.step("slow", lambda step: slow(folder, step))
        await ctx.step("last", lambda step: mark(folder, step))
        return "done"

    return body


async def mark(folder: Path, step: StepContext) -> None:
    with (folder / "marks").open("a") as file:
        file.write(step.key + "\n")


async def hang(folder: Path) -> None:
    """Until it is cancelled, and when it is stubborn also then."""
    try:
        await asyncio.Event().wait()
    finally:
        if (folder / "stubborn").exists():
            await asyncio.Event().wait()


async def slow(folder: Path, step: StepContext) -> None:
    """Hangs, breaks or goes on, as the files say."""
    (folder / "in-slow").touch()
    if (folder / "lost").exists():
        raise AgentLost("the agent went away")
    if (folder / "broke").exists():
        raise TimedOut("no time left")
    if (folder / "hang").exists():
        await hang(folder)


_BUILD = "tests.integration.cli.hosting_program:build"
SPEC = FlowSpec(build=_BUILD, input="", code=_BUILD)

if __name__ == "__main__":
    KERNEL_FLOWS[NAME] = SPEC
    sys.exit(run(sys.argv[1:]))
