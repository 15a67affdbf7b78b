"""Text of tools made safe to show and store, and the messages of the tool door.

The order matters. Escapes go first, for a secret with an escape in its middle would pass the
redactor and be whole again afterwards; cutting comes last, for a cut through a secret would too.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache

from podium.core.decisions import Approval, BuiltInRule, Call, CallOutcome, Decision, ToolSpec
from podium.core.model import Json
from podium.core.protected_paths import GUARDED_TOOL

DEFAULT_RESULT_BYTES = 32_768
ERROR_BYTES = 2_000
_SMALLEST_SHARE = 80
"""Below this a cut text would be little but its own marker."""
_MARKER_SHARE = 60
"""Room for the brackets and the words that say what a list or an object had in all."""
_MAX_REMEMBERED_LENGTH = 80
_MAX_REMEMBERED = 500
_MAX_BYTES_OF_ONE = 6
"""Most bytes that one character takes in JSON: `\\u001b`."""

# Made once: `json.dumps` would make one for every value.
_ENCODER = json.JSONEncoder(ensure_ascii=False)

# Escape sequences (operating system commands, control sequences, two-byte ones), then every
# control character that is not a tab, a line feed or the first half of a Windows line end.
_ESCAPES = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]"
    r"|\r(?!\n)"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def plain_text(text: str) -> str:
    """The text without terminal escapes, control characters and halves of characters."""
    if text.isascii() and text.isprintable():
        return text
    return _ESCAPES.sub("", text).encode(errors="replace").decode()


class OutputCleaner:
    """Takes escapes and secrets out of texts. Short ones are remembered: the same come with every result."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._remembered = lru_cache(maxsize=_MAX_REMEMBERED)(self._cleaned)

    def text(self, text: str) -> str:
        short = len(text) <= _MAX_REMEMBERED_LENGTH
        return self._remembered(text) if short else self._cleaned(text)

    def _cleaned(self, text: str) -> str:
        return self._redact(plain_text(text))


def clean_outcome(outcome: CallOutcome, cleaner: OutputCleaner, limit_bytes: int) -> CallOutcome:
    """The outcome as an agent may see it and the store may keep it."""
    clean = cleaner.text
    return outcome.model_copy(
        update={
            "result": bound(_texts_of(outcome.result, clean), limit_bytes),
            "error": _cut(clean(outcome.error), ERROR_BYTES),
        }
    )


def bound(value: Json, limit_bytes: int) -> Json:
    """The value, its longest texts and lists cut until it fits. A cut says how long the whole was."""
    if _size(value) <= limit_bytes:
        return value
    if isinstance(value, str):
        return _cut(value, limit_bytes)
    if isinstance(value, dict):
        return _bound_dict(value, limit_bytes)
    if isinstance(value, list):
        return _bound_list(value, limit_bytes)
    return value


def _bound_dict(value: dict[str, Json], limit_bytes: int) -> dict[str, Json]:
    """Small fields stay whole; the large ones share what is left."""
    left = limit_bytes - _MARKER_SHARE
    fitted: dict[str, Json] = {}
    for waiting, name in enumerate(sorted(value, key=lambda name: _size(value[name]))):
        punctuated = _size(name) + len(": , ")
        share = left // (len(value) - waiting) - punctuated
        if share < min(_SMALLEST_SHARE, _size(value[name])):
            break
        fitted[name] = bound(value[name], share)
        left -= _size(fitted[name]) + punctuated
    fields = {name: fitted[name] for name in value if name in fitted}
    if len(fields) < len(value):
        fields["cut"] = f"{len(value)} fields in all"
    return fields


def _bound_list(value: list[Json], limit_bytes: int) -> list[Json]:
    left = limit_bytes - _MARKER_SHARE
    items: list[Json] = []
    for item in value:
        size = _size(item) + len(", ")
        if size > left:
            break
        items.append(item)
        left -= size
    if not items and value and left > _SMALLEST_SHARE:
        items.append(bound(value[0], left))
    items.append(f"[cut: {len(value)} items in all]")
    return items


def _cut(text: str, limit_bytes: int) -> str:
    """Two thirds from the beginning, one from the end: failures tend to be told last."""
    if len(text) <= limit_bytes // _MAX_BYTES_OF_ONE - len('""'):
        return text
    whole = len(text.encode())
    budget = limit_bytes
    result = text
    while _size(result) > limit_bytes and budget > 0:
        budget = budget * 3 // 4
        head, tail = budget * 2 // 3, budget // 3
        result = f"{text[:head]}\n[cut: {whole} bytes in all]\n{text[len(text) - tail :]}"
    return result


