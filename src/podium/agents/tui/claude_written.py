"""What Claude Code writes down of a conversation, record by record."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from pathlib import Path

from podium.agents.headless.claude.agent import CONVERSATIONS
from podium.agents.headless.claude.records import MADE_UP_MODEL, tool_results
from podium.agents.tui.adapting import Said
from podium.agents.tui.jsonl_tail import JsonlTail, NewestFile, Record
from podium.domain.model import Json

_INTERRUPTED = "[Request interrupted by user"


def written_of(home: Path, session: str) -> JsonlTail:
    """The conversation of this name. Its file lies in a folder that is named like the workspace, more or less."""
    file = NewestFile(home, f"*/{glob.escape(session)}.jsonl", CONVERSATIONS)
    return JsonlTail(file, said_in, lambda _: session)


def has_begun(home: Path, session: str) -> bool:
    """Whether there is anything to go on with: without a message it cannot be resumed."""
    said, _ = written_of(home, session).since({})
    return any(each.kind == "prompt" for each in said)


def said_in(record: Record) -> list[Said]:
    """What a record says. Those of subagents say nothing."""
    if record.get("isSidechain") is True:
        return []
    kind = record.get("type")
    if kind == "user":
        return list(_of_user(record))
    if kind == "assistant":
        return list(_of_model(record))
    # Comes a little after the last words. Where the model ended without any there is no other sign.
    return [Said("end")] if (kind, record.get("subtype")) == ("system", "turn_duration") else []


def _of_user(record: Record) -> Iterator[Said]:
    for result in tool_results(record):
        yield Said("used", result.text, result.use, result.ok)
    text = "\n".join(_texts(record))
    if record.get("promptSource"):
        yield Said("prompt", text)
    elif text.startswith(_INTERRUPTED):
        yield Said("end", text.strip("[]"), ok=False)


def _of_model(record: Record) -> Iterator[Said]:
    message, texts = _message(record), list(_texts(record))
    if record.get("isApiErrorMessage") is True:
        yield Said("end", "\n".join(texts), ok=False)
    elif message.get("model") != MADE_UP_MODEL:
        yield from (Said("words", text) for text in texts)
        # What it thought has a record of its own, with the same reason, and comes before its words.
        if texts and message.get("stop_reason") == "end_turn":
            yield Said("end")


def _texts(record: Record) -> Iterator[str]:
    content = _message(record).get("content")
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str):
            yield text


def _message(record: Record) -> Mapping[str, Json]:
    message = record.get("message")
    return message if isinstance(message, dict) else {}
