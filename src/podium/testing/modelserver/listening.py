"""A loopback listener: reads requests, hands each to a handler, ends every connection at once on close."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from podium.testing.modelserver.answer import json_bytes
from podium.testing.modelserver.http import (
    HEADER_LIMIT_BYTES,
    BadRequest,
    Request,
    Response,
    read_request,
)

HOST = "127.0.0.1"

Gone = Callable[[], Awaitable[None]]
Handler = Callable[[Request, Response, Gone], Awaitable[None]]


class Listener:
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
                {"message": "the model server broke over a request", "exception": error}
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
