"""One request to a real provider, its answer handed on piece by piece as it comes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from podium.domain.errors import BadInput
from podium.testing.modelserver.http import HEADER_LIMIT_BYTES, Request

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
    """Where a provider listens."""

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
            raise BadInput(f"{url!r} is no URL of a provider; write it as https://HOST[/PATH]")
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
            words = str(error) or "no answer in time"
            raise UpstreamBroke(f"{self.host}:{self.port} cannot be reached: {words}") from None
        try:
            writer.write(self._head(request) + request.body)
            await writer.drain()
            yield await _answer(reader)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            raise UpstreamBroke(f"{self.host}:{self.port} broke off its answer") from None
        finally:
            writer.transport.abort()

    def _head(self, request: Request) -> bytes:
        kept = {name: text for name, text in request.headers.items() if name not in _OF_ONE_LINE}
        kept |= {
            "host": self.host if self.port in (80, 443) else f"{self.host}:{self.port}",
            "content-length": str(len(request.body)),
            "accept-encoding": "identity",
            "connection": "close",
        }
        lines = "".join(f"{name}: {text}\r\n" for name, text in kept.items())
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
    kept = {name: text for name, text in headers.items() if name not in _OF_ONE_LINE}
    return UpstreamAnswer(status, kept, _pieces(reader, headers))


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
