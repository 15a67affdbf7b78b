"""Habits in a file of the project's state: what was asked, chosen and approved."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from podium.core.model import json_of
from podium.jobs.operator.models import Habit, OperatorAnswer
from podium.ports import Clock

MAX_HABITS = 2_000
"""Habits kept; beyond them the older half is dropped."""
MAX_LENGTH = 300
_ALIKE = 0.5
_TOKEN = re.compile(r"[a-z]{2,}")


class FileHabits:
    """Habits in a file. With an unreadable file the operator continues without them."""

    def __init__(self, file: Path, clock: Clock, redact: Callable[[str], str]) -> None:
        self._file = file
        self._clock = clock
        self._redact = redact
        self._stamp: tuple[int, int] | None = None
        self._habits: list[tuple[str, frozenset[str], tuple[str, ...]]] = []

    def all(self) -> list[Habit]:
        """Read every habit, oldest first. Invalid lines are skipped."""
        habits = []
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        for line in lines:
            with suppress(ValidationError):
                habits.append(Habit.model_validate_json(line))
        return habits

    def suggestions(self, message: str, *, pack: str) -> Sequence[str]:
        """List the tools that similar messages led to, with their counts."""
        tokens = _tokens(message)
        likely: Counter[tuple[str, ...]] = Counter()
        for habit_pack, habit_tokens, tools in self._remembered():
            if habit_pack == pack and tools and _alikeness(tokens, habit_tokens) >= _ALIKE:
                likely[tools] += 1
        return [
            f"{' → '.join(tools)} (asked {times} {'time' if times == 1 else 'times'} before)"
            for tools, times in likely.most_common(3)
        ]

    def _remembered(self) -> list[tuple[str, frozenset[str], tuple[str, ...]]]:
        """Pack, words and tools of every habit, read again only when the file has changed."""
        try:
            now = self._file.stat()
        except OSError:
            return []
        stamp = (now.st_mtime_ns, now.st_size)
        if stamp != self._stamp:
            habits = self.all()
            self._habits = [(habit.pack, _tokens(habit.said), habit.tools) for habit in habits]
            self._stamp = stamp
        return self._habits

    def remember(self, answer: OperatorAnswer) -> None:
        """Keep what was asked, when it was understood."""
        if answer.plan is None or not answer.plan.steps:
            return
        habit = Habit(
            at=self._clock.now(),
            pack=answer.plan.pack,
            said=self._redact(" ".join(answer.message.split()))[:MAX_LENGTH],
            tools=answer.plan.tool_sequence,
            status=answer.status,
            approved_by=tuple(grant.by for grant in answer.grants),
        )
        with suppress(OSError):
            self._append(json_of(habit))

    def forget(self, text: str = "") -> int:
        """Erase the habits that contain the text, or all of them, and return their number."""
        habits = self.all()
        remaining = [
            habit for habit in habits if text and text.casefold() not in habit.said.casefold()
        ]
        if len(remaining) < len(habits):
            self._rewrite(remaining)
        return len(habits) - len(remaining)

    def _append(self, line: str) -> None:
        if not self._file.parent.parent.is_dir():
            return  # a project without state: looking makes none
        self._file.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)
        self._bound()

    def _bound(self) -> None:
        if self._file.stat().st_size > MAX_HABITS * (MAX_LENGTH + 200):
            self._rewrite(self.all()[-MAX_HABITS // 2 :])

    def _rewrite(self, habits: Sequence[Habit]) -> None:
        fresh = self._file.with_suffix(".new")
        text = "".join(f"{json_of(habit)}\n" for habit in habits)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(self._file)


def _tokens(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(text.casefold()))


def _alikeness(one: frozenset[str], other: frozenset[str]) -> float:
    union = one | other
    return len(one & other) / len(union) if union else 0.0
