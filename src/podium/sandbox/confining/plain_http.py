"""Requests as a proxy hears them: the head, read strictly, and exactly the body that it declares.

What two programs read differently is how one request hides inside another: a line that ends in a
bare line feed, a folded header, two lengths. Such a request is refused and never repaired.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from podium.sandbox.confining.hosts import Destination

_CHUNK_BYTES = 65_536
_FIRST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) (HTTP/1\.[01])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;[\t -~]*)?\r\n")
_LENGTH = re.compile(r"[0-9]{1,15}")


class MalformedRequest(Exception):
    """This is no request that may be passed on."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """The head of what a program asked its proxy."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    length: int | None
    """The bytes of its body; None when it comes in chunks."""


async def read_request(reader: asyncio.StreamReader) -> ProxyRequest:
    """Raises `MalformedRequest`."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        asked = _FIRST_LINE.fullmatch(first)
        urlsplit(asked[2] if asked else "")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise MalformedRequest from None
    matches = [_HEADER.fullmatch(line) for line in lines]
    headers = tuple((header[1], header[2]) for header in matches if header)
    if asked is None or len(headers) != len(matches):
        raise MalformedRequest
    return ProxyRequest(asked[1], asked[2], asked[3], headers, _length(headers))


def _length(headers: tuple[tuple[str, str], ...]) -> int | None:
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    codings = [value for name, value in headers if name.lower() == "transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise MalformedRequest
    if codings:
        if codings[0].lower() != "chunked":
            raise MalformedRequest
        return None
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise MalformedRequest
    return int(lengths[0]) if lengths else 0


def as_origin_form(request: ProxyRequest, destination: Destination) -> bytes:
    """The head as the host itself expects it, for this host and for once only.

    Headers that speak of another host or to the proxy stay behind; the connection ends with the
    answer.
    """
    parts = urlsplit(request.target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = [f"{name}: {value}" for name, value in request.headers if not _is_ours(name.lower())]
    host = destination.host if destination.port == 80 else str(destination)
    lines = [f"{request.method} {path} {request.version}", f"Host: {host}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def _is_ours(name: str) -> bool:
    return name in ("host", "connection", "keep-alive", "upgrade") or name.startswith("proxy-")


async def carry_body(
    request: ProxyRequest, source: asyncio.StreamReader, target: asyncio.StreamWriter
) -> None:
    """Pass on the declared body and nothing behind it: what follows may be for another host.

    Returns when the program has closed its side; then the target's is closed too.
    """
    try:
        if request.length is None:
            await _carry_chunks(source, target)
        else:
            await _carry(request.length, source, target)
        while await source.read(_CHUNK_BYTES):
            pass
        if target.can_write_eof():
            target.write_eof()
    except (OSError, MalformedRequest, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        target.transport.abort()


async def _carry_chunks(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while True:
        size = _CHUNK_SIZE.fullmatch(await source.readuntil(b"\r\n"))
        if size is None:
            raise MalformedRequest
        length = int(size[1], 16)
        target.write(b"%x\r\n" % length)
        if length == 0:
            # What trails behind the last chunk are headers again, and nobody needs them.
            target.write(b"\r\n")
            return
        await _carry(length, source, target)
        if await source.readexactly(2) != b"\r\n":
            raise MalformedRequest
        target.write(b"\r\n")


async def _carry(length: int, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while length:
        piece = await source.read(min(length, _CHUNK_BYTES))
        if not piece:
            raise MalformedRequest
        length -= len(piece)
        target.write(piece)
        await target.drain()
