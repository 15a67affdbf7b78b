"""Session with a running Claude Code: its lines in, our answers out, each use of a tool put before the gate."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress

from podium.agents.headless.claude.command import ANSWER_TOOL
from podium.agents.headless.claude.records import ClaudeStream, ToolResult, record_of, tool_results
from podium.agents.headless.mcp_only import OwnTools
from podium.agents.program import received_line, sent_line
from podium.core.decisions import Effect, HookAnswer
from podium.core.errors import AgentLost
from podium.core.model import Json
from podium.core.tool_replies import refusal_text
from podium.ports import Process, Transcript

BEFORE_TOOL = "podium-before-tool"
ANSWER_SECONDS = 120
"""Seconds it waits for an answer; then the tool does not run. The door's own deadline is shorter."""

INTRODUCTION: Json = {
    "subtype": "initialize",
    "hooks": {
        "PreToolUse": [
            {"matcher": "*", "hookCallbackIds": [BEFORE_TOOL], "timeout": ANSWER_SECONDS}
        ]
    },
}
"""Makes it ask before every use of a tool, also within subagents and for what it deems harmless."""


class ClaudeDoor:
    """Answers for one turn. What was not permitted here does not run.

    A tool is asked for twice: by the hook, which comes first and for everything, and by the
    permission question, which would catch what no hook was called for.
    """

    def __init__(self, door: OwnTools, workspace: str, *, takes_answers: bool) -> None:
        """`takes_answers`: the turn has a contract, and its payload comes by a tool."""
        self._door = door
        self._workspace = os.path.realpath(workspace)
        self._takes_answers = takes_answers
        self._permitted: dict[str, tuple[Json, Json]] = {}

    async def answer(self, request: Mapping[str, Json]) -> dict[str, Json] | None:
        """The answer to a control request; None for one that we have none for."""
        if request.get("subtype") == "hook_callback":
            return await self._answer_hook(request)
        if request.get("subtype") == "can_use_tool":
            return await self._answer_permission(request)
        return None

    def turn_down(self, request: Mapping[str, Json]) -> dict[str, Json] | None:
        """No, to a question that there is no time to judge."""
        busy = HookAnswer(decision=Effect.DENY, say="too many tools at once; use fewer")
        if request.get("subtype") == "hook_callback":
            return _hook_answer(busy)
        if request.get("subtype") == "can_use_tool":
            return _permission_refused(busy)
        return None

    async def _answer_hook(self, request: Mapping[str, Json]) -> dict[str, Json]:
        value = request.get("input")
        event = value if isinstance(value, dict) else {}
        use = event.get("tool_use_id") or request.get("tool_use_id")
        answer = await self._judge(
            event.get("tool_name"), event.get("tool_input"), use, event.get("cwd")
        )
        return _hook_answer(answer)

    async def _answer_permission(self, request: Mapping[str, Json]) -> dict[str, Json]:
        tool, arguments = request.get("tool_name"), request.get("input")
        use = request.get("tool_use_id")
        # It asks again for what it finds sensitive. Only the very same use is permitted already.
        if isinstance(use, str) and self._permitted.get(use) == (tool, arguments):
            return {"behavior": "allow", "updatedInput": arguments}
        answer = await self._judge(tool, arguments, use, None)
        if answer.allowed:
            return {"behavior": "allow", "updatedInput": arguments}
        return _permission_refused(answer)

    async def _judge(self, tool: Json, arguments: Json, use: Json, cwd: Json) -> HookAnswer:
        if not isinstance(tool, str) or not isinstance(arguments, dict) or not isinstance(use, str):
            return HookAnswer(decision=Effect.DENY, say="this use of a tool cannot be understood")
        if tool == ANSWER_TOOL and self._takes_answers:
            return HookAnswer(decision=Effect.ALLOW)
        try:
            answer = await self._door.request(tool, self._placed(tool, arguments, cwd), ref=use)
        except Exception as error:
            # Said in words: an error would be taken for no objection.
            return HookAnswer(decision=Effect.DENY, say=f"not judged ({type(error).__name__})")
        if answer.allowed:
            self._permitted[use] = (tool, arguments)
        return answer

    def _placed(self, tool: str, arguments: dict[str, Json], cwd: Json) -> dict[str, Json]:
        """The arguments, with the folder a command runs in when that is not the workspace."""
        if tool != "Bash" or not isinstance(cwd, str) or os.path.realpath(cwd) == self._workspace:
            return {name: value for name, value in arguments.items() if name != "cwd"}
        return {**arguments, "cwd": cwd}


