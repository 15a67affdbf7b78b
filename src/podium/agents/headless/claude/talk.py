"""The conversation with a running Claude Code: its lines in, our answers out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress

from podium.agents.headless.claude.door import ClaudeDoor
from podium.agents.headless.claude.records import Heard, ToolResult, record_of, tool_results
from podium.agents.headless.handless import OwnTools
from podium.agents.headless.kept_lines import heard_line, sent_line
from podium.domain.errors import AgentLost
from podium.domain.model import Json
from podium.ports import Process, Transcript

CLOSING_SECONDS = 15.0
"""How long it may take to end once it gave its result."""
LONGEST_OUTPUT = 4_000
"""How much of a tool's output goes into the record of its call."""

MOST_ANSWERS_AT_ONCE = 64
"""More questions than this, or one under the name of another, are answered by no."""
REFUSAL_SECONDS = 30.0
"""How long it may leave such a no unread. Nothing of it is heard meanwhile."""

_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")
_NOT_KEPT = frozenset({"stream_event", "control_response"})
"""Pieces of what comes whole a moment later, and the CLI's list of its own abilities."""


class ClaudeTalk:
    """One turn's conversation. It is over when the process is, or when there is no use in waiting."""

    def __init__(
        self,
        process: Process,
        gatekeeper: ClaudeDoor,
        door: OwnTools,
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
            self._transcript.write(_kept(line, record))
        number = record.get("request_id")
        if record.get("type") == "control_request" and isinstance(number, str):
            await self._take_question(number, record.get("request"))
        elif record.get("type") == "control_cancel_request" and number in self._answers:
            self._answers[number].cancel()
        for result in tool_results(record):
            await self._settle(result)
        self._heard.take(record)

    async def _take_question(self, number: str, request: Json) -> None:
        found = request if isinstance(request, dict) else {}
        if number in self._answers or len(self._answers) >= MOST_ANSWERS_AT_ONCE:
            await self._turn_down(number, found)
            return
        # In a task of its own: it goes on talking, and uses tools side by side.
        task = asyncio.get_running_loop().create_task(self._answer(number, found))
        self._answers[number] = task
        task.add_done_callback(lambda _: self._answers.pop(number, None))

    async def _turn_down(self, number: str, request: Mapping[str, Json]) -> None:
        """Said before anything else is heard: who asks without reading piles up nothing here."""
        try:
            async with asyncio.timeout(REFUSAL_SECONDS):
                await self._say(number, self._gatekeeper.turn_down(request))
        except TimeoutError:
            raise AgentLost(
                f"Claude Code asks and asks and has read no answer for {REFUSAL_SECONDS:g} s"
            ) from None

    async def _answer(self, number: str, request: Mapping[str, Json]) -> None:
        await self._say(number, await self._gatekeeper.answer(request))

    async def _say(self, number: str, answer: dict[str, Json] | None) -> None:
        response: dict[str, Json] = {"subtype": "success", "response": answer}
        if answer is None:
            response = {"subtype": "error", "error": "this is no question for Podium"}
        said = {"type": "control_response", "response": {**response, "request_id": number}}
        line = json.dumps(said)
        self._transcript.write(sent_line(line))
        await self._process.send(line.encode() + b"\n")

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


def _kept(line: bytes, record: Mapping[str, Json]) -> str:
    text = line.decode(errors="replace")
    return text if record else heard_line(text)
