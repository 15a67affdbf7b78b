"""Ways to answer, each a story: it yields how many seconds pass before it goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from podium.testing.tui_zoo.blocks import TAG, Block
from podium.testing.tui_zoo.telling import Telling

Story = Iterator[float]

EXIT_CODE = 71
_GLANCE_SECONDS = 0.02


def plain(tell: Telling) -> Story:
    yield from tell.answer()


def unfenced(tell: Telling) -> Story:
    """Whatever it was told of fences."""
    yield from tell.say(tell.block.lines())
    tell.note_said()


def wordy(tell: Telling) -> Story:
    yield from tell.say(["I have looked at everything. Here is my message:", ""])
    yield from tell.answer()
    yield from tell.say(["", "I hope that helps. I now wait for the next message."])


def status(tell: Telling) -> Story:
    for number in range(tell.answers.statuses):
        told = tell.block._replace(type="status", body=f"step {number + 1} is done")
        yield from tell.say(told.lines())
        yield tell.answers.think_seconds
    yield from tell.answer()


def blocker(tell: Telling) -> Story:
    blocked = tell.block._replace(to="USER", type="blocker", body="I need a password.")
    yield from tell.say(blocked.lines())


def partial(tell: Telling) -> Story:
    """Breaks off and begins anew."""
    yield from tell.say([*tell.block.lines()[:3], "", "No, let me begin again.", ""])
    yield from tell.answer()


def malformed(tell: Telling) -> Story:
    meta = f'{{"to": {tell.block.to}, "type": , "id": "{tell.block.id}"'
    yield from tell.say([f"[[{TAG} {meta}]]", "not this", f"[[/{TAG}]]", ""])
    yield from tell.answer()


def recap(tell: Telling) -> Story:
    """What it said before, word by word, then what is new."""
    for old in tell.memory.said()[-3:]:
        yield from tell.say(Block(old.to, old.type, old.text, old.body).lines())
    yield from tell.answer()


def quoting(tell: Telling) -> Story:
    yield from tell.say(["You said:", *tell.prompt.split("\n"), ""])
    yield from tell.answer()


def strays(tell: Telling) -> Story:
    """Blocks that nobody asked for: of other tasks, of none, and of the task's bare id."""
    block = tell.block
    task = block.id.rpartition("-")[0]
    for other in (f"{task}-00000000", f"OTHER-{block.id.rpartition('-')[2]}", task, ""):
        yield from tell.say(block._replace(id=other, body=f"stray {other}").lines())
    yield from tell.answer()


def twice(tell: Telling) -> Story:
    """Two that would do: the last is meant."""
    meant, tell.block = tell.block, tell.block._replace(body="a first thought")
    yield from tell.answer()
    tell.block = meant
    yield from tell.answer()


def crash(tell: Telling) -> Story:
    """Dies in the middle of the block, once."""
    if not tell.memory.has_died_over(tell.block.id):
        yield from tell.say(tell.block.lines()[:3])
        tell.memory.note("died", tell.block.id)
        os._exit(EXIT_CODE)
    yield from tell.answer()


def resize(tell: Telling) -> Story:
    """Stops in the middle until the terminal's size changes, and paints all of it anew."""
    yield from tell.say(tell.block.lines()[:3])
    size = os.get_terminal_size(0)
    tell.memory.note("half", tell.block.id)
    while os.get_terminal_size(0) == size:
        yield _GLANCE_SECONDS
    yield from tell.answer()


def forgets(tell: Telling) -> Story:
    """Ends its turn without the block. A reminder brings it."""
    yield from tell.say(["I think I am done here."])


def silent(tell: Telling) -> Story:
    """Takes the message, and rests."""
    yield tell.answers.think_seconds


def stuck(tell: Telling) -> Story:
    while True:
        yield _GLANCE_SECONDS


def asks(tell: Telling) -> Story:
    yield from tell.ask("May I use the network? (y/n)")
    yield from tell.answer()


WAYS: dict[str, Callable[[Telling], Story]] = {
    way.__name__: way
    for way in (
        plain, unfenced, wordy, status, blocker, partial, malformed, recap, quoting, strays, twice, crash, resize,
        forgets, silent, stuck, asks,
    )
}  # fmt: skip
