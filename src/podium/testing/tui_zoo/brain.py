"""What stands in for the model: hears messages, one after another, and tells its answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from podium.testing.tui_zoo.answers import Answers
from podium.testing.tui_zoo.blocks import Block
from podium.testing.tui_zoo.memory import Memory
from podium.testing.tui_zoo.prompts import Wanted, is_nudge, plain_reply, wanted_by, whole_prompt
from podium.testing.tui_zoo.telling import Face, Telling, write_down
from podium.testing.tui_zoo.ways import WAYS, plain

_WORDS = ("", "")
"""In place of a block's address and type."""


class Brain:
    """Goes on when it is due; the program draws and reads keys in between."""

    def __init__(self, face: Face, record: str, answers: Answers) -> None:
        self._face = face
        self._memory = Memory(record)
        self._answers = answers
        self._heard: list[str] = []
        self._story: Iterator[float] | None = None
        self._due = 0.0
        self._record = record

    def state(self, name: str) -> None:
        """Tell the truth about itself."""
        self._memory.note("state", name)

    def hear(self, text: str, enters: int = 1) -> None:
        """A message came. `enters`: how often Enter was pressed for it."""
        self._memory.note("took", text[:200], enters=enters)
        self._heard.append(text)

    def die(self) -> None:
        self._memory.note("died")

    def due_seconds(self) -> float | None:
        """Until it goes on. None: it rests."""
        if self._story is None:
            return 0.0 if self._heard else None
        return max(0.0, self._due - time.monotonic())

    def go_on(self) -> None:
        if self._story is None:
            self._story = self._turn(self._heard.pop(0))
        try:
            self._due = time.monotonic() + next(self._story)
        except StopIteration:
            self._rest()

    def interrupt(self) -> bool:
        """Give up what it is at. False: it was at nothing."""
        if self._story is None:
            return False
        self._memory.note("interrupted")
        self._face.print_lines(["Interrupted by the user"])
        self._rest()
        return True

    def _rest(self) -> None:
        self._story = None
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
        wanted = wanted_by(prompt) or (self._last_wanted() if is_nudge(prompt) else None)
        if wanted:
            self._memory.note_asked(wanted.id)
        yield self._answers.think_seconds
        if wanted is None:
            self._face.print_lines([plain_reply(prompt)])
            write_down(self._answers, "assistant", plain_reply(prompt))
            return
        way = plain if is_nudge(prompt) else WAYS[self._turn_of(wanted, self._answers.ways)]
        yield from way(self._telling(wanted, prompt))

    def _telling(self, wanted: Wanted, prompt: str) -> Telling:
        to, kind = self._choice(wanted)
        block = Block(to, kind, wanted.id, self._turn_of(wanted, self._answers.bodies))
        return Telling(
            self._face, self._memory, self._answers, prompt, block, in_fence=wanted.fenced
        )

    def _choice(self, wanted: Wanted) -> tuple[str, str]:
        """Plans while it has some to make; then something else where that is offered, a report or words."""
        others = [form for form in wanted.forms if form[1] != "plan"]
        made = self._memory.other_plans(wanted.task, wanted.id)
        if others and made >= self._answers.plans:
            return others[0]
        if wanted.words_will_do and made >= self._answers.plans:
            return _WORDS
        return next((form for form in wanted.forms if form[1] == "plan"), (*others, _WORDS)[0])

    def _turn_of(self, wanted: Wanted, each: tuple[str, ...]) -> str:
        return each[self._memory.asked().index(wanted.id) % len(each)]

    def _last_wanted(self) -> Wanted | None:
        """What the newest message that names an id wants."""
        with open(self._record) as file:  # noqa: PTH123 — pathlib loads slowly
            heard = [json.loads(line) for line in file]
        return next(filter(None, map(wanted_by, map(whole_prompt, reversed(heard)))), None)
