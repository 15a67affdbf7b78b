"""The conversation with a running Claude Code: its lines in, our answers out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress

from podium.agents.headless.claude.door import ClaudeDoor
from podium.agents.headless.claude.records import Heard, ToolResult, record_of, tool_results
from podium.domain.model import Json
from podium.ports import Process, Transcript, TurnDoor

CLOSING_SECONDS = 15.0
"""How long it may take to end once it gave its result."""
LONGEST_OUTPUT = 4_000
"""How much of a tool's output goes into the record of its call."""

_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")
_NOT_KEPT = frozenset({"stream_event", "control_response"})
"""Pieces of what comes whole a moment later, and the CLI's list of its own abilities."""


class ClaudeTalk:
    """One turn's conversation. It is over when the process is, or when there is no use in waiting."""

    def __init__(
        self,
        process: Process,
        gatekeeper: ClaudeDoor,
        door: TurnDoor,
        heard: Heard,
        transcript: Transcript,
    ) -> None:
        self._process = process
        self._gatekeeper = gatekeeper
        self._door = door
        self._heard = heard
        self._transcript = transcript
        self._answers: dict[str, asyncio.Task[None]] = {}

    async def hold(self) -> None:
        """Listen and answer. On return nothing is being judged any more; the process may still live."""
        loop = asyncio.get_running_loop()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as patience:
                    async for line in self._process.lines():
                        await self._take(line)
                        if self._heard.is_hopeless:
                            break
                        if self._heard.result is not None and patience.when() is None:
                            self._process.close_input()
                            patience.reschedule(loop.time() + CLOSING_SECONDS)
        finally:
            await self._stop_answering()

    async def _take(self, line: bytes) -> None:
        record = record_of(line)
        if record.get("type") not in _NOT_KEPT:
            self._transcript.write(line.decode(errors="replace"))
        number = record.get("request_id")
        if record.get("type") == "control_request" and isinstance(number, str):
            self._begin_answer(number, record.get("request"))
        elif record.get("type") == "control_cancel_request" and number in self._answers:
            self._answers[number].cancel()
        for result in tool_results(record):
            await self._settle(result)
        self._heard.take(record)

    def _begin_answer(self, number: str, request: Json) -> None:
        # In a task of its own: it goes on talking, and uses tools side by side.
        found = request if isinstance(request, dict) else {}
        task = asyncio.get_running_loop().create_task(self._answer(number, found))
        self._answers[number] = task
        task.add_done_callback(lambda _: self._answers.pop(number, None))

    async def _answer(self, number: str, request: Mapping[str, Json]) -> None:
        answer = await self._gatekeeper.answer(request)
        response: dict[str, Json] = {"subtype": "success", "response": answer}
        if answer is None:
            response = {"subtype": "error", "error": "this is no question for Podium"}
        said = {"type": "control_response", "response": {**response, "request_id": number}}
        await self._process.send(json.dumps(said).encode() + b"\n")

    async def _settle(self, result: ToolResult) -> None:
        ended = _EXIT_CODE.match(result.text)
        exit_code = int(ended[1]) if ended else None if not result.ok else 0
        output = result.text[:LONGEST_OUTPUT]
        await self._door.settle(
            result.use,
            ok=result.ok,
            result={"done": result.ok, "exit_code": exit_code, "output": output},
            error="" if result.ok else output[:500] or "failed without a word",
        )

    async def _stop_answering(self) -> None:
        tasks = list(self._answers.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
