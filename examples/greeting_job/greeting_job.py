"""A job in one file: `podium greet NAME…` greets people, one durable step each.

Install it with `pip install examples/greeting_job`. Podium finds it by its entry point, and a run of it is listed, shown, resumed and
cancelled like any other.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer
from pydantic import Field

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.run_host import host
from podium.config.flow_options import flow_options
from podium.core.job import Command, FlowSpec, Job
from podium.core.model import FrozenModel
from podium.core.work import Run
from podium.ports import FlowBody, FlowContext, StepContext

FLOW = "greeting"


class GreetingOptions(FrozenModel):
    """Settings under `flows: greeting:` in podium.yaml."""

    greeting: str = "Hello"


class GreetingInput(FrozenModel):
    greeting: str
    names: tuple[str, ...] = Field(min_length=1)


async def build_greeting(podium: Podium) -> FlowBody:
    file = podium.folders.project / "greetings.txt"

    async def greet(line: str, step: StepContext) -> str:
        # A step runs again if the process dies in it: writing the same line twice is avoided by looking first.
        known = file.read_text().splitlines() if file.exists() else []
        if line not in known:
            file.write_text("".join(f"{item}\n" for item in [*known, line]))
        return line

    async def body(ctx: FlowContext, given: GreetingInput) -> list[Any]:
        lines = [f"{given.greeting}, {name}!" for name in given.names]
        return [
            await ctx.step("greet", partial(greet, line), index=number)
            for number, line in enumerate(lines)
        ]

    return body


app = command_app()


@app.command()
def greet(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Name of a person to greet.")],
) -> None:
    """Greet people, one durable step each.

    \b
    Example:
      podium greet Ann Bob
    """
    cli = CliContext(context.obj)
    options = GreetingOptions.model_validate(flow_options(cli.configuration, FLOW))
    job = GreetingInput(greeting=options.greeting, names=tuple(names))

    async def begin(podium: Podium) -> Run:
        engine = await podium.hosting_engine()
        return await engine.start(FLOW, job.model_dump(mode="json"), task=f"greet {len(names)}")

    host(cli, begin)


JOB = Job(
    name="greeting",
    flows={
        FLOW: FlowSpec(
            build="greeting_job:build_greeting",
            input="greeting_job:GreetingInput",
            code="greeting_job:build_greeting",
        )
    },
    options="greeting_job:GreetingOptions",
    commands={"greet": Command("greeting_job:app", "Greet people, one durable step each.")},
)
