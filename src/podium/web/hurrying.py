"""A server's end of a connection that does not wait forever for a request to begin."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def hurried(head_seconds: float) -> type[H11Protocol]:
    """The protocol with this deadline for the lines of a request.

    The server itself has one only between two requests: who connects and says a byte an hour would
    hold a file for as long.
    """

    class _Hurried(_HurriedProtocol):
        seconds = head_seconds

    return _Hurried


class _HurriedProtocol(H11Protocol):
    seconds = 10.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_served():
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_served(self) -> bool:
        upgraded = self.transport.get_protocol() is not self
        # There is none before the first request.
        return upgraded or not getattr(self.cycle, "response_complete", True)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._is_served():
            self.transport.abort()
