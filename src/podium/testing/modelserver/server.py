"""`ModelServer`: speaks the protocols of the model providers on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from podium.domain.errors import BadInput, TimedOut
from podium.testing.modelserver.http import Request, Response
from podium.testing.modelserver.listening import HOST, Gone, Listener
from podium.testing.modelserver.provider import Provider
from podium.testing.modelserver.requests import RequestLog, SeenRequest
from podium.testing.modelserver.script import Script
from podium.testing.modelserver.scripted import Scripted

if TYPE_CHECKING:
    from podium.testing.modelserver.relay import Relay

Watcher = Callable[[SeenRequest], None]


class Source(Protocol):
    """Where answers come from: a script, a provider, a cassette, a person."""

    async def answer(
        self, request: Request, response: Response, gone: Gone, seen: SeenRequest
    ) -> None:
        """Answer, and write down in `seen` what the request was. `gone` waits for the client to leave."""
        ...


class ModelServer:
    """Answers on a loopback port of its own while its `async with` is open."""

    def __init__(
        self,
        script: Script | Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        port: int = 0,
        models: Sequence[str] = ("scripted-model",),
        watcher: Watcher | None = None,
    ) -> None:
        """Play a script. `key` is the only one accepted; None: any, or none at all.

        `watcher` is told of each request once it is answered, also when the line was cut.
        """
        given = script if isinstance(script, Script) else Script.model_validate(script or {})
        provider = Provider(Scripted(given), key=key, models=models)
        self._open_with(provider, port, watcher)

    @classmethod
    def recording(
        cls,
        upstream: str | Mapping[str, str],
        cassette: Path | str,
        *,
        port: int = 0,
        watcher: Watcher | None = None,
    ) -> Self:
        """Hand requests on to a real provider and add its answers to the cassette, keys left out.

        `upstream` is one URL, or one for each of `gemini`, `openai` and `anthropic`.
        """
        from podium.testing.modelserver.taping import Recorder

        server = cls.__new__(cls)
        server._open_with(Recorder(upstream, Path(cassette)), port, watcher)
        return server

    @classmethod
    def replaying(
        cls,
        cassette: Path | str,
        *,
        paced: bool = False,
        port: int = 0,
        watcher: Watcher | None = None,
    ) -> Self:
        """Answer from a cassette; `paced`: as slowly as it was recorded. Raises `ConfigInvalid`."""
        from podium.testing.modelserver.taping import Player

        server = cls.__new__(cls)
        server._open_with(Player(Path(cassette), paced=paced), port, watcher)
        return server

    @classmethod
    def by_hand(cls, relay: Relay, *, port: int = 0, watcher: Watcher | None = None) -> Self:
        """Let each request wait for the answer of a person or another program."""
        server = cls.__new__(cls)
        server._open_with(relay, port, watcher)
        return server

    def _open_with(self, source: Source, port: int, watcher: Watcher | None) -> None:
        self._source = source
        self._watcher = watcher
        self._log = RequestLog()
        self._arrived = asyncio.Event()
        self._listener = Listener(self._handle)
        self.port = port

    @property
    def url(self) -> str:
        """Without a path: what Gemini and Anthropic clients want. OpenAI's want `/v1` behind it."""
        return f"http://{HOST}:{self.port}"

    @property
    def requests(self) -> list[SeenRequest]:
        """The newest requests, oldest first. A bounded number; keys are never kept."""
        return list(self._log.kept)

    @property
    def request_count(self) -> int:
        """How many requests came since the start."""
        return self._log.count

    def prompts(self) -> list[str]:
        """The newest prompt of each request that asked the model something."""
        return [seen.prompt for seen in self._log.kept if seen.is_ask]

    async def wait_for_requests(self, count: int, seconds: float = 5.0) -> list[SeenRequest]:
        """Wait until so many requests have come since the start. Raises `TimedOut`."""
        try:
            async with asyncio.timeout(seconds):
                while self._log.count < count:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise TimedOut(
                f"{self._log.count} of {count} requests came within {seconds:g} seconds"
            ) from None
        return self.requests

    async def __aenter__(self) -> Self:
        """Raises `BadInput` when the port cannot be had."""
        try:
            self.port = await self._listener.open(self.port)
        except OSError as error:
            raise BadInput(
                f"port {self.port} cannot be had: {error.strerror}; choose another, or none for a "
                "free one"
            ) from None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._listener.close()

    async def _handle(self, request: Request, response: Response, gone: Gone) -> None:
        seen = self._log.add(request, _parsed(request.body))
        self._arrived.set()
        try:
            await self._source.answer(request, response, gone, seen)
        finally:
            seen.status = response.status
            if self._watcher is not None:
                self._watcher(seen)


def _parsed(body: bytes) -> Any:
    """The JSON of the body; the beginning of its text if it is none; None for nothing."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body[:1000].decode(errors="replace")
