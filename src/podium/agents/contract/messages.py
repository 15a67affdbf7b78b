"""All messages in what an agent said: `[[POLI:MSG {…}]] … [[/POLI:MSG]]`, one after another. Linear in the text.

What counts:
* A tag begins its line; a bullet, a border or an indent may stand before it. A closing tag is alone on its line.
* An opening tag cuts off the block before it. Only in fenced code of a block's text is it a quotation: that is read
  too, and the block around it goes on. Whose turn a message is of, its id says, fenced or not.
* Behind `>` nothing is a tag: that is how terminals echo prompts, and how people quote.
* A closing tag in fenced code of a block's text ends the block only if no other does.
"""

from __future__ import annotations

from podium.agents.contract.message_lines import Lines
from podium.agents.contract.message_reading import (
    MOST_BODY,
    MOST_IGNORED,
    MOST_MESSAGES,
    MessageReader,
)
from podium.domain.messages import Heard


def read_messages(text: str, *, columns: int = 0) -> Heard:
    """The messages of a whole text. With `columns`, of a screen that is so wide, where lines are broken to fit."""
    stream = MessageStream(columns=columns)
    return joined(stream.feed(text), stream.end())


def joined(*heard: Heard) -> Heard:
    """All of it, as far as it is kept: the last."""
    messages = [message for each in heard for message in each.messages]
    ignored = [one for each in heard for one in each.ignored]
    return Heard(messages=tuple(messages[-MOST_MESSAGES:]), ignored=tuple(ignored[-MOST_IGNORED:]))


class MessageStream:
    """Reads messages out of a text that comes in pieces, cut anywhere: each is told once, when it is whole."""

    def __init__(self, *, columns: int = 0) -> None:
        self._lines = Lines(MOST_BODY)
        self._reader = MessageReader(columns)

    def feed(self, chunk: str) -> Heard:
        """What this piece made whole. A last line counts when its break, or the end, is seen."""
        for line in self._lines.feed(chunk):
            self._reader.take(line)
        return self._reader.heard()

    def end(self) -> Heard:
        """What the end of the text makes whole. Blocks that it cuts off are told as ignored."""
        for line in self._lines.end():
            self._reader.take(line)
        self._reader.end()
        return self._reader.heard()
