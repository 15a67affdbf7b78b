"""Gemini CLI's transcript of a conversation.

One record a line, each written when it is whole. What the model said comes a second time, with how its tools ended. That a
turn is over no record says; our own hook adds one that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from podium.agents.headless.claude.records import record_of
from podium.agents.headless.gemini.program import CONVERSATIONS
from podium.agents.headless.gemini.records import provider_message
from podium.agents.headless.gemini.tools import outcome
from podium.agents.outcome import plain_line
from podium.agents.private_files import is_really_in, real_paths
from podium.agents.tui.adapter import TranscriptEntry
from podium.agents.tui.jsonl_tail import JsonlTail, Record, opened
from podium.core.model import Json
from podium.ports import nameless_use

ENDED = "ended"
"""Value of `podium` in the record that the hook adds."""
CANCELLED = "Request cancelled."
_UNTRUSTED_TAGS = ("<untrusted_context>\n", "\n</untrusted_context>")
"""Tags that it puts around what tools printed."""
_FILES = "session-*.jsonl"
_MAX_FIRST_LINE = 100_000


class GeminiWritten:
    """Reads the newest conversation of a private home: a person may have begun another."""

    def __init__(self, home: Path) -> None:
        self._reading = _Reading()
        self._tail = JsonlTail(_Conversations(home), self._read, partial(_session_of, home))

    @property
    def session(self) -> str:
        return self._tail.session

    def folders(self) -> Sequence[Path]:
        return self._tail.folders()

    def end_position(self) -> Json:
        return self._tail.end_position()

    def since(self, position: Json) -> tuple[list[TranscriptEntry], Json]:
        """The mark has with it what was told last: the same record may come once more."""
        self._reading = _Reading.of(position)
        entries, at = self._tail.since(position)
        return entries, {**at, "reading": asdict(self._reading)} if isinstance(at, dict) else at

    def _read(self, record: Record) -> list[TranscriptEntry]:
        return self._reading.take(record)


@dataclass(frozen=True)
class _Conversations:
    """The conversations of a home. Resuming one, it begins another file of its name and leaves it at that."""

    home: Path

    def find(self) -> Path | None:
        """The one that was written to last; of several files of a name the largest has the conversation."""
        largest: dict[str, tuple[int, int, Path]] = {}
        for file in _files_in(self.home):
            facts = _facts_of(file)
            name = file.stem.rpartition("-")[2]
            if facts is not None and facts > largest.get(name, (-1, 0, file))[:2]:
                largest[name] = (*facts, file)
        newest = max(largest.values(), key=lambda candidate: candidate[1], default=None)
        return newest[2] if newest is not None else None

    def folders(self) -> Sequence[Path]:
        return (self.home / CONVERSATIONS,) if is_really_in(self.home, CONVERSATIONS) else ()


def _files_in(home: Path) -> list[Path]:
    return real_paths(home, CONVERSATIONS, _FILES)


def _facts_of(file: Path) -> tuple[int, int] | None:
    """Its size, and when it was written to last."""
    try:
        facts = file.lstat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns


@dataclass
class _Reading:
    """Progress of reading a conversation within a turn."""

    told: str = ""
    """The record whose words were told last."""
    fault: str = ""
    """Error message since the last prompt."""

    @classmethod
    def of(cls, position: Json) -> _Reading:
        """As a mark has it. One that has none begins."""
        value = position.get("reading") if isinstance(position, dict) else None
        fields = {**value} if isinstance(value, dict) else {}
        return cls(str(fields.get("told") or ""), str(fields.get("fault") or ""))

    def take(self, record: Record) -> list[TranscriptEntry]:
        kind, content = record.get("type"), record.get("content")
        if kind == "user":
            return self._take_prompt(record)
        if kind == "gemini":
            return self._take_text(record)
        if kind == "error":
            self.fault = plain_line(provider_message(str(content)))
        elif kind == "info" and content == CANCELLED:
            self.fault = CANCELLED
            return [self._end()]
        return [self._end()] if record.get("podium") == ENDED else []

    def _take_prompt(self, record: Record) -> list[TranscriptEntry]:
        """Return the prompt of a record. Results of tools are written down as a person's words, too."""
        content = record.get("displayContent") or record.get("content")
        text = _text_of(content)
        if not text:
            return []
        self.fault = ""
        return [TranscriptEntry("prompt", text)]

    def _take_text(self, record: Record) -> list[TranscriptEntry]:
        self.fault = ""
        name, text = str(record.get("id")), _text_of(record.get("content"))
        again, self.told = name == self.told, name
        entries = [TranscriptEntry("words", text)] if text and not again else []
        calls = record.get("toolCalls")
        used = (
            [_used(call) for call in calls if isinstance(call, dict)]
            if isinstance(calls, list)
            else []
        )
        return [*entries, *used]

    def _end(self) -> TranscriptEntry:
        return TranscriptEntry("end", self.fault, ok=not self.fault)


def has_begun(home: Path, session: str) -> bool:
    """Return whether there is something in a conversation that could be continued."""
    files = [file for file in _files_in(home) if _session_of(home, file) == session]
    return any(_has_messages(home, file) for file in files)


def _has_messages(home: Path, file: Path) -> bool:
    """Return whether messages are left: what failed it takes back by telling all anew, of which the first is its own."""
    count = 0
    with opened(home, file) as lines:
        for line in lines or ():
            record = record_of(line)
            if "$rewindTo" in record:
                return True
            messages = (
                record["$set"].get("messages") if isinstance(record.get("$set"), dict) else None
            )
            if isinstance(messages, list):
                count = len(messages) - 1
            count += record.get("type") in ("user", "gemini")
    return count > 0


def _used(call: Record) -> TranscriptEntry:
    tool, arguments = str(call.get("name")), call.get("args")
    status = "success" if call.get("status") == "success" else "error"
    output = _output_of(call.get("result"))
    ended = outcome(tool, {"status": status, "output": output, "error": {"message": output}})
    use = nameless_use(tool, arguments if isinstance(arguments, dict) else {})
    ok = ended is not None and ended.ok
    why = "it does not say how it ended" if ended is None else ended.error
    return TranscriptEntry("used", "" if ok else why, use=use, ok=ok)


def _output_of(result: Json) -> str:
    """Return what the model was told of a tool's end."""
    for part in result if isinstance(result, list) else []:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        output = (
            (response.get("output") or response.get("error"))
            if isinstance(response, dict)
            else None
        )
        if isinstance(output, str):
            return output.removeprefix(_UNTRUSTED_TAGS[0]).removesuffix(_UNTRUSTED_TAGS[1])
    return ""


def _text_of(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _session_of(home: Path, file: Path | None) -> str:
    """Its first record names it."""
    with opened(home, file) as lines:
        first = {} if lines is None else record_of(lines.readline(_MAX_FIRST_LINE))
    return str(first.get("sessionId") or "")
