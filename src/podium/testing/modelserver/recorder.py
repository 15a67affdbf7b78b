"""Recorder of a real provider's answers, handed on piece by piece, and their replay."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from podium.core.errors import BadInput
from podium.testing.modelserver.cassette import (
    CassetteReader,
    CassetteWriter,
    Recorded,
    digest_of,
    without_secrets,
)
from podium.testing.modelserver.http_server import HEADER_LIMIT_BYTES, Gone, Request, Response
from podium.testing.modelserver.messages import as_text, json_bytes, table
from podium.testing.modelserver.playback import JSON, send_failure
from podium.testing.modelserver.provider import route
from podium.testing.modelserver.request_log import LoggedRequest, public_target, secrets_of

CONNECT_SECONDS = 30.0
PIECE_BYTES = 64 * 1024

_OF_ONE_LINE = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
        "content-encoding",
        "accept-encoding",
        "expect",
    }
)
"""Headers that are about one connection or one way to write a body, not about the request."""


class UpstreamBroke(Exception):
    """The provider could not be reached, or its answer ended early. The message says which."""


@dataclass(frozen=True)
class UpstreamAnswer:
    """Status, headers in lower case, and the pieces of the body as they come."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


@dataclass(frozen=True)
class Upstream:
    """Address of a provider."""

    secure: bool
    host: str
    port: int
    prefix: str

    @classmethod
    def at(cls, url: str) -> Upstream:
        """Raises `BadInput` for what is no http or https URL."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"{url!r} is not the URL of a provider; write it as https://HOST[/PATH]")
        secure = parts.scheme == "https"
        return cls(secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/"))

    def target(self, target: str) -> str:
        """A base URL with `/v1` is meant for paths that have one already, too."""
        return target if target.startswith(f"{self.prefix}/") else self.prefix + target

    @asynccontextmanager
    async def asked(self, request: Request) -> AsyncIterator[UpstreamAnswer]:
        """Send the request on. Raises `UpstreamBroke`, also while pieces are read."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    self.host,
                    self.port,
                    ssl=ssl.create_default_context() if self.secure else None,
                    limit=HEADER_LIMIT_BYTES,
                )
        except (OSError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            raise UpstreamBroke(f"{self.host}:{self.port} cannot be reached: {reason}") from None
        try:
            writer.write(self._head(request) + request.body)
            await writer.drain()
            yield await _answer(reader)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            raise UpstreamBroke(
                f"{self.host}:{self.port} closed the connection before the end of its answer"
            ) from None
        finally:
            writer.transport.abort()

    def _head(self, request: Request) -> bytes:
        forwarded = {
            name: text for name, text in request.headers.items() if name not in _OF_ONE_LINE
        }
        forwarded |= {
            "host": self.host if self.port in (80, 443) else f"{self.host}:{self.port}",
            "content-length": str(len(request.body)),
            "accept-encoding": "identity",
            "connection": "close",
        }
        lines = "".join(f"{name}: {text}\r\n" for name, text in forwarded.items())
        first = f"{request.method} {self.target(request.target)} HTTP/1.1\r\n"
        return f"{first}{lines}\r\n".encode("latin-1")


async def _answer(reader: asyncio.StreamReader) -> UpstreamAnswer:
    status = 100
    while status < 200:  # a provider may first say that it goes on
        head = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1")
        first, *lines = head.split("\r\n")
        status = int(first.split(" ")[1])
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): text.strip() for name, _, text in pairs}
    forwarded = {name: text for name, text in headers.items() if name not in _OF_ONE_LINE}
    return UpstreamAnswer(status, forwarded, _pieces(reader, headers))


