"""What opencode says, line by line: its own records, and those that Podium's plugin puts between them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from podium.agents.headless.ending import plain_words, reset_time
from podium.agents.headless.opencode.spending import Spending, Step
from podium.domain.errors import AgentRejected, AgentUnavailable, PodiumError, RateLimited
from podium.domain.events import ProgressKind
from podium.domain.gating import Usage

MOST_KEPT_OUT = 20

Record = dict[str, Any]
"""Written by the other side: nothing in it can be relied on."""

_LIMIT = re.compile(
    r"rate.?limit|too many requests|\b429\b|quota|usage limit|resource.?exhausted", re.IGNORECASE
)


@dataclass(frozen=True)
class Patience:
    """How much trying again is put up with."""

    retries: int
    longest_wait_seconds: float


@dataclass(frozen=True)
class Settled:
    """How a tool that opencode used itself has ended."""

    ref: str
    ok: bool
    result: dict[str, Any]
    error: str


@dataclass
class OpencodeStream:
    """Gathers what is said in one turn. Lines that are no record are passed over."""

    agent: str
    patience: Patience
    tell: Callable[[ProgressKind, str], None]
    now: Callable[[], datetime]
    session: str | None = None
    ready: bool = False
    """Whether the plugin is in place."""
    reason: str = ""
    """Why the last step ended. Empty: it has not."""
    failure: Record | None = None
    running: set[str] = field(default_factory=set)
    """Tools at work."""
    kept_out: list[str] = field(default_factory=list)
    """Code that it would have loaded, had it been let."""
    _texts: dict[str, list[str]] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    expect: Callable[[str], None] = lambda use: None
    """Told of a use that the plugin is about to ask for."""
    expect_no_more: Callable[[str], None] = lambda use: None
    started: bool = False
    """Whether the program was started: from then on something may have been used."""
    _last_message: str = ""
    _streamed: bool = False

    def hear(self, line: str) -> list[Settled]:
        """Take a line. Gives the calls that are settled by it; raises when it is not worth waiting on."""
        record = _record(line)
        relayed = record.get("podium")
        if isinstance(relayed, dict):
            return self._hear_plugin(relayed)
        if isinstance(record.get("sessionID"), str):
            self.session = record["sessionID"]
        self._hear_opencode(record)
        return []

    @property
    def text(self) -> str:
        """The words of its last message."""
        return "\n".join(self._texts.get(self._last_message, []))

    def usage(self, seconds: float) -> Usage:
        """What was used until now. Of an answer that is still coming nobody knows it."""
        if not self.started:
            return Usage(seconds=seconds)
        used = self.spending.used
        return used.plus(Usage(turns=0 if used.turns else 1, seconds=seconds))

    def _hear_opencode(self, record: Record) -> None:
        kind, part = record.get("type"), _dict(record.get("part"))
        if kind == "step_start":
            self._begin_step()
        elif kind == "step_finish":
            self.reason = str(part.get("reason", ""))
            self._last_message = str(part.get("messageID", ""))
            self._count(str(part.get("id", "")), part)
        elif kind == "text" and isinstance(part.get("text"), str):
            self._texts.setdefault(str(part.get("messageID", "")), []).append(part["text"])
            if not self._streamed:
                self.tell("text", part["text"] + "\n")
        elif kind == "error":
            self.failure = _dict(record.get("error"))

    def _begin_step(self) -> None:
        self.reason = ""
        if not self.ready:
            raise AgentRejected(
                f"agent {self.agent!r}: opencode did not load Podium's plugin, so it has no tools; "
                "see `opencode --print-logs`, and whether this version still has plugins"
            )

    def _hear_plugin(self, relayed: Record) -> list[Settled]:
        match relayed:
            case {"kind": "ready"}:
                self.ready = True
            case {"kind": "delta", "text": str(piece)}:
                self._streamed = True
                self.tell("text", piece)
            case {"kind": "kept_out", "path": str(path)} if len(self.kept_out) < MOST_KEPT_OUT:
                self.kept_out.append(plain_words(path))
            case {"kind": "usage", "part": str(part)}:
                self._count(part, relayed)
            case {"kind": "model", "model": str(model)} if not self.spending.model:
                self.spending.model = plain_words(model)
            case {"kind": "asking", "call": str(call)}:
                self.expect(call)
            case {"kind": "asked", "call": str(call)}:
                self.expect_no_more(call)
            case {"kind": "retry"}:
                self._retrying(relayed)
            case {"kind": "tool", "call": str(call), "status": str(status)}:
                return self._tool(call, status, relayed)
        return []

    def _tool(self, call: str, status: str, relayed: Record) -> list[Settled]:
        if status in ("pending", "running"):
            if call not in self.running:
                self.running.add(call)
                self.tell("tool", plain_words(str(relayed.get("tool", ""))))
            return []
        self.running.discard(call)
        if relayed.get("tool") == "bash" and status == "completed" and relayed.get("exit") is None:
            # It was ended from outside, or nobody knows how: then nobody says that it went well.
            return []
        error = str(relayed.get("error", "")) if status == "error" else ""
        ok = status == "completed" and relayed.get("exit") in (None, 0)
        if not ok and not error:
            error = f"exit code {relayed.get('exit')}"
        result = {"output": relayed.get("output", ""), "exit_code": relayed.get("exit")}
        return [Settled(ref, ok, result, error) for ref in _refs(call, relayed.get("files"))]

    def _retrying(self, status: Record) -> None:
        """Let it try again, or raise what the trouble is: by itself it would never stop."""
        words = str(status.get("message", ""))
        attempt, moment = status.get("attempt"), _moment(status.get("next"))
        tries = attempt if isinstance(attempt, int) else 1
        self.tell("retry", f"try {tries + 1}: {plain_words(words)}")
        wait = (moment - self.now()).total_seconds() if moment else 0.0
        if tries > self.patience.retries or wait > self.patience.longest_wait_seconds:
            raise self._out_of_patience(words, moment)

    def _out_of_patience(self, words: str, moment: datetime | None) -> PodiumError:
        said = plain_words(words)
        if _LIMIT.search(words[:20_000]):
            retry_at = reset_time(words, self.now()) or moment
            return RateLimited(f"agent {self.agent!r} has been asked too much: {said}", retry_at)
        return AgentUnavailable(f"agent {self.agent!r} cannot reach its model: {said}")

    def _count(self, part: str, told: Record) -> None:
        """What a step used. It comes twice, from opencode and from the plugin, by one name."""
        step = Step.told(_dict(told.get("tokens")), told.get("cost"))
        self.spending.add(part, step, told.get("reason"))


def _record(line: str) -> Record:
    if not line.startswith("{"):
        return {}
    try:
        return _dict(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _dict(found: object) -> Record:
    return found if isinstance(found, dict) else {}


def _moment(milliseconds: object) -> datetime | None:
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < 1e14:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _refs(call: str, files: object) -> list[str]:
    """The names it was asked for by: a patch was, for each of its files."""
    count = files if isinstance(files, int) and 1 <= files <= 10_000 else 1
    return [call if number == 0 else f"{call}#{number}" for number in range(count)]
