"""A websocket that ends with the token of who opened it."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope, Send

from podium.web.access.answering import is_still_known

GONE = 4401
"""How a websocket is told that its token holds no longer."""


class Speaking:
    """One websocket, as its handler has it. Nothing is heard or said once its token is over."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_over = False

    async def hear(self) -> Message:
        message = await self._receive()
        if message["type"] != "websocket.receive" or await self._goes_on():
            return message
        return {"type": "websocket.disconnect", "code": GONE}

    async def say(self, message: Message) -> None:
        if await self._goes_on():
            await self._send(message)

    async def _goes_on(self) -> bool:
        if not self._is_over and not is_still_known(self._scope):
            self._is_over = True
            await self._send({"type": "websocket.close", "code": GONE})
        return not self._is_over
