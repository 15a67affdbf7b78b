"""JSON-RPC over the lines of a process: calls to it, and its calls and notices to us."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from podium.agents.program import record_of
from podium.core.errors import AgentLost
from podium.core.model import Json
from podium.ports import Process

Params = dict[str, Any]
"""Parameters of a message. Written by the other side: nothing in it can be relied on."""

Answering = Callable[[str, Params], Awaitable[Json]]
"""Answers a call of the other side: method and parameters in, result out. May raise `RpcError`."""

Hearing = Callable[[str, Params], Awaitable[None]]
"""Takes a notice of the other side. They come one after the other, in the order they were sent."""

Keeping = Callable[[Literal["sent", "received"], str], None]
"""Sees every line that goes over the wire."""

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
TOO_BUSY = -32000

MAX_ANSWERS_AT_ONCE = 64
"""More calls of the other side than this are turned down until some are answered."""
REFUSAL_SECONDS = 30.0
"""Seconds the other side may leave such a refusal unread. Nothing of it is read meanwhile."""


class RpcError(Exception):
    """An error as the protocol knows it: said to the other side, or by it."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class LineClosed(AgentLost):
    """The process ended while an answer of it was awaited."""


class RpcPeer:
    """One side of the conversation. Make it with `talking`."""

    def __init__(
        self,
        process: Process,
        answer: Answering,
        hear: Hearing,
        *,
        version_field: bool = True,
        keep: Keeping | None = None,
    ) -> None:
        self._process = process
        self._answer = answer
        self._hear = hear
        self._envelope: Params = {"jsonrpc": "2.0"} if version_field else {}
        self._keep = keep
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def call(self, method: str, params: Params | None = None) -> Json:
        """Ask the other side. Raises `RpcError` when it answers with one, `LineClosed` when it is gone."""
        if self._over.done():
            self._over.result()
            raise LineClosed(f"{method!r} was sent to a process that has ended")
        self._last_id += 1
        number = self._last_id
        answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            await self._send({"id": number, "method": method, "params": params or {}})
            return await answered
        finally:
            self._waiting.pop(number, None)

    async def notify(self, method: str, params: Params | None = None) -> None:
        """Tell the other side something that has no answer."""
        await self._send({"method": method, "params": params or {}})

    async def over(self) -> None:
        """Wait for the end of the process's output. Raises what a listener raised, if one did."""
        await asyncio.shield(self._over)

    async def read(self) -> None:
        """Take in everything the process says, until its output ends."""
        failure: BaseException | None = None
        try:
            async for line in self._process.lines():
                await self._take(line.decode(errors="replace"))
        except BaseException as error:
            failure = error
            raise
        finally:
            self._end(failure)

    async def stop_answering(self) -> None:
        """Drop the calls of the other side that are still being answered."""
        for task in self._answers:
            task.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)

    async def _take(self, line: str) -> None:
        if self._keep is not None:
            self._keep("received", line)
        message = record_of(line)
        method = message.get("method")
        params = message.get("params")
        arguments = params if isinstance(params, dict) else {}
        if isinstance(method, str) and "id" in message:
            await self._take_call(message["id"], method, arguments)
        elif isinstance(method, str):
            await self._hear(method, arguments)
        elif isinstance(number := message.get("id"), int):
            self._settle(number, message)

    def _settle(self, number: int, message: Params) -> None:
        answered = self._waiting.get(number)
        if answered is None or answered.done():
            return
        if message.get("error") is not None:
            answered.set_exception(_error(message["error"]))
        else:
            answered.set_result(message.get("result"))

    async def _take_call(self, number: Json, method: str, params: Params) -> None:
        if len(self._answers) >= MAX_ANSWERS_AT_ONCE:
            await self._turn_down(number)
            return
        # In a task of its own: the other side goes on talking while a call is judged.
        task = asyncio.get_running_loop().create_task(self._reply(number, method, params))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _turn_down(self, number: Json) -> None:
        """Said before anything else is heard: who asks without reading piles up nothing here."""
        error = {"code": TOO_BUSY, "message": "too many calls at once; try again"}
        try:
            async with asyncio.timeout(REFUSAL_SECONDS):
                await self._send({"id": number, "error": error})
        except TimeoutError:
            raise AgentLost(
                f"the agent keeps sending requests and has not read an answer for {REFUSAL_SECONDS:g} s"
            ) from None

    async def _reply(self, number: Json, method: str, params: Params) -> None:
        try:
            await self._send({"id": number, "result": await self._answer(method, params)})
        except RpcError as error:
            body = {"code": error.code, "message": error.message}
            await self._send({"id": number, "error": body})
        except Exception as error:
            body = {"code": INTERNAL_ERROR, "message": f"{method!r}: {type(error).__name__}"}
            await self._send({"id": number, "error": body})

    async def _send(self, message: Params) -> None:
        line = json.dumps({**self._envelope, **message})
        if self._keep is not None:
            self._keep("sent", line)
        await self._process.send(line.encode() + b"\n")

    def _end(self, failure: BaseException | None) -> None:
        gone = failure if isinstance(failure, Exception) else LineClosed("the process ended")
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(gone)
        if isinstance(failure, Exception):
            self._over.set_exception(failure)
            self._over.exception()  # whoever asks gets it; nobody has to
        else:
            self._over.set_result(None)


@asynccontextmanager
async def talking(
    process: Process,
    answer: Answering,
    hear: Hearing,
    *,
    version_field: bool = True,
    keep: Keeping | None = None,
) -> AsyncIterator[RpcPeer]:
    """Talk with an interactive process for as long as this is open. Ending it is the caller's part.

    `version_field` says whether messages carry `"jsonrpc": "2.0"`, as the standard has it.
    """
    peer = RpcPeer(process, answer, hear, version_field=version_field, keep=keep)
    reading = asyncio.get_running_loop().create_task(peer.read())
    try:
        yield peer
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await peer.stop_answering()


def _error(value: Json) -> RpcError:
    if not isinstance(value, dict):
        return RpcError(INTERNAL_ERROR, str(value))
    code = value.get("code")
    number = code if isinstance(code, int) else INTERNAL_ERROR
    return RpcError(
        number, str(value.get("message") or "an error without words"), value.get("data")
    )
