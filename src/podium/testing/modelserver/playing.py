"""Plays one step to one client: the answer, slow or cut or broken as the script wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain

from podium.testing.modelserver.answer import Answer, Event, Tokens, Words, filled, json_bytes
from podium.testing.modelserver.ask import Ask
from podium.testing.modelserver.dialects import Dialect, Failure
from podium.testing.modelserver.http import Response
from podium.testing.modelserver.offered_tools import NotOffered, calls_of, words_of
from podium.testing.modelserver.script import Step

JSON = {"Content-Type": "application/json; charset=UTF-8"}
STREAM = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
GARBAGE = b"\x00\x01<html><body>502 Bad Gateway</body></html>\nid\x7f: : :\n\ndata\n\n"
BROKEN_JSON = b'{"candidates":[{"content": {"parts": [{"text": "cut'
BREAK_SECONDS = 0.02

Gone = Callable[[], Awaitable[None]]


class Performance:
    """One step played to one client."""

    def __init__(
        self, step: Step, ask: Ask, dialect: Dialect, response: Response, gone: Gone
    ) -> None:
        """`gone` waits until the client has closed its side."""
        self._step = step
        self._ask = ask
        self._dialect = dialect
        self._response = response
        self._gone = gone

    async def play(self) -> None:
        await asyncio.sleep(self._step.delay_seconds)
        if self._step.fault == "hang":
            await self._gone()
            self._response.drop()
        elif self._step.fault == "drop_before_headers":
            self._response.drop()
        elif failure := self._failure():
            await send_failure(self._response, failure, self._step.headers)
        elif self._ask.streamed and self._ask.event_stream:
            await self._stream()
        else:
            await self._whole()

    def _failure(self) -> Failure | None:
        """The error to answer with. Inside a stream it is the stream's to tell."""
        step, dialect = self._step, self._dialect
        match step.fault:
            case "context_overflow":
                failure = dialect.overflow()
                return None if failure.event and self._ask.streamed else failure
            case "bad_key":
                return dialect.bad_key()
            case "error_event" if not self._ask.streamed:
                return dialect.failure(step.status or 500, step.message, step.retry_after)
            case None if step.status is not None:
                return dialect.failure(step.status, step.message, step.retry_after)
        return None

    async def _whole(self) -> None:
        answer = answer_of(self._step, self._ask)
        parts = filled(self._dialect.whole(self._ask, answer), answer.words)
        fault = self._step.fault
        if fault == "invalid_stream":
            parts = iter([GARBAGE])
        if fault in ("truncate", "invalid_json", "drop"):
            parts = _first_half(parts)
        if self._ask.streamed:
            parts = chain([b"["], parts, [b"]"])
        headers = {**JSON, **self._step.headers}
        begun, rest = _begun(parts)
        if rest is None and fault != "drop":
            await self._response.whole(200, begun, headers)
            return
        await self._response.start(200, headers)
        for part in chain([begun], rest or ()):
            await self._response.send(part)
        await self._end()

    async def _stream(self) -> None:
        await self._response.start(200, {**STREAM, **self._step.headers})
        first = True
        for event in self._events():
            if not first:
                await asyncio.sleep(self._step.drip_seconds)
            first = False
            for part in event:
                await self._response.send(part)
        if self._step.fault in _BREAKING:
            # What went well is read first: Gemini's clients know an error only when it comes alone.
            await asyncio.sleep(BREAK_SECONDS)
            for part in self._breaking():
                await self._response.send(part)
        await self._end()

    async def _end(self) -> None:
        if self._step.fault == "drop":
            self._response.drop()
        else:
            await self._response.finish()

    def _events(self) -> Iterator[Iterator[bytes]]:
        """The bytes of every event; those of a broken stream, up to where it breaks."""
        fault, spoken = self._step.fault, False
        for event in self._dialect.events(self._ask, answer_of(self._step, self._ask)):
            if (event.final and fault in ("truncate", *_BREAKING)) or (
                spoken and fault in _BREAKING
            ):
                return
            yield event_bytes(event, self._dialect.line_end)
            # Most break within the text; a prompt that is too long is told before any.
            spoken = spoken or bool(event.words) or fault == "context_overflow"

    def _breaking(self) -> Iterator[bytes]:
        match self._step.fault:
            case "invalid_stream":
                return iter([GARBAGE])
            case "invalid_json":
                return iter([b"data: " + BROKEN_JSON + self._dialect.line_end * 2])
            case "error_event":
                status = self._step.status or 500
                return event_bytes(
                    self._dialect.error_event(status, self._step.message), self._dialect.line_end
                )
            case "context_overflow":
                event = self._dialect.overflow().event
                return event_bytes(event, self._dialect.line_end) if event else iter(())
        return iter(())


_BREAKING = ("drop", "invalid_stream", "invalid_json", "error_event", "context_overflow")
_WRITE_BYTES = 64 * 1024


def event_bytes(event: Event, line_end: bytes) -> Iterator[bytes]:
    """The event as a stream writes it. A large one comes in pieces."""
    if event.bare:
        yield json_bytes(event.data)
        return
    name = f"event: {event.name}".encode() + line_end if event.name else b""
    if isinstance(event.data, str):
        yield name + b"data: " + event.data.encode() + line_end * 2
        return
    parts = filled(event.data, event.words)
    # Small events go out in one piece, as one write and one chunk.
    held = name + b"data: " + next(parts)
    for part in parts:
        if len(held) + len(part) > _WRITE_BYTES:
            yield held
            held = b""
        held += part
    yield held + line_end * 2


def answer_of(step: Step, ask: Ask) -> Answer:
    """What the model says; that a tool is not offered, if so."""
    try:
        calls, text = tuple(calls_of(step, ask.tools)), words_of(step, ask.tools)
    except NotOffered as missing:
        calls, text = (), f"The model server's script cannot go on: {missing}."
    flood = step.flood_bytes or 0
    words = Words(
        text=step.then if flood else text,
        chunk_characters=step.chunk_characters,
        flood_bytes=flood,
        invalid=step.fault == "invalid_utf8",
    )
    said = words.characters + len(step.thinking) + sum(len(call.arguments_json) for call in calls)
    tokens = Tokens(
        input=ask.input_characters // 4 if step.usage.input is None else step.usage.input,
        output=max(1, said // 4) if step.usage.output is None else step.usage.output,
        cached=step.usage.cached,
    )
    return Answer(words, tokens, step.thinking, calls, step.finish)


async def send_failure(
    response: Response, failure: Failure, headers: dict[str, str] | None = None
) -> None:
    """Answer with an error in the protocol's own words."""
    every = {**JSON, **failure.headers, **(headers or {})}
    await response.whole(failure.status, json_bytes(failure.body), every)


def _begun(parts: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """The first bytes, and the parts behind them. None: that was all."""
    held = bytearray()
    for part in parts:
        held += part
        if len(held) > _WRITE_BYTES:
            return bytes(held), parts
    return bytes(held), None


def _first_half(parts: Iterator[bytes]) -> Iterator[bytes]:
    """All but the last part, and half of that one: JSON that never ends."""
    held: bytes | None = None
    for part in parts:
        if held is not None:
            yield held
        held = part
    if held is not None:
        yield held[: len(held) // 2]
