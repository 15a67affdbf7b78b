"""Stand-in for the model: takes messages one after another, and answers them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from podium.testing.fake_tuis.answers import Happened, ScriptedAnswers, events_file, happened
from podium.testing.fake_tuis.messages import (
    TAG,
    RequestedBlock,
    ScreenBlock,
    fenced,
    is_nudge,
    plain_reply,
    requested_block,
    whole_prompt,
)


class Memory:
    """Events in the file next to the record."""

    def __init__(self, record: str) -> None:
        self._file = events_file(record)
        self._all = happened(record)

    def note(self, what: str, text: str = "", **facts: Any) -> None:
        """Record an event after it happened."""
        event = Happened(time.monotonic(), what, text, **facts)
        self._all.append(event)
        with open(self._file, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(event._asdict()) + "\n")

    def blocks(self) -> list[Happened]:
        """List the blocks that it has sent so far."""
        return [event for event in self._all if event.what == "said"]

    def has_died_over(self, id: str) -> bool:
        return any(event.what == "died" and event.text == id for event in self._all)

    def other_plans(self, task: str, id: str) -> int:
        """Count its plans for the task in turns of other ids."""
        ids = {event.text for event in self.blocks() if event.type == "plan"} - {id}
        return sum(block_id.startswith(f"{task}-") for block_id in ids)

    def asked(self) -> list[str]:
        """List the ids that it was asked for, each once, in order."""
        return list(dict.fromkeys(event.text for event in self._all if event.what == "asked"))

    def note_asked(self, id: str) -> None:
        if id not in self.asked():
            self.note("asked", id)


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
        answers: ScriptedAnswers,
        prompt: str,
        block: ScreenBlock,
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


def write_down(answers: ScriptedAnswers, role: str, text: str = "") -> None:
    if not answers.transcript:
        return
    with open(answers.transcript, "a") as file:  # noqa: PTH123 — pathlib loads slowly
        file.write(json.dumps({"role": role, "text": text}) + "\n")


Pauses = Iterator[float]

EXIT_CODE = 71
_GLANCE_SECONDS = 0.02


def plain(responder: Responder) -> Pauses:
    yield from responder.answer()


def unfenced(responder: Responder) -> Pauses:
    """Ignores the instruction to use a fence."""
    yield from responder.say(responder.block.lines())
    responder.note_block()


def wordy(responder: Responder) -> Pauses:
    yield from responder.say(["I have looked at everything. Here is my message:", ""])
    yield from responder.answer()
    yield from responder.say(["", "I hope that helps. I now wait for the next message."])


def status(responder: Responder) -> Pauses:
    for number in range(responder.answers.statuses):
        progress = responder.block._replace(type="status", body=f"step {number + 1} is done")
        yield from responder.say(progress.lines())
        yield responder.answers.think_seconds
    yield from responder.answer()


def blocker(responder: Responder) -> Pauses:
    blocked = responder.block._replace(to="USER", type="blocker", body="I need a password.")
    yield from responder.say(blocked.lines())


def partial(responder: Responder) -> Pauses:
    """Breaks off and begins anew."""
    yield from responder.say([*responder.block.lines()[:3], "", "No, let me begin again.", ""])
    yield from responder.answer()


def malformed(responder: Responder) -> Pauses:
    meta = f'{{"to": {responder.block.to}, "type": , "id": "{responder.block.id}"'
    yield from responder.say([f"[[{TAG} {meta}]]", "not this", f"[[/{TAG}]]", ""])
    yield from responder.answer()


def recap(responder: Responder) -> Pauses:
    """Repeats its earlier blocks, then sends the new one."""
    for old in responder.memory.blocks()[-3:]:
        yield from responder.say(ScreenBlock(old.to, old.type, old.text, old.body).lines())
    yield from responder.answer()


def quoting(responder: Responder) -> Pauses:
    yield from responder.say(["You said:", *responder.prompt.split("\n"), ""])
    yield from responder.answer()


def strays(responder: Responder) -> Pauses:
    """Blocks that nobody asked for: of other tasks, of none, and of the task's bare id."""
    block = responder.block
    task = block.id.rpartition("-")[0]
    for other in (f"{task}-00000000", f"OTHER-{block.id.rpartition('-')[2]}", task, ""):
        yield from responder.say(block._replace(id=other, body=f"stray {other}").lines())
    yield from responder.answer()


def twice(responder: Responder) -> Pauses:
    """Sends two valid blocks: the last one counts."""
    meant, responder.block = responder.block, responder.block._replace(body="a first thought")
    yield from responder.answer()
    responder.block = meant
    yield from responder.answer()


def crash(responder: Responder) -> Pauses:
    """Dies in the middle of the block, once."""
    if not responder.memory.has_died_over(responder.block.id):
        yield from responder.say(responder.block.lines()[:3])
        responder.memory.note("died", responder.block.id)
        os._exit(EXIT_CODE)
    yield from responder.answer()


def resize(responder: Responder) -> Pauses:
    """Stops in the middle until the terminal's size changes, and paints all of it anew."""
    yield from responder.say(responder.block.lines()[:3])
    size = os.get_terminal_size(0)
    responder.memory.note("half", responder.block.id)
    while os.get_terminal_size(0) == size:
        yield _GLANCE_SECONDS
    yield from responder.answer()


def forgets(responder: Responder) -> Pauses:
    """Ends its turn without the block. A reminder brings it."""
    yield from responder.say(["I think I am done here."])


def silent(responder: Responder) -> Pauses:
    """Takes the message, and rests."""
    yield responder.answers.think_seconds


def stuck(responder: Responder) -> Pauses:
    while True:
        yield _GLANCE_SECONDS


def asks(responder: Responder) -> Pauses:
    yield from responder.ask("May I use the network? (y/n)")
    yield from responder.answer()


WAYS: dict[str, Callable[[Responder], Pauses]] = {
    way.__name__: way
    for way in (
        plain, unfenced, wordy, status, blocker, partial, malformed, recap, quoting, strays, twice, crash, resize,
        forgets, silent, stuck, asks,
    )
}  # fmt: skip


_PLAIN_TEXT = ("", "")
"""Address and type of an answer in plain text."""


class FakeBrain:
    """Continues when it is due; the program draws and reads keys in between."""

    def __init__(self, face: Face, record: str, answers: ScriptedAnswers) -> None:
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
        block = ScreenBlock(to, kind, request.id, self._turn_of(request, self._answers.bodies))
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
