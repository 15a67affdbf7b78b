"""What agents and people are told at the door."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from datetime import datetime

from podium.domain.gating import Approval, BuiltInRule, Call, Decision, ToolSpec
from podium.domain.guarded_files import GUARDED_TOOL
from podium.domain.model import Json
from podium.tools.bounding import plain_text

CANCELLED = "cancelled before it ended; it may have done a part of its work"
"""Error of a call whose handler was stopped with its turn."""
LONGEST_COMMAND = 4_000
"""A person cannot be asked about a longer one."""
_LONGEST_VALUE = 400
_READ_WHOLE = ("ask_human", GUARDED_TOOL)
"""What a person is asked here is the question itself."""


_ASK_FOR_IT = "go on with what is allowed, or say in your answer what you need and why"
_INSTEAD: dict[str, str] = {
    BuiltInRule.GATE_ERROR: "try it once in a simpler form, or say in your answer what you need",
    BuiltInRule.NO_RULE: "use a command that reads, tests or builds, or say in your answer which one you need and why",
    BuiltInRule.UNKNOWN_TOOL: "use a tool that you were offered",
    BuiltInRule.UNKNOWN_MODE: "end your turn and say so: a person has to correct the settings",
    BuiltInRule.UNDECIDABLE_COMMAND: "write plain commands, one call each, or put them into a script file of the "
    "workspace and run that",
    BuiltInRule.PRIVILEGE: "work with your own rights, or say in your answer what a person has to set up",
    BuiltInRule.SHELL_INDIRECTION: "call the programs themselves, one call each",
    BuiltInRule.DANGEROUS_VARIABLE: "run it without the variable",
    BuiltInRule.GIT_FIREWALL: "work on your own branch with git status, diff, log, add, commit and restore; Podium "
    "merges and pushes",
    BuiltInRule.DESTRUCTIVE_COMMAND: "name single files, or leave them there and say so in your answer",
    BuiltInRule.OUTSIDE_WORKSPACE: "use a path inside the workspace",
    BuiltInRule.UNREACHABLE_HOST: "do without the network, or say in your answer which host you need",
    BuiltInRule.CALL_CHANGED: "look at what is there now, and make the call anew if it is still needed",
    BuiltInRule.UNDONE_ALREADY: "go on: it was reversed already",
    BuiltInRule.HOOK_DOOR: "write the call as the tool takes it",
    BuiltInRule.CLOSED_DOOR: "end your turn",
    "forbidden-zone": "do without it, or say in your answer why the work needs it",
    "read-only-zone": "read it, and make the change somewhere else",
    "approval": "do something else; the same call will not be asked about again",
    "mode": "go on without it, and say in your answer what you would do",
    "budget": "end your turn, and say in your answer what is left to do",
    "quota": "do something else first, or end your turn and say what is left to do",
}
"""By rule, or by what stands before its colon. Rules of a policy have what `_ASK_FOR_IT` says."""
_INVISIBLE = "the invisible character U+"
"""In the gate's reason: to split the command would not help."""


def denied(decision: Decision) -> str:
    """The reason of a denial and what to do in place of the call."""
    instead = _INSTEAD.get(decision.rule.partition(":")[0], _ASK_FOR_IT)
    if decision.rule == BuiltInRule.UNDECIDABLE_COMMAND and _INVISIBLE in decision.reason:
        instead = "make the same call without that character, or with its number"
    return (
        f"{decision.reason} (rule {decision.rule}). Nothing was done. Do not try to get round this. "
        f"Instead: {instead}."
    )


def waiting(approval_id: str, deadline: datetime) -> str:
    return (
        f"Waiting for approval {approval_id}; end your turn. Nothing was done yet. "
        f"A person has until {deadline.isoformat(timespec='minutes')} to answer, and you will be told "
        "what they said and what to do then."
    )


def rejected(approval: Approval) -> str:
    why = f": {approval.why}" if approval.why else " and gave no reason"
    return f"{approval.rejected_by or 'a person'} rejected this very call{why}"


def unreadable(call: Call, spec: ToolSpec | None) -> str:
    """Why a person cannot be asked about this call; empty when one can."""
    given = call.arguments.get(spec.command_argument or "", "") if spec else ""
    length = max(len(_text_of(given)), length_of(call.commands))
    if length <= LONGEST_COMMAND:
        return ""
    return (
        f"a person would have to be asked, and the command is {length} characters long where "
        f"{LONGEST_COMMAND} can be asked about; make it a script file, or split it"
    )


def length_of(commands: Sequence[Sequence[str]]) -> int:
    """How many characters the commands take."""
    return sum(len(word) + 1 for words in commands for word in words)


def summary_of(call: Call, spec: ToolSpec | None = None) -> str:
    """What a person reads before saying yes. Secrets stand as references in the arguments.

    Commands are shown whole, one per line; other long values by beginning, end and digest.
    """
    command = spec.command_argument if spec else None
    lines = [call.tool]
    for name, value in call.arguments.items():
        whole = name == command or call.tool in _READ_WHOLE
        longest = LONGEST_COMMAND if whole else _LONGEST_VALUE
        lines.append(f"  {name}: {_shown(_text_of(value), longest)}")
    lines += [f"  runs {_indented(plain_text(shlex.join(words)))}" for words in call.commands]
    verb = "with" if call.commands else "replaces"
    lines += [f"  {verb} {plain_text(file.path)} ({file.sha256[:12]})" for file in call.files]
    lines += [f"  {use.access}s {plain_text(use.real)}" for use in call.paths]
    if call.provenance:
        lines.append(f"  led to by: {plain_text(', '.join(call.provenance))}")
    return "\n".join(lines)


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(value: str, longest: int) -> str:
    text = plain_text(value)
    if len(text) <= longest:
        return _indented(text)
    half = longest // 2
    digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()[:12]
    left_out = f"[{len(text) - 2 * half} characters left out; sha256 of the whole {digest}]"
    return _indented(f"{text[:half]}…\n{left_out}\n…{text[-half:]}")


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
