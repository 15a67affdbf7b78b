"""Transcripts that are kept in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from podium.domain.asking import Turn


@dataclass
class MemoryTranscript:
    """What was said in one turn."""

    path: str
    lines: list[str] = field(default_factory=list)

    def write(self, line: str) -> None:
        self.lines.append(line)


class MemoryTranscripts:
    """Remembers the turns and every line."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.kept: list[MemoryTranscript] = []

    @contextmanager
    def open(self, turn: Turn, agent: str) -> Iterator[MemoryTranscript]:
        self.turns.append(turn)
        self.kept.append(MemoryTranscript(f"memory:{agent}:{len(self.kept)}"))
        yield self.kept[-1]

    @property
    def text(self) -> str:
        """All that was said, in every turn."""
        return "\n".join(line for transcript in self.kept for line in transcript.lines)
