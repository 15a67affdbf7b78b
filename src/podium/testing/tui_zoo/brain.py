"""Stand-in for the model: takes messages one after another, and answers them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from podium.testing.tui_zoo.answers import Answers
from podium.testing.tui_zoo.blocks import Block
from podium.testing.tui_zoo.memory import Memory
from podium.testing.tui_zoo.prompts import (
    RequestedBlock,
    is_nudge,
    plain_reply,
    requested_block,
    whole_prompt,
)
from podium.testing.tui_zoo.telling import Face, Responder, write_down
from podium.testing.tui_zoo.ways import WAYS, plain

_PLAIN_TEXT = ("", "")
"""Address and type of an answer in plain text."""


class Brain:
    """Continues when it is due; the program draws and reads keys in between."""

    def __init__(self, face: Face, record: str, answers: Answers) -> None:
        self._face = face
        self._memory = Memory(record)
        self._answers = answers
        self._inbox: list[str] = []
        self._answer: Iterator[float] | None = None
        self._due = 0.0
        self._record = record

    def state(self, name: str) -> None:
        """Record its true state."""
        self._memory.note("state", name)

    def hear(self, text: str, enters: int = 1) -> None:
        """Take a message. `enters`: number of presses of Enter for it."""
        self._memory.note("took", text[:200], enters=enters)
        self._inbox.append(text)

    def die(self) -> None:
        self._memory.note("died")

    def due_seconds(self) -> float | None:
        """Return the seconds until it continues. None: it is idle."""
        if self._answer is None:
            return 0.0 if self._inbox else None
        return max(0.0, self._due - time.monotonic())

    def go_on(self) -> None:
        if self._answer is None:
            self._answer = self._turn(self._inbox.pop(0))
        try:
            self._due = time.monotonic() + next(self._answer)
        except StopIteration:
            self._rest()

    def interrupt(self) -> bool:
        """Interrupt the current answer. False: there is none."""
        if self._answer is None:
            return False
        self._memory.note("interrupted")
        self._face.print_lines(["Interrupted by the user"])
        self._rest()
        return True

    def _rest(self) -> None:
        self._answer = None
        self._face.busy = False
        self._face.question = ""
        write_down(self._answers, "end")
        self._face.draw()
        self.state("ready")

    def _turn(self, text: str) -> Iterator[float]:
        self.state("busy")
        self._face.busy = True
        self._face.draw()
        write_down(self._answers, "user", text)
        prompt = whole_prompt(text)
        request = requested_block(prompt) or (self._last_requested() if is_nudge(prompt) else None)
        if request:
            self._memory.note_asked(request.id)
        yield self._answers.think_seconds
        if request is None:
            self._face.print_lines([plain_reply(prompt)])
            write_down(self._answers, "assistant", plain_reply(prompt))
            return
        way = plain if is_nudge(prompt) else WAYS[self._turn_of(request, self._answers.ways)]
        yield from way(self._responder(request, prompt))

    def _responder(self, request: RequestedBlock, prompt: str) -> Responder:
        to, kind = self._choice(request)
        block = Block(to, kind, request.id, self._turn_of(request, self._answers.bodies))
        return Responder(
            self._face, self._memory, self._answers, prompt, block, in_fence=request.fenced
        )

    def _choice(self, request: RequestedBlock) -> tuple[str, str]:
        """Choose a plan while it has some to make; then another form where one is offered, a report or plain text."""
        others = [form for form in request.forms if form[1] != "plan"]
        made = self._memory.other_plans(request.task, request.id)
        if others and made >= self._answers.plans:
            return others[0]
        if request.allows_text and made >= self._answers.plans:
            return _PLAIN_TEXT
        return next(
            (form for form in request.forms if form[1] == "plan"), (*others, _PLAIN_TEXT)[0]
        )

    def _turn_of(self, request: RequestedBlock, choices: tuple[str, ...]) -> str:
        return choices[self._memory.asked().index(request.id) % len(choices)]

    def _last_requested(self) -> RequestedBlock | None:
        """Find the block that the newest message with an id requests."""
        with open(self._record) as file:  # noqa: PTH123 — pathlib loads slowly
            messages = [json.loads(line) for line in file]
        return next(filter(None, map(requested_block, map(whole_prompt, reversed(messages)))), None)