async def _pieces(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            async for piece in _exactly(reader, size):
                yield piece
            await reader.readexactly(2)
    elif "content-length" in headers:
        async for piece in _exactly(reader, int(headers["content-length"])):
            yield piece
    else:
        while piece := await reader.read(PIECE_BYTES):
            yield piece


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size > 0:
        piece = await reader.read(min(size, PIECE_BYTES))
        if not piece:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(piece)
        yield piece


ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
UPSTREAM_NAMES = ("gemini", "openai", "anthropic")

Chunks = list[tuple[float, bytes]]

_RECORDED_HEADER = re.compile(r"content-type|retry-after|retry-after-ms|(x|anthropic)-ratelimit-.*")
_FAMILY = {
    "gemini": "gemini",
    "responses": "openai",
    "chat": "openai",
    "anthropic": "anthropic",
    "": "",
}


class Recorder:
    """Hands each request to the provider and the answer back, and keeps whole answers on a cassette."""

    def __init__(self, upstream: str | Mapping[str, str], cassette: Path) -> None:
        """`upstream` is one URL for all, or a URL for each of gemini, openai, anthropic."""
        upstreams = {"": upstream} if isinstance(upstream, str) else upstream
        unknown = sorted(set(upstreams) - {"", *UPSTREAM_NAMES})
        if unknown or not upstreams:
            named = f"unknown provider {unknown[0]!r}" if unknown else "no provider given"
            raise BadInput(f"{named}; providers: {', '.join(UPSTREAM_NAMES)}")
        self._upstreams = {name: Upstream.at(url) for name, url in upstreams.items()}
        self._writer = CassetteWriter(cassette)

    async def answer(
        self, request: Request, response: Response, gone: Gone, logged: LoggedRequest
    ) -> None:
        _describe(request, logged)
        family = _FAMILY[logged.protocol]
        upstream = self._upstreams.get(family) or self._upstreams.get("")
        if upstream is None:
            await _send_error(response, 502, f"no upstream is configured for {request.path}")
            return
        try:
            async with upstream.asked(request) as answer:
                chunks = await _hand_on(response, answer)
        except UpstreamBroke as broke:
            if response.status:
                response.drop()
            else:
                await _send_error(response, 502, str(broke))
            return
        logged.rule = self._keep(request, logged, answer, chunks)
        await response.finish()

    def _keep(
        self,
        request: Request,
        logged: LoggedRequest,
        answer: UpstreamAnswer,
        chunks: Chunks | None,
    ) -> str:
        """Put the answer on the cassette, and say how that went: the client has it in any case."""
        if chunks is None:
            return f"not recorded: longer than {ANSWER_LIMIT_BYTES} bytes"
        headers = {
            name: text for name, text in answer.headers.items() if _RECORDED_HEADER.fullmatch(name)
        }
        recorded = Recorded(
            digest=digest_of(request),
            method=request.method,
            path=public_target(request.target),
            model=logged.model,
            status=answer.status,
            headers=headers,
            chunks=without_secrets(chunks, secrets_of(request)),
        )
        try:
            self._writer.add(recorded)
        except OSError as error:
            return f"not recorded: {error.strerror}"
        return "recorded"


async def _hand_on(response: Response, answer: UpstreamAnswer) -> Chunks | None:
    """Give the answer to the client as it comes. None: it is too long to be kept."""
    loop = asyncio.get_running_loop()
    began, size = loop.time(), 0
    chunks: Chunks = []
    handed = {name: text for name, text in answer.headers.items() if name != "set-cookie"}
    await response.start(answer.status, handed)
    async for piece in answer.pieces:
        await response.send(piece)
        size += len(piece)
        if size <= ANSWER_LIMIT_BYTES:
            chunks.append((loop.time() - began, piece))
        else:
            chunks.clear()
    return chunks if size <= ANSWER_LIMIT_BYTES else None


class RecordedRole:
    """Answers from a cassette."""

    def __init__(self, cassette: Path, *, paced: bool = False) -> None:
        """`paced`: every piece comes as late as it did when it was recorded."""
        self._cassette = cassette
        self._reader = CassetteReader(cassette)
        self._paced = paced

    async def answer(
        self, request: Request, response: Response, gone: Gone, logged: LoggedRequest
    ) -> None:
        _describe(request, logged)
        digest = digest_of(request)
        recorded = self._reader.next(digest)
        if recorded is None:
            await self._send_missing(request, response, logged, digest)
            return
        logged.rule = "replayed"
        await response.start(recorded.status, recorded.headers)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for at, piece in recorded.chunks:
            if self._paced:
                await asyncio.sleep(began + at - loop.time())
            await response.send(piece)
        await response.finish()

    async def _send_missing(
        self, request: Request, response: Response, logged: LoggedRequest, digest: str
    ) -> None:
        message = (
            f"the cassette {str(self._cassette)!r} has no answer for {request.method} {logged.path} "
            f"(model {logged.model!r}, {digest[:19]}…, prompt {logged.prompt[:80]!r}); record it with "
            f"`podium modelserver --record {self._cassette} --upstream URL`"
        )
        target = route(request)
        if target is not None:
            await send_failure(response, target.dialect.failure(404, message))
        else:
            await _send_error(response, 404, message)


def _describe(request: Request, logged: LoggedRequest) -> None:
    """Say of the request what its protocol tells."""
    target = route(request)
    if target is None:
        return
    body = table(logged.body)
    ask = target.dialect.ask(body, size=logged.size)
    logged.protocol, logged.model = target.dialect.name, ask.model or as_text(body.get("model"))
    if target.purpose == "answer":
        logged.describe(ask)


async def _send_error(response: Response, status: int, message: str) -> None:
    error = {"code": status, "type": "model_server", "message": message}
    await response.whole(status, json_bytes({"type": "error", "error": error}), JSON)
