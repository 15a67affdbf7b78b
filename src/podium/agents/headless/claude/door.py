"""Claude Code's questions to its host: each use of a tool, put before the turn's door."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podium.agents.headless.claude.tools import ANSWER_TOOL
from podium.agents.headless.handless import OwnTools
from podium.domain.gating import DoorAnswer, Effect
from podium.domain.model import Json
from podium.domain.telling import told_refusal

BEFORE_TOOL = "podium-before-tool"
ANSWER_SECONDS = 120
"""How long it waits for an answer; then the tool does not run. The door's own deadline is shorter."""

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
        busy = DoorAnswer(decision=Effect.DENY, say="too many tools at once; use fewer")
        if request.get("subtype") == "hook_callback":
            return _hook_answer(busy)
        if request.get("subtype") == "can_use_tool":
            return _permission_refused(busy)
        return None

    async def _answer_hook(self, request: Mapping[str, Json]) -> dict[str, Json]:
        given = request.get("input")
        found = given if isinstance(given, dict) else {}
        use = found.get("tool_use_id") or request.get("tool_use_id")
        answer = await self._judge(
            found.get("tool_name"), found.get("tool_input"), use, found.get("cwd")
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

    async def _judge(self, tool: Json, arguments: Json, use: Json, cwd: Json) -> DoorAnswer:
        if not isinstance(tool, str) or not isinstance(arguments, dict) or not isinstance(use, str):
            return DoorAnswer(decision=Effect.DENY, say="this use of a tool cannot be understood")
        if tool == ANSWER_TOOL and self._takes_answers:
            return DoorAnswer(decision=Effect.ALLOW)
        try:
            answer = await self._door.request(tool, self._placed(tool, arguments, cwd), ref=use)
        except Exception as error:
            # Said in words: an error would be taken for no objection.
            return DoorAnswer(decision=Effect.DENY, say=f"not judged ({type(error).__name__})")
        if answer.allowed:
            self._permitted[use] = (tool, arguments)
        return answer

    def _placed(self, tool: str, arguments: dict[str, Json], cwd: Json) -> dict[str, Json]:
        """The arguments, with the folder a command runs in when that is not the workspace."""
        if tool != "Bash" or not isinstance(cwd, str) or os.path.realpath(cwd) == self._workspace:
            return {name: value for name, value in arguments.items() if name != "cwd"}
        return {**arguments, "cwd": cwd}


def _hook_answer(answer: DoorAnswer) -> dict[str, Json]:
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow" if answer.allowed else "deny",
        "permissionDecisionReason": "permitted" if answer.allowed else _words(answer),
    }
    return {"hookSpecificOutput": decision}


def _permission_refused(answer: DoorAnswer) -> dict[str, Json]:
    return {"behavior": "deny", "message": _words(answer)}


def _words(answer: DoorAnswer) -> str:
    waits = answer.decision is Effect.ASK
    return told_refusal(answer.say, mistake=answer.mistake, waits=waits)
