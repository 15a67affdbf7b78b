"""`podium serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.wiring import Podium

app = command_app()


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    port: Annotated[int, typer.Option("--port", metavar="N", help="Where to listen.")] = 8765,
) -> None:
    """Serve the console of this project until Ctrl-C: every run, every approval, in a browser.

    \b
    Example:
      podium serve
    """
    if context.invoked_subcommand:
        return
    door = Door(context.obj)

    async def work(podium: Podium) -> None:
        # Late: nothing else needs a web server.
        from podium.web.app import build_app
        from podium.web.desk import Desk
        from podium.web.serving import served
        from podium.web.settings import ConsoleSettings

        settings = ConsoleSettings(port=port)
        desk = Desk(podium, settings)
        async with served(build_app(desk), settings) as url:
            door.screen.line(url)
            async for _ in (await podium.store()).changes():
                pass

    door.run(work)
