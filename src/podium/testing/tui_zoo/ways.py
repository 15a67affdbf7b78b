"""Ways to answer, each a generator of pauses in seconds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from podium.testing.tui_zoo.blocks import TAG, Block
from podium.testing.tui_zoo.telling import Responder

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
        yield from responder.say(Block(old.to, old.type, old.text, old.body).lines())
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
