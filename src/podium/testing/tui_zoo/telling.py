"""Responder of one answer: prints it to the terminal in pieces, and to the transcript whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Protocol

from podium.testing.tui_zoo.answers import Answers
from podium.testing.tui_zoo.blocks import Block, fenced
from podium.testing.tui_zoo.memory import Memory

_MAX_PIECES = 40
_GLANCE_SECONDS = 0.02


class Face(Protocol):
    """The terminal side of a program."""

    question: str
    """Stands in place of the composer until `y` is typed. Empty: none."""
    busy: bool

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        """Print lines permanently. `more`: they continue the last ones."""
        ...

    def draw(self) -> None:
        """Paint what changes anew."""
        ...


class Responder:
    """Actions available to a way of answering."""

    def __init__(
        self,
        face: Face,
        memory: Memory,
        answers: Answers,
        prompt: str,
        block: Block,
        in_fence: bool,
    ) -> None:
        self.memory = memory
        self.answers = answers
        self.prompt = prompt
        self.block = block
        self._face = face
        self._in_fence = in_fence

    def say(self, lines: list[str]) -> Iterator[float]:
        at_once = 1 + len(lines) // _MAX_PIECES
        for at in range(0, len(lines), at_once):
            self._face.print_lines(lines[at : at + at_once], more=at > 0)
            yield self.answers.line_seconds
        write_down(self.answers, "assistant", "\n".join(lines))

    def answer(self) -> Iterator[float]:
        """Print the requested block, or its body as plain text where none is requested."""
        if not self.block.type:
            yield from self.say(self.block.body.split("\n"))
            return
        lines = self.block.lines()
        yield from self.say(fenced(lines) if self._in_fence else lines)
        self.note_block()

    def note_block(self) -> None:
        block = self.block
        self.memory.note("said", block.id, to=block.to, type=block.type, body=block.body)

    def ask(self, question: str) -> Iterator[float]:
        """Wait for a person."""
        self._face.question = question
        self.memory.note("state", "asking")
        self._face.draw()
        while self._face.question:
            yield _GLANCE_SECONDS
        self.memory.note("state", "busy")


def write_down(answers: Answers, role: str, text: str = "") -> None:
    if not answers.transcript:
        return
    with open(answers.transcript, "a") as file:  # noqa: PTH123 — pathlib loads slowly
        file.write(json.dumps({"role": role, "text": text}) + "\n")
