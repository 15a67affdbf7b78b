"""What codex writes down of its conversation: one file a conversation, one record a line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.agents.headless.claude.records import record_of
from podium.agents.headless.codex.home import CONVERSATIONS
from podium.agents.tui.adapting import Said
from podium.agents.tui.jsonl_tail import JsonlTail, NewestFile, Record, opened
from podium.agents.unlinked import real_paths

_FILES = "*/*/*/rollout-*.jsonl"
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_BEGINNING_BYTES = 4_000_000
_USES = ("CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "ImageView")
"""What it does that passes its hook."""


@dataclass(frozen=True)
class _Main(NewestFile):
    """The file of the conversation that is held on the terminal. Agents inside the agent have files of their own."""

    _known: dict[Path, bool] = field(default_factory=dict)

    def find(self) -> Path | None:
        return next((file for file in self.newest_first() if self._is_main(file)), None)

    def _is_main(self, file: Path) -> bool:
        if file not in self._known and (about := _about(self.home, file)):
            within = isinstance(about.get("source"), dict)
            self._known[file] = not within and about.get("thread_source") in (None, "user")
        return self._known.get(file, False)


def conversation(home: Path) -> JsonlTail:
    """The conversation in this home that is held now. A person may have begun another one in it."""
    return JsonlTail(_Main(home, _FILES, CONVERSATIONS), read, session_of)


def session_of(file: Path | None) -> str:
    """The name of the conversation that is kept in this file. It is known when the first message was taken."""
    found = None if file is None else _SESSION.fullmatch(file.stem[-36:])
    return found[0] if found else ""


def has_conversation(home: Path, session: str) -> bool:
    """Whether it can be gone on with. Codex ends at once when it is told to resume what it does not find."""
    if not _SESSION.fullmatch(session):
        return False
    return bool(real_paths(home, CONVERSATIONS, f"*/*/*/rollout-*{session}.jsonl"))


def read(record: Record) -> list[Said]:
    """What one record says."""
    payload = _fields(record.get("payload"))
    kind = payload.get("type")
    # Not the model's messages themselves: when codex shortens its memory, what it is told of it looks like an answer.
    if record.get("type") != "event_msg":
        return []
    if kind == "item_completed":
        return _done(_fields(payload.get("item")))
    if kind == "task_complete":
        return [_end(payload.get("error"))]
    if kind == "turn_aborted":
        return [Said("end", f"it was {_word(payload.get('reason')) or 'interrupted'}", ok=False)]
    return []


def _end(error: Any) -> Said:
    if error is None:
        return Said("end")
    return Said("end", _word(_fields(error).get("message")) or "it gives no reason", ok=False)


def _done(item: dict[str, Any]) -> list[Said]:
    if item.get("type") == "UserMessage":
        return [Said("prompt", _text(item))]
    if item.get("type") == "AgentMessage":
        return [Said("words", _text(item))]
    if item.get("type") not in _USES:
        return []
    use, fault = _word(item.get("id")), _fault(item)
    return [Said("used", fault, use=name, ok=not fault) for name in (use, *_parts(use, item))]


def _fault(item: dict[str, Any]) -> str:
    """How it failed; empty when it did not."""
    status = item.get("status")
    if status in (None, "completed"):
        return ""
    code = item.get("exit_code")
    return f"exit code {code}" if isinstance(code, int) and code else _word(status) or "failed"


def _parts(use: str, item: dict[str, Any]) -> list[str]:
    """The names under which the hook asked for the changes of one patch: one that moves a file is three."""
    changes = _fields(item.get("changes"))
    moved = sum(bool(_fields(change).get("move_path")) for change in changes.values())
    return [f"{use}#{number}" for number in range(len(changes) + 2 * moved)]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    parts = [_fields(part).get("text") for part in content] if isinstance(content, list) else []
    return "".join(part for part in parts if isinstance(part, str))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _about(home: Path, file: Path) -> dict[str, Any]:
    """What its first record says of a conversation. Nothing while that is not there."""
    with opened(home, file) as content:
        line = b"" if content is None else content.readline(_LONGEST_BEGINNING_BYTES)
    record = record_of(line) if line.endswith(b"\n") else {}
    return _fields(record.get("payload")) if record.get("type") == "session_meta" else {}