def _hook_answer(answer: HookAnswer) -> dict[str, Json]:
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow" if answer.allowed else "deny",
        "permissionDecisionReason": "permitted" if answer.allowed else _refusal_text(answer),
    }
    return {"hookSpecificOutput": decision}


def _permission_refused(answer: HookAnswer) -> dict[str, Json]:
    return {"behavior": "deny", "message": _refusal_text(answer)}


def _refusal_text(answer: HookAnswer) -> str:
    waits = answer.decision is Effect.ASK
    return refusal_text(answer.say, mistake=answer.mistake, waits=waits)


CLOSING_SECONDS = 15.0
"""Seconds it may take to end once it gave its result."""
MAX_OUTPUT = 4_000
"""Characters of a tool's output that go into the record of its call."""

MAX_ANSWERS_AT_ONCE = 64
"""More questions than this, or one under the name of another, are answered by no."""
REFUSAL_SECONDS = 30.0
"""Seconds it may leave such a refusal unread. Nothing else is read from it meanwhile."""

_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")
_NOT_RECORDED = frozenset({"stream_event", "control_response"})
"""Pieces of what comes whole a moment later, and the CLI's list of its own abilities."""


class ClaudeSession:
    """One turn's conversation. It is over when the process is, or when there is no use in waiting."""

    def __init__(
        self,
        process: Process,
        gatekeeper: ClaudeDoor,
        door: OwnTools,
        stream: ClaudeStream,
        transcript: Transcript,
    ) -> None:
        self._process = process
        self._gatekeeper = gatekeeper
        self._door = door
        self._stream = stream
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
                        if self._stream.is_hopeless:
                            break
                        if self._stream.result is not None and patience.when() is None:
                            self._process.close_input()
                            patience.reschedule(loop.time() + CLOSING_SECONDS)
        finally:
            await self._stop_answering()

    async def _take(self, line: bytes) -> None:
        record = record_of(line)
        if record.get("type") not in _NOT_RECORDED:
            self._transcript.write(_transcript_line(line, record))
        number = record.get("request_id")
        if record.get("type") == "control_request" and isinstance(number, str):
            await self._take_question(number, record.get("request"))
        elif record.get("type") == "control_cancel_request" and number in self._answers:
            self._answers[number].cancel()
        for result in tool_results(record):
            await self._settle(result)
        self._stream.take(record)

    async def _take_question(self, number: str, request: Json) -> None:
        question = request if isinstance(request, dict) else {}
        if number in self._answers or len(self._answers) >= MAX_ANSWERS_AT_ONCE:
            await self._turn_down(number, question)
            return
        # In a task of its own: it goes on talking, and uses tools side by side.
        task = asyncio.get_running_loop().create_task(self._answer(number, question))
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
        message = {"type": "control_response", "response": {**response, "request_id": number}}
        line = json.dumps(message)
        self._transcript.write(sent_line(line))
        await self._process.send(line.encode() + b"\n")

    async def _settle(self, result: ToolResult) -> None:
        ended = _EXIT_CODE.match(result.text)
        exit_code = int(ended[1]) if ended else None if not result.ok else 0
        output = result.text[:MAX_OUTPUT]
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


def _transcript_line(line: bytes, record: Mapping[str, Json]) -> str:
    text = line.decode(errors="replace")
    return text if record else received_line(text)
