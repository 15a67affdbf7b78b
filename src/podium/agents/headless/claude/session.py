"""Session with a running Claude Code: its records read, our answers sent, each use of a tool put before the gate."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from podium.agents.headless.claude.command import ANSWER_TOOL, RETRIES
from podium.agents.headless.own_tools import OwnTools
from podium.agents.outcome import after_seconds, plain_line
from podium.agents.program import mapping_of, received_line, record_of, sent_line
from podium.core.decisions import Effect, HookAnswer, Usage
from podium.core.errors import AgentLost
from podium.core.events import ProgressKind
from podium.core.model import Json
from podium.core.tool_replies import refusal_text
from podium.ports import Clock, Process, Transcript

MAX_WAIT_SECONDS = 5.0
"""A provider that asks for a longer pause is not waited for inside the turn."""

MAX_PROGRESS_CHARACTERS = 200
"""Characters of a tool's use that are reported as progress."""
MAX_SUMMARY_CHARACTERS = 2_000

_SUMMARY_ARGUMENTS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "path",
    "description",
)
"""Arguments that say what a use of a tool is about, the most telling first."""

MADE_UP_MODEL = "<synthetic>"
"""Stands where the CLI itself speaks in the model's place, such as to tell of an error."""


class ProviderFailure(NamedTuple):
    """The reason why the turn was ended before the CLI itself gave up."""

    status: int | None
    message: str
    retry_at: datetime | None


class ToolResult(NamedTuple):
    """The end of a tool's use, as the model is told."""

    use: str
    ok: bool
    text: str


class ClaudeStream:
    """Everything a turn's records have said so far. Progress is told on the way."""

    def __init__(self, clock: Clock, most_tokens: int | None = None) -> None:
        self._clock = clock
        self.notify: Callable[[ProgressKind, str], None] = _to_nobody
        """Receives progress. Nobody does before the turn's door is open."""
        self.asked = False
        """True once the CLI was started: one exchange then counts, even when it reports none."""
        self.most_tokens = most_tokens
        self.version = ""
        self.model = ""
        self.session: str | None = None
        self.result: dict[str, Json] | None = None
        self.failure: ProviderFailure | None = None
        self.limit_ends: datetime | None = None
        self.refused = False
        self.counted = Usage(complete=False)
        """Exchanges and tokens seen going by: what is known when no result comes."""

    def used(self, seconds: float) -> Usage:
        """Return what the turn has used so far, exchanges of its subagents included."""
        if not self.asked:
            return Usage(seconds=seconds)
        used = used_by(self.result or {}, self.counted)
        turns = max(self.counted.turns, 1)
        return used.model_copy(update={"turns": turns, "seconds": seconds})

    @property
    def is_overspent(self) -> bool:
        """True if more tokens were used than the turn may. The CLI has no such limit of its own."""
        used = self.counted.input_tokens + self.counted.output_tokens
        return self.most_tokens is not None and self.result is None and used > self.most_tokens

    @property
    def is_hopeless(self) -> bool:
        """True if there is no use in letting it continue."""
        return self.failure is not None or self.is_overspent

    def take(self, record: Mapping[str, Json]) -> None:
        kind = record.get("type")
        by_subagent = record.get("parent_tool_use_id") is not None
        if kind == "stream_event":
            self._take_event(mapping_of(record.get("event")), by_subagent)
        elif kind == "system":
            self._take_notice(record)
        elif kind == "assistant":
            self._take_message(mapping_of(record.get("message")), by_subagent)
        elif kind == "rate_limit_event":
            self._take_limit(mapping_of(record.get("rate_limit_info")))
        elif kind == "result":
            self.result = dict(record)
            self._take_session(record)

    def _take_notice(self, record: Mapping[str, Json]) -> None:
        what = record.get("subtype")
        if what == "init":
            self.version = str(record.get("claude_code_version") or "")
            self.model = str(record.get("model") or "")
            self._take_session(record)
        elif what == "api_retry":
            self._take_retry(record)

    def _take_session(self, record: Mapping[str, Json]) -> None:
        session = record.get("session_id")
        self.session = session if isinstance(session, str) else self.session

    def _take_retry(self, record: Mapping[str, Json]) -> None:
        """The CLI wants to try again. What cannot help, or takes too long, ends the turn."""
        status = record.get("error_status")
        status = status if isinstance(status, int) else None
        wait = _number(record.get("retry_delay_ms")) / 1000
        message = plain_line(str(record.get("error") or ""))
        self.notify("retry", f"{status or 'no connection'} {message}, retrying in {wait:.1f} s")
        hopeless = status in (401, 403)
        too_often = _number(record.get("attempt")) > RETRIES
        if hopeless or too_often or wait > MAX_WAIT_SECONDS:
            # A provider's own wish is long or comes in whole seconds, the CLI's first guesses neither.
            is_requested = status == 429 and (wait.is_integer() or wait > MAX_WAIT_SECONDS)
            retry_at = after_seconds(wait, self._clock.now()) if is_requested else None
            self.failure = ProviderFailure(status, message, retry_at)

    def _take_limit(self, info: Mapping[str, Json]) -> None:
        resets_at = info.get("resetsAt")
        if info.get("status") == "rejected" and isinstance(resets_at, int | float):
            now = self._clock.now()
            self.limit_ends = after_seconds(resets_at - now.timestamp(), now)

    def _take_event(self, event: Mapping[str, Json], by_subagent: bool) -> None:
        delta = mapping_of(event.get("delta"))
        if delta.get("type") == "text_delta":
            self.notify("text", str(delta.get("text") or ""))
        elif delta.get("type") == "thinking_delta":
            self.notify("thinking", str(delta.get("thinking") or ""))
        elif event.get("type") == "message_start":
            self._count(mapping_of(mapping_of(event.get("message")).get("usage")), read=True)
        elif event.get("type") == "message_delta":
            self._count(mapping_of(event.get("usage")), read=False)
            if not by_subagent:
                self.refused = delta.get("stop_reason") == "refusal"

    def _count(self, usage: Mapping[str, Json], *, read: bool) -> None:
        tokens = tokens_read(usage) if read else 0
        written = 0 if read else int(_number(usage.get("output_tokens")))
        self.counted = self.counted.plus(
            Usage(input_tokens=tokens, output_tokens=written, turns=int(read))
        )

    def _take_message(self, message: Mapping[str, Json], by_subagent: bool) -> None:
        model = message.get("model")
        if isinstance(model, str) and model not in ("", MADE_UP_MODEL) and not by_subagent:
            self.model = model
        for block in _blocks(message.get("content")):
            if block.get("type") == "tool_use":
                self.notify("tool", _tool_summary(block))


