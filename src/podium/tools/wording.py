"""What agents and people are told at the door."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from datetime import datetime

from podium.domain.gating import Approval, Call, Decision, ToolSpec
from podium.domain.model import Json
from podium.domain.workspaces import GUARDED_TOOL
from podium.tools.bounding import plain_text

LONGEST_COMMAND = 4_000
"""A person cannot be asked about a longer one."""
_LONGEST_VALUE = 400
_READ_WHOLE = ("ask_human", GUARDED_TOOL)
"""What a person is asked here is the question itself."""


def denied(decision: Decision) -> str:
    return (
        f"{decision.reason} (rule {decision.rule}). Nothing was done. "
        "Do not try to get round this; go on with what is allowed, or say in your answer "
        "what you need and why."
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
