"""`podium habits`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.core.errors import BadInput
from podium.jobs.operator.composition import habits_of
from podium.jobs.operator.models import Habit
from podium.jobs.operator.session import forget_sessions
from podium.render.text import counted, local_time

app = command_app(group=True)


@app.callback()
def habits() -> None:
    """List or erase the messages that the operator remembers to suggest tools. They approve nothing."""


@app.command(name="list")
def list_(context: typer.Context) -> None:
    """List remembered messages, the tools chosen for them, and who approved.

    \b
    Example:
      podium habits list --json
      podium habits list
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> list[Habit]:
        return habits_of(podium).all()

    remembered = cli.run(work) if cli.has_folder else []

    def show() -> None:
        rows = [
            (
                local_time(habit.at),
                habit.said,
                ", ".join(habit.tools),
                habit.status,
                ", ".join(habit.approved_by),
            )
            for habit in remembered
        ]
        cli.screen.table(("WHEN", "ASKED", "TOOLS", "BECAME", "APPROVED BY"), rows)

    cli.screen.answer({"habits": [habit.model_dump(mode="json") for habit in remembered]}, show)


@app.command()
def forget(
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="Only messages that contain this text.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Erase all messages.")] = False,
) -> None:
    """Erase remembered messages, and your sessions that contain them.

    \b
    Example:
      podium habits forget Sarah
      podium habits forget --all
    """
    if bool(text) == everything:
        raise BadInput("pass the text of the messages to forget, or --all")
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> tuple[int, int]:
        sessions = 0
        if podium.has_record:
            person, store = podium.settings.user, await podium.store()
            sessions = await store.write(lambda tx: forget_sessions(tx, person, text))
        return habits_of(podium).forget(text), sessions

    erased, sessions = cli.run(work) if cli.has_folder else (0, 0)

    def show() -> None:
        more = f" and {counted(sessions, 'session')}" if sessions else ""
        cli.screen.line(f"forgot {counted(erased, 'message')}{more}")

    more = {"sessions": sessions} if sessions else {}
    cli.screen.answer({"forgotten": erased, **more}, show)
