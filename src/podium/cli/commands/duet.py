"""`podium duet`."""

from __future__ import annotations

from podium.cli.command import command_app
from podium.cli.duet_bringing import attach, down, up
from podium.cli.duet_keyboard import give, take
from podium.cli.duet_queueing import app as queue_app
from podium.cli.duet_remote import keys, screen, serve, watch
from podium.cli.duet_sending import retry, send
from podium.cli.duet_steering import abort, log, nudge, status

app = command_app(group=True)
for command in (
    up,
    send,
    status,
    attach,
    take,
    give,
    abort,
    retry,
    nudge,
    log,
    down,
    serve,
    keys,
    screen,
    watch,
):
    app.command()(command)
app.add_typer(queue_app, name="queue")


@app.callback()
def duet() -> None:
    """Two live terminal AIs, a planner and an executer, hand work to each other.

    \b
    Example:
      podium duet up --grant
      podium duet send "Read README.md, then write and run a matching script"
      podium duet attach -r
      podium duet down
    """
