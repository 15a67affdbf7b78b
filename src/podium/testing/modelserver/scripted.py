"""Answers as a script says."""

from __future__ import annotations

from podium.testing.modelserver.dialects import Dialect
from podium.testing.modelserver.http import Request, Response
from podium.testing.modelserver.listening import Gone
from podium.testing.modelserver.matching import Matcher
from podium.testing.modelserver.playing import Performance
from podium.testing.modelserver.requests import SeenRequest
from podium.testing.modelserver.script import Script


class Scripted:
    """Plays the step of the script that a request is for."""

    def __init__(self, script: Script) -> None:
        self._matcher = Matcher(script)

    async def play(
        self, dialect: Dialect, request: Request, response: Response, gone: Gone, seen: SeenRequest
    ) -> None:
        ask = dialect.ask(seen.body, size=seen.size)
        match = self._matcher.match(ask)
        seen.describe(ask)
        seen.rule, seen.step = match.rule, match.number
        await Performance(match.step, ask, dialect, response, gone).play()
