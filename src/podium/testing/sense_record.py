"""What a sense loop keeps, without files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from podium.domain.errors import LockHeld
from podium.domain.model import Json, Moment, json_of
from podium.domain.sensing import Bundle, SenseMemory, TickOutcome


class MemorySenseRecord:
    """Everything that was kept can be looked at. Nothing fails to be written but what a test says."""

    def __init__(self) -> None:
        self._held = False
        self._memory = json_of(SenseMemory())
        self._unwritten: SenseMemory | None = None
        self.fault = ""
        """Why memory cannot be written. Empty: it can."""
        self.bundle: Bundle | None = None
        self.plan: Json = None
        self.lines: list[str] = []
        """Of the main log, without their time."""
        self.parser_lines: list[str] = []
        self.outcomes: list[TickOutcome] = []

    @property
    def faults(self) -> tuple[str, ...]:
        return (self.fault,) if self.fault else ()

    @contextmanager
    def alone(self) -> Iterator[None]:
        if self._held:
            raise LockHeld("another loop ticks here; wait for it to end")
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self._unwritten = None

    def memory(self) -> SenseMemory:
        return self._unwritten or SenseMemory.model_validate_json(self._memory)

    def remember(self, memory: SenseMemory) -> bool:
        self._unwritten = memory if self.fault else None
        if not self.fault:
            self._memory = json_of(memory)
        return not self.fault

    def keep_bundle(self, bundle: Bundle) -> str:
        self.bundle = bundle
        return "context_bundle.json"

    def keep_plan(self, document: Json) -> str:
        self.plan = document
        return "plan.json"

    def log(self, text: str, *, at: Moment, kind: Literal["main", "parser"] = "main") -> None:
        (self.lines if kind == "main" else self.parser_lines).append(text)

    def tick_ended(self, outcome: TickOutcome) -> None:
        self.lines.append(outcome.summary())
        self.outcomes.append(outcome)
