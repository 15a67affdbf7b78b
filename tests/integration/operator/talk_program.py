"""Says one message in a session, and is killed by itself at a point of it: `started` or `remembering`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from podium.app.app import open_podium
from podium.config.configuration import load_configuration
from podium.core.work import Run
from podium.jobs.operator.composition import OperatorSetup, build_conversation
from podium.jobs.operator.session import Session, StoredSession


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody outlives SIGKILL")


class Forgetful(StoredSession):
    """Dies before it stores what came of a message."""

    async def keep(self, before: Session, session: Session) -> None:
        _die()


async def _started(run: Run) -> None:
    _die()


async def _alive(run: Run) -> None:
    return


async def say(project: str, session: str, point: str, message: str) -> None:
    environ = dict(os.environ)
    configuration = load_configuration(environ, project=Path(project))
    async with open_podium(configuration, environ) as podium:
        kind = Forgetful if point == "remembering" else StoredSession
        memory = kind(podium, podium.settings.user, session)
        setup = OperatorSetup("roofing", classifier="embedded")
        talk = await build_conversation(podium, setup, memory)
        started = _started if point == "started" else _alive
        await talk.process(message, "execute", started=started)


if __name__ == "__main__":
    asyncio.run(say(*sys.argv[1:]))
