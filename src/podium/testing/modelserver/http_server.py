"""HTTP/1.1 as far as a loopback server needs it: bounded requests, answers, and a listener that closes at once."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from podium.testing.modelserver.messages import json_bytes

HEADER_LIMIT_BYTES = 64 * 1024
BODY_LIMIT_BYTES = 64 * 1024 * 1024


class BadRequest(Exception):
    """The request cannot be answered. `status` and the message are what the client is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """A request with its body, decoded if it came compressed. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    keeps_alive: bool
    takes_chunks: bool

    @property
    def path(self) -> str:
        return urlsplit(self.target).path or "/"

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | None:
    """The next request, or None when the client has gone. Raises `BadRequest`."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadRequest(400, "the request ends within its headers") from None
        return None
    except asyncio.LimitOverrunError:
        raise BadRequest(431, f"the headers are longer than {HEADER_LIMIT_BYTES} bytes") from None
    first, *lines = head[:-4].decode("latin-1").lstrip("\r\n").split("\r\n")
    fields = first.split(" ")
    if len(fields) != 3 or not fields[0].isalpha() or not fields[2].startswith("HTTP/1."):
        raise BadRequest(400, "the first line is not METHOD TARGET HTTP/1.1")
    headers = dict(_header_fields(lines))
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = decoded(await _read_body(reader, headers), headers.get("content-encoding", ""))
    modern = fields[2] != "HTTP/1.0"
    connection = headers.get("connection", "").lower()
    return Request(
        method=fields[0].upper(),
        target=fields[1],
        headers=headers,
        body=body,
        keeps_alive=modern and "close" not in connection,
        takes_chunks=modern,
    )


def _header_fields(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(400, "a header is not NAME: VALUE")
        yield name.lower(), value.strip()


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    encoding = headers.get("transfer-encoding", "").lower()
    length = headers.get("content-length")
    if encoding and length is not None:
        raise BadRequest(400, "Content-Length and Transfer-Encoding cannot be used together")
    if encoding not in ("", "chunked"):
        raise BadRequest(501, f"Transfer-Encoding {encoding!r} is not supported; use chunked")
    try:
        if encoding:
            return await _read_chunks(reader)
        return await reader.readexactly(_length(length)) if length else b""
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise BadRequest(400, "the request ends within its body") from None


def _length(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadRequest(400, "Content-Length is not a number")
    if int(text) > BODY_LIMIT_BYTES:
        raise BadRequest(413, f"the body is longer than {BODY_LIMIT_BYTES} bytes")
    return int(text)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = (await reader.readuntil(b"\r\n")).split(b";")[0].strip()
        try:
            size = int(line, 16)
        except ValueError:
            raise BadRequest(400, "the size of a chunk is not a hexadecimal number") from None
        if size < 0 or len(body) + size > BODY_LIMIT_BYTES:
            raise BadRequest(413, f"the body is longer than {BODY_LIMIT_BYTES} bytes")
        if size == 0:
            break
        body += await reader.readexactly(size)
        if await reader.readexactly(2) != b"\r\n":
            raise BadRequest(400, "a chunk does not end where its size says")
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers say nothing that matters here
    return bytes(body)


def decoded(body: bytes, encoding: str) -> bytes:
    """The body as it was before it was compressed. Raises `BadRequest`."""
    match encoding.lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip" | "deflate":
            return _inflated(body)
        case "zstd":
            return _unpacked_zstd(body)
    raise BadRequest(415, f"Content-Encoding {encoding!r} is not supported; use gzip or none")


def _inflated(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=47)  # gzip or zlib, whichever it says it is
    try:
        plain = unpacker.decompress(body, BODY_LIMIT_BYTES + 1)
    except zlib.error:
        raise BadRequest(400, "the body does not match its Content-Encoding") from None
    return _whole(plain, complete=unpacker.eof)


def _unpacked_zstd(body: bytes) -> bytes:
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore] # optional
    except ImportError:
        raise BadRequest(
            415, "zstd needs a package that is not installed; `pip install zstandard`, or send gzip"
        ) from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(body) as unpacker:
            return _whole(unpacker.read(BODY_LIMIT_BYTES + 1), complete=True)
    except zstandard.ZstdError:
        raise BadRequest(400, "the body does not match its Content-Encoding") from None


def _whole(plain: bytes, *, complete: bool) -> bytes:
    if len(plain) > BODY_LIMIT_BYTES:
        raise BadRequest(413, f"the body unpacks to more than {BODY_LIMIT_BYTES} bytes")
    if not complete:
        raise BadRequest(400, "the compressed body is cut off")
    return plain


class Response:
    """One answer being written. Every write waits while the client does not read."""

    def __init__(self, writer: asyncio.StreamWriter, request: Request | None) -> None:
        self._writer = writer
        self._bare = request is not None and request.method == "HEAD"
        self._chunked = request is not None and request.takes_chunks
        self.keeps_alive = request is not None and request.keeps_alive
        self.status = 0
        """Status of the answer; 0 before it."""

    async def whole(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer at once."""
        sized = {"Content-Length": str(len(body)), **(headers or {})}
        self._writer.write(self._head(status, sized) + (b"" if self._bare else body))
        await self._writer.drain()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer of unknown length; `send` its parts, then `finish`."""
        if self._chunked:
            headers = {**headers, "Transfer-Encoding": "chunked"}
        else:
            self.keeps_alive = False
        self._writer.write(self._head(status, headers))
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        if data and not self._bare:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            await self._writer.drain()

    async def finish(self) -> None:
        if self._chunked and not self._bare:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def drop(self) -> None:
        """Cut the line, as a crashed server or a broken network does."""
        self.keeps_alive = False
        self._writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> bytes:
        self.status = status
        connection = "keep-alive" if self.keeps_alive else "close"
        fields = {**headers, "Connection": connection}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"HTTP/1.1 {status} {_reason(status)}\r\n{lines}\r\n".encode("latin-1")


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Error"


HOST = "127.0.0.1"

Gone = Callable[[], Awaitable[None]]
Handler = Callable[[Request, Response, Gone], Awaitable[None]]


class HttpListener:
    """Listens on the loopback address alone."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self, port: int = 0) -> int:
        """Start listening, and give the port. 0: a free one."""
        self._server = await asyncio.start_server(
            self._connected, HOST, port, limit=HEADER_LIMIT_BYTES
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and cut every line. Nothing is left running."""
        if self._server is None:
            return
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or not self._server.is_serving():
            # Accepted just before the close; nobody would end it.
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer_next(reader, writer):
                pass
            writer.close()
        except ConnectionError:
            pass  # the client went away, which clients may
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "the model server failed on a request", "exception": error}
            )
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    async def _answer_next(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request. False: it was the last on this line."""

        async def gone() -> None:
            with suppress(ConnectionError):
                while await reader.read(HEADER_LIMIT_BYTES):
                    pass

        try:
            request = await read_request(reader, writer)
        except BadRequest as bad:
            body = json_bytes({"error": {"code": bad.status, "message": str(bad)}})
            await Response(writer, None).whole(
                bad.status, body, {"Content-Type": "application/json"}
            )
            return False
        if request is None:
            return False
        response = Response(writer, request)
        await self._handler(request, response, gone)
        return response.keeps_alive
