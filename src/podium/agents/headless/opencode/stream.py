"""opencode's output, line by line, with the plugin's records between, and what the turn has used."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from podium.agents.outcome import cost_of, plain_line, reset_time
from podium.agents.program import record_of
from podium.core.decisions import Usage
from podium.core.errors import (
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    PodiumError,
    RateLimited,
)
from podium.core.events import ProgressKind
from podium.core.turns import TurnLimits

GOES_ON = "tool-calls"
"""Reason of a step that another one follows."""


@dataclass(frozen=True)
class StreamStep:
    """One exchange with the model, as opencode counts it."""

    read: int
    """Cached ones included."""
    written: int
    cached: int
    usd: float

    @classmethod
    def of(cls, tokens: dict[str, Any], cost: object) -> StreamStep:
        value = tokens.get("cache")
        cache: dict[str, Any] = value if isinstance(value, dict) else {}
        cached = _whole(cache.get("read"))
        return cls(
            read=_whole(tokens.get("input")) + cached + _whole(cache.get("write")),
            written=_whole(tokens.get("output")) + _whole(tokens.get("reasoning")),
            cached=cached,
            usd=float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e9 else 0.0,
        )

    def usage(self, model: str) -> Usage:
        """With what the tokens cost, where opencode does not say it."""
        usd: float | None = self.usd
        if not usd and self.read + self.written:
            usd = cost_of(
                model,
                input_tokens=self.read,
                output_tokens=self.written,
                cached_tokens=self.cached,
            )
        return Usage(
            input_tokens=self.read,
            output_tokens=self.written,
            usd=usd or 0.0,
            turns=1,
            complete=usd is not None,
        )


class Spending:
    """Adds up the steps of one turn, those of inner agents among them."""

    def __init__(self, agent: str = "", model: str = "", limits: TurnLimits | None = None) -> None:
        """`model` is what it was told to think with; empty where that is its own choice."""
        self._agent = agent
        self._limits = limits or TurnLimits()
        self._steps: dict[str, StreamStep] = {}
        self.model = model

    @property
    def used(self) -> Usage:
        total, model = Usage(), self.model.rpartition("/")[2]
        for step in self._steps.values():
            total = total.plus(step.usage(model))
        return total

    @property
    def warnings(self) -> tuple[str, ...]:
        if self._limits.usd is None or self.used.complete:
            return ()
        return (
            f"the price of model {self.model!r} is unknown, so the limit of "
            f"{self._limits.usd:g} USD was not enforced",
        )

    def add(self, part: str, step: StreamStep, reason: object) -> None:
        """Count a step by its name. Raises `BudgetSpent` when it would go on beyond a limit."""
        self._steps[part] = step
        if reason == GOES_ON:
            self._must_be_within()

    def _must_be_within(self) -> None:
        used, limits = self.used, self._limits
        reached = [
            ("tokens", used.input_tokens + used.output_tokens, limits.tokens),
            ("usd", used.usd, limits.usd),
            ("turns", used.turns, limits.turns),
        ]
        for measure, amount, limit in reached:
            if limit is not None and amount >= limit:
                raise BudgetSpent(
                    f"agent {self._agent!r} has used {amount:.12g} of {limit:.12g} {measure} allowed "
                    "in one turn and is not done; raise the limit of its role, or ask for less",
                    scope="step",
                    measure=measure,
                    used=amount,
                    limit=limit,
                )


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e15 else 0


MAX_BLOCKED_CODE = 20

Record = dict[str, Any]
"""Written by the other side: nothing in it can be relied on."""

_LIMIT = re.compile(
    r"rate.?limit|too many requests|\b429\b|quota|usage limit|resource.?exhausted", re.IGNORECASE
)


@dataclass(frozen=True)
class Patience:
    """Limits for opencode's own retries."""

    retries: int
    longest_wait_seconds: float


@dataclass(frozen=True)
class SettledPart:
    """The end of a tool that opencode used itself."""

    ref: str
    ok: bool
    result: dict[str, Any]
    error: str


