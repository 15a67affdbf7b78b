"""The command line with one more flow, whose step waits until it is let go."""

from __future__ import annotations

import sys

from podium.app.app import Podium
from podium.app.flow_registry import KERNEL_FLOWS
from podium.cli.error_report import run
from podium.core.events import NoteTaken
from podium.core.job import FlowSpec
from podium.engine import FlowDefinition
from podium.ports import Flow, FlowBody, FlowContext, StepContext
from podium.testing import retry_until

NAME = "held"
BEGUN, LET_GO = "begun", "let-go"
"""Files of the project: the step has begun, and it may end."""


async def build_body(podium: Podium) -> FlowBody:
    folder = podium.folders.project

    async def nothing(step: StepContext) -> None:
        return None

    async def hold(step: StepContext) -> None:
        (folder / BEGUN).touch()
        await retry_until(lambda: (folder / LET_GO).exists(), seconds=120)

    async def body(ctx: FlowContext, _input: object) -> str:
        await ctx.step("first", nothing)
        await ctx.wait("go")
        for number in range(20):
            ctx.note(NoteTaken(text=f"note {number}"))
        await ctx.step("held", hold)
        for number in range(20):
            await ctx.step("many", nothing, index=number)
        return "done"

    return body


async def build(podium: Podium) -> Flow:
    return FlowDefinition(NAME, await build_body(podium))


if __name__ == "__main__":
    build_path = "tests.integration.web.run_program:build_body"
    KERNEL_FLOWS[NAME] = FlowSpec(build=build_path, input="", code=build_path)
    sys.exit(run(sys.argv[1:]))