def _tool_summary(use: Mapping[str, Json]) -> str:
    """A tool's name and what it is used on: the command, the file, the pattern."""
    arguments = mapping_of(use.get("input"))
    named = (arguments.get(name) for name in _SUMMARY_ARGUMENTS)
    about = next((value for value in named if isinstance(value, str) and value), "")
    summary = plain_line(f"{use.get('name') or ''} {about}", MAX_SUMMARY_CHARACTERS)
    if len(summary) <= MAX_PROGRESS_CHARACTERS:
        return summary
    # Between two words: half a secret would not be found where secrets are taken out.
    return f"{summary[:MAX_PROGRESS_CHARACTERS].rpartition(' ')[0]} …"


def _to_nobody(kind: ProgressKind, text: str) -> None:
    return None


def tokens_read(usage: Mapping[str, Json]) -> int:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(_number(usage.get(name))) for name in names)


def tool_results(record: Mapping[str, Json]) -> Iterator[ToolResult]:
    """The ends of tools that a record tells of."""
    if record.get("type") != "user":
        return
    for block in _blocks(mapping_of(record.get("message")).get("content")):
        use = block.get("tool_use_id")
        if block.get("type") == "tool_result" and isinstance(use, str):
            yield ToolResult(use, block.get("is_error") is not True, _text(block.get("content")))


def used_by(result: Mapping[str, Json], counted: Usage) -> Usage:
    """Return what the turn used. `total_cost_usd` is no help: it goes on counting in a resumed conversation."""
    models = result.get("model_usage_since_last_result")
    if not isinstance(models, dict) or not models:
        return counted
    figures = [mapping_of(figure) for figure in models.values()]
    read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Usage(
        input_tokens=int(sum(_number(one.get(name)) for one in figures for name in read)),
        output_tokens=int(sum(_number(one.get("outputTokens")) for one in figures)),
        usd=sum(_number(one.get("costUSD")) for one in figures),
    )


def _blocks(content: Json) -> Iterator[Mapping[str, Json]]:
    return (
        (block for block in content if isinstance(block, dict))
        if isinstance(content, list)
        else iter(())
    )


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or "") for block in _blocks(content))


def _number(value: Json) -> float:
    """A figure of the CLI's. What is none, or no sensible one, counts as nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 1e15 else 0.0


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
            return HookAnswer(decision=Effect.DENY, say="this tool call is not valid")
        if tool == ANSWER_TOOL and self._takes_answers:
            return HookAnswer(decision=Effect.ALLOW)
        try:
            answer = await self._door.request(tool, self._placed(tool, arguments, cwd), ref=use)
        except Exception as error:
            # Said in words: an error would be taken for no objection.
            return HookAnswer(
                decision=Effect.DENY, say=f"the call could not be checked ({type(error).__name__})"
            )
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
                f"Claude Code keeps sending requests and has not read an answer for {REFUSAL_SECONDS:g} s"
            ) from None

    async def _answer(self, number: str, request: Mapping[str, Json]) -> None:
        await self._say(number, await self._gatekeeper.answer(request))

    async def _say(self, number: str, answer: dict[str, Json] | None) -> None:
        response: dict[str, Json] = {"subtype": "success", "response": answer}
        if answer is None:
            response = {"subtype": "error", "error": "Podium does not support this request"}
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