def _texts_of(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(str(key)): _texts_of(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_texts_of(item, change) for item in value]
    return value


def _size(value: Json) -> int:
    return len(_ENCODER.encode(value).encode())


CANCELLED = "cancelled before it ended; it may have done a part of its work"
"""Error of a call whose handler was stopped with its turn."""
MAX_COMMAND = 4_000
"""A person cannot be asked about a longer one."""
_MAX_VALUE = 400
_READ_WHOLE = ("ask_human", GUARDED_TOOL)
"""Tools whose argument is the question to the person."""


_ASK_FOR_IT = "continue with what is allowed, or say in your answer what you need and why"
_INSTEAD: dict[str, str] = {
    BuiltInRule.GATE_ERROR: "try it once in a simpler form, or say in your answer what you need",
    BuiltInRule.NO_RULE: "use a command that reads, tests or builds, or say in your answer which one you need and why",
    BuiltInRule.UNKNOWN_TOOL: "use one of the offered tools",
    BuiltInRule.UNKNOWN_MODE: "end your turn and say that a person has to correct the settings",
    BuiltInRule.UNDECIDABLE_COMMAND: "run plain commands, one per call, or put them into a script file in the workspace and run that",
    BuiltInRule.PRIVILEGE: "work without elevated privileges, or say in your answer what a person has to set up",
    BuiltInRule.SHELL_INDIRECTION: "run the programs directly, one per call",
    BuiltInRule.DANGEROUS_VARIABLE: "run it without the variable",
    BuiltInRule.GIT_FIREWALL: "work on your own branch with git status, diff, log, add, commit and restore; Podium merges and pushes",
    BuiltInRule.DESTRUCTIVE_COMMAND: "name individual files, or leave them in place and say so in your answer",
    BuiltInRule.OUTSIDE_WORKSPACE: "use a path inside the workspace",
    BuiltInRule.UNREACHABLE_HOST: "work without the network, or say in your answer which host you need",
    BuiltInRule.CALL_CHANGED: "check the current state, and request the call again if it is still needed",
    BuiltInRule.UNDONE_ALREADY: "continue: it has already been undone",
    BuiltInRule.HOOK_DOOR: "make the call with the arguments that the tool accepts",
    BuiltInRule.CLOSED_DOOR: "end your turn",
    "forbidden-zone": "do without it, or say in your answer why the work needs it",
    "read-only-zone": "only read there, and make the change somewhere else",
    "approval": "do something else; the same call will not be put to a person again",
    "mode": "continue without it, and say in your answer what you would do",
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
        instead = "make the same call without that character, or with its code point"
    return (
        f"{decision.reason} (rule {decision.rule}). Nothing was done. Do not try to work around this. "
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
    return f"{approval.rejected_by or 'a person'} rejected this call{why}"


def unreadable(call: Call, spec: ToolSpec | None) -> str:
    """Say why a person cannot be asked about this call; empty when one can."""
    command = call.arguments.get(spec.command_argument or "", "") if spec else ""
    length = max(len(_text_of(command)), length_of(call.commands))
    if length <= MAX_COMMAND:
        return ""
    return (
        f"a person has to approve the command, and it is {length} characters long; the limit is "
        f"{MAX_COMMAND}. Put it into a script file, or split it"
    )


def length_of(commands: Sequence[Sequence[str]]) -> int:
    """Return the length of the commands in characters."""
    return sum(len(argument) + 1 for command in commands for argument in command)


def summary_of(call: Call, spec: ToolSpec | None = None) -> str:
    """Summarize a call for the person who approves. Secrets stay references in the arguments.

    Commands are shown whole, one per line; other long values by beginning, end and digest.
    """
    command = spec.command_argument if spec else None
    lines = [call.tool]
    for name, value in call.arguments.items():
        whole = name == command or call.tool in _READ_WHOLE
        longest = MAX_COMMAND if whole else _MAX_VALUE
        lines.append(f"  {name}: {_excerpt(_text_of(value), longest)}")
    lines += [f"  runs {_indented(plain_text(shlex.join(argv)))}" for argv in call.commands]
    verb = "with" if call.commands else "replaces"
    lines += [f"  {verb} {plain_text(file.path)} ({file.sha256[:12]})" for file in call.files]
    lines += [f"  {use.access}s {plain_text(use.real)}" for use in call.paths]
    if call.provenance:
        lines.append(f"  led to by: {plain_text(', '.join(call.provenance))}")
    return "\n".join(lines)


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _excerpt(value: str, longest: int) -> str:
    text = plain_text(value)
    if len(text) <= longest:
        return _indented(text)
    half = longest // 2
    digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()[:12]
    left_out = f"[{len(text) - 2 * half} characters omitted; SHA-256 of the whole text: {digest}]"
    return _indented(f"{text[:half]}…\n{left_out}\n…{text[-half:]}")


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