@dataclass
class OpencodeStream:
    """Gathers what is said in one turn. Lines that are no record are passed over."""

    agent: str
    patience: Patience
    notify: Callable[[ProgressKind, str], None]
    now: Callable[[], datetime]
    session: str | None = None
    ready: bool = False
    """True once the plugin is in place."""
    reason: str = ""
    """Reason for the end of the last step. Empty: it has not ended."""
    failure: Record | None = None
    running: set[str] = field(default_factory=set)
    """Tools at work."""
    blocked_code: list[str] = field(default_factory=list)
    """Code that it would have loaded, had it been let."""
    _texts: dict[str, list[str]] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    expect: Callable[[str], None] = lambda use: None
    """Told of a use that the plugin is about to ask for."""
    expect_no_more: Callable[[str], None] = lambda use: None
    started: bool = False
    """True once the program was started: from then on something may have been used."""
    _last_message: str = ""
    _streamed: bool = False

    def hear(self, line: str) -> list[SettledPart]:
        """Take a line. Gives the calls that are settled by it; raises when it is not worth waiting on."""
        record = record_of(line)
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
        """Return what was used until now. Of an answer that is still coming nobody knows it."""
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
                self.notify("text", part["text"] + "\n")
        elif kind == "error":
            self.failure = _dict(record.get("error"))

    def _begin_step(self) -> None:
        self.reason = ""
        if not self.ready:
            raise AgentRejected(
                f"agent {self.agent!r}: opencode did not load Podium's plugin, so it has no tools; "
                "check `opencode --print-logs`, and whether this version still supports plugins"
            )

    def _hear_plugin(self, relayed: Record) -> list[SettledPart]:
        match relayed:
            case {"kind": "ready"}:
                self.ready = True
            case {"kind": "delta", "text": str(piece)}:
                self._streamed = True
                self.notify("text", piece)
            case {"kind": "kept_out", "path": str(path)} if (
                len(self.blocked_code) < MAX_BLOCKED_CODE
            ):
                self.blocked_code.append(plain_line(path))
            case {"kind": "usage", "part": str(part)}:
                self._count(part, relayed)
            case {"kind": "model", "model": str(model)} if not self.spending.model:
                self.spending.model = plain_line(model)
            case {"kind": "asking", "call": str(call)}:
                self.expect(call)
            case {"kind": "asked", "call": str(call)}:
                self.expect_no_more(call)
            case {"kind": "retry"}:
                self._retrying(relayed)
            case {"kind": "tool", "call": str(call), "status": str(status)}:
                return self._tool(call, status, relayed)
        return []

    def _tool(self, call: str, status: str, relayed: Record) -> list[SettledPart]:
        if status in ("pending", "running"):
            if call not in self.running:
                self.running.add(call)
                self.notify("tool", plain_line(str(relayed.get("tool", ""))))
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
        return [SettledPart(ref, ok, result, error) for ref in _refs(call, relayed.get("files"))]

    def _retrying(self, status: Record) -> None:
        """Let it try again, or raise what the trouble is: by itself it would never stop."""
        message = str(status.get("message", ""))
        attempt, next_try = status.get("attempt"), _timestamp(status.get("next"))
        tries = attempt if isinstance(attempt, int) else 1
        self.notify("retry", f"try {tries + 1}: {plain_line(message)}")
        wait = (next_try - self.now()).total_seconds() if next_try else 0.0
        if tries > self.patience.retries or wait > self.patience.longest_wait_seconds:
            raise self._out_of_patience(message, next_try)

    def _out_of_patience(self, message: str, next_try: datetime | None) -> PodiumError:
        reason = plain_line(message)
        if _LIMIT.search(message[:20_000]):
            retry_at = reset_time(message, self.now()) or next_try
            return RateLimited(f"agent {self.agent!r} is rate-limited: {reason}", retry_at)
        return AgentUnavailable(f"agent {self.agent!r} cannot reach its model: {reason}")

    def _count(self, part: str, report: Record) -> None:
        """Count what a step used. It comes twice, from opencode and from the plugin, by one name."""
        step = StreamStep.of(_dict(report.get("tokens")), report.get("cost"))
        self.spending.add(part, step, report.get("reason"))


def _dict(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def _timestamp(milliseconds: object) -> datetime | None:
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < 1e14:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _refs(call: str, files: object) -> list[str]:
    """The names it was asked for by: a patch was, for each of its files."""
    count = files if isinstance(files, int) and 1 <= files <= 10_000 else 1
    return [call if number == 0 else f"{call}#{number}" for number in range(count)]
