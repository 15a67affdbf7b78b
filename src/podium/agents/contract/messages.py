"""Messages in what an agent said: `[[POLI:MSG {…}]] … [[/POLI:MSG]]`, one after another. Linear in the text.

What counts:
* A tag begins its line; a bullet, a border or an indent may stand before it. A closing tag is alone on its line.
* An opening tag cuts off the block before it. Only in fenced code of a block's text is it a quotation: that is read
  too, and the block around it goes on. Whose turn a message is of, its id says, fenced or not.
* Behind `>` nothing is a tag: that is how terminals echo prompts, and how people quote.
* A closing tag in fenced code of a block's text ends the block only if no other does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from podium.agents.contract.message_tags import (
    CodeBlockTracker,
    Header,
    Read,
    Setting,
    body_of,
    closes,
    header_begun,
    without_section,
)
from podium.agents.contract.reply_schema import on_one_line
from podium.agents.contract.reply_text import bounded, without_escapes
from podium.core.errors import ReplyInvalid
from podium.core.model import whole_text
from podium.core.turns import AwaitedMessage, IgnoredBlock, MessageBlock, ParsedBlocks


class Lines:
    """Whole lines out of pieces that are cut anywhere. Of a line that is too long only that much is kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[str] = []
        self._characters = 0

    def feed(self, chunk: str) -> Iterator[str | None]:
        """The lines that this piece ends, without their breaks. None stands for one that is too long."""
        *ended, last = chunk.split("\n")
        for piece in ended:
            if self._characters:
                self._add(piece)
                yield self._line()
            else:
                yield piece if len(piece) <= self._most else None
        self._add(last)

    def end(self) -> Iterator[str | None]:
        """The last line, when no break ends it."""
        if self._characters:
            yield self._line()

    def _add(self, piece: str) -> None:
        self._characters += len(piece)
        if self._characters > self._most:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _line(self) -> str | None:
        line = None if self._characters > self._most else "".join(self._pieces)
        self._pieces.clear()
        self._characters = 0
        return line


MAX_MESSAGES = 1000
MAX_IGNORED = 100
"""Of one text. The last are kept."""

MAX_BODY = 1_000_000
"""Characters of a block, and of a line."""

MAX_DEEP = 3
"""Blocks that quote each other. Each has a text of its own, so that this bounds how often a line is copied."""

_MAX_OPENING = 200


@dataclass
class _Open:
    """A block whose end was not seen yet."""

    read: Read
    setting: Setting
    opening_line: str
    """Its opening line."""
    start: int
    """Of its body, among the lines that are kept."""
    began: int
    """Characters that were kept before its body."""
    mended: int
    """Lines that were mended before it."""
    code_block: CodeBlockTracker = field(default_factory=CodeBlockTracker)
    perhaps_end: int | None = None
    """Position of the first closing tag in fenced code of its text."""


class MessageReader:
    """Keeps the lines of open blocks, and tells the messages when they are whole."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._messages: deque[MessageBlock] = deque(maxlen=MAX_MESSAGES)
        self._ignored: deque[tuple[str, str]] = deque(maxlen=MAX_IGNORED)
        """Reasons, each with its opening line."""
        self._header: Header | None = None
        """An opening tag that is not whole yet."""
        self._problem = ""
        self._blocks: list[_Open] = []
        """Each quoted in the text of the one before."""
        self._open_lines: list[str] = []
        self._characters = 0
        self._mended = 0
        self._mended_before = 0

    def drain(self) -> ParsedBlocks:
        """Return the blocks found since the last call."""
        ignored = [_ignored(why, opening) for why, opening in self._ignored]
        blocks = ParsedBlocks(messages=tuple(self._messages), ignored=tuple(ignored))
        self._messages.clear()
        self._ignored.clear()
        return blocks

    def take(self, raw: str | None) -> None:
        """The next line, without its break. None: one that is too long to be kept."""
        if raw is None:
            self._give_up_all("a line of it is too long")
            return
        written = without_escapes(raw)
        line = written.removesuffix("\r")
        has_tag = "[[" in line
        begun = header_begun(line) if has_tag else None
        is_end = has_tag and begun is None and closes(line)
        if self._header and (begun or is_end or not self._header.take(line)):
            self._give_up_header()
        if begun:
            self._begin(begun)
        self._mended += written is not raw
        if is_end:
            self._close()
        self._keep(written)
        if self._header:
            self._try_header(self._header, has_returns=line is not written)

    def end(self) -> None:
        """No line follows."""
        self._give_up_all("the text ends before it does")

    def _begin(self, header: Header) -> None:
        while self._blocks and not self._is_quoting():
            self._give_up(self._blocks.pop(), "another block begins before it ends")
        self._header, self._problem = header, "its opening tag does not end"
        self._mended_before = self._mended

    def _is_quoting(self) -> bool:
        last = self._blocks[-1]
        is_shallow = len(self._blocks) < MAX_DEEP
        return is_shallow and last.code_block.is_open and last.perhaps_end is None

    def _try_header(self, header: Header, *, has_returns: bool) -> None:
        try:
            read = header.read()
        except ValueError as error:
            self._problem = f"its metadata cannot be read: {error}"
            return
        if read is None:
            return
        self._header = None
        setting = Setting(header.lead, header.width, read.row_width, self._columns, has_returns)
        begun = (len(self._open_lines), self._characters, self._mended_before)
        self._blocks.append(_Open(read, setting, header.opening_line, *begun))

    def _close(self) -> None:
        if not self._blocks:
            return
        block = self._blocks[-1]
        if not block.code_block.is_open:
            self._emit(self._blocks.pop(), len(self._open_lines))
        elif block.perhaps_end is None:
            block.perhaps_end = len(self._open_lines)

    def _keep(self, line: str) -> None:
        """The line belongs to the text of every block that is open."""
        if not self._blocks:
            self._open_lines.clear()
            return
        self._open_lines.append(line)
        self._characters += len(line) + 1
        for depth, block in enumerate(self._blocks, 1):
            was_open = block.code_block.is_open
            block.code_block.take(line)
            if was_open and not block.code_block.is_open:
                while len(self._blocks) > depth:
                    self._give_up(self._blocks.pop(), "the code that quotes it ends before it does")
        if self._characters - self._blocks[0].began > MAX_BODY:
            self._drop_outermost()

    def _drop_outermost(self) -> None:
        self._give_up(self._blocks.pop(0), "it is too long")
        past = self._blocks[0].start if self._blocks else len(self._open_lines)
        del self._open_lines[:past]
        for block in self._blocks:
            block.start -= past
            block.perhaps_end = None if block.perhaps_end is None else block.perhaps_end - past

    def _give_up_all(self, why: str) -> None:
        if self._header:
            self._give_up_header()
        while self._blocks:
            self._give_up(self._blocks.pop(), why)

    def _give_up_header(self) -> None:
        if self._header:
            self._ignored.append((self._problem, self._header.opening_line))
        self._header = None

    def _give_up(self, block: _Open, why: str) -> None:
        if block.perhaps_end is None:
            self._ignored.append((why, block.opening_line))
        else:
            self._emit(block, block.perhaps_end)

    def _emit(self, block: _Open, end: int) -> None:
        read = block.read
        lines = [read.rest] * (read.rest != "") + self._open_lines[block.start : end]
        written = "\n".join(lines)
        freed = body_of(lines, block.setting)
        body = whole_text(without_section(freed, read.type))
        mended = read.is_wrapped or freed != written or self._mended != block.mended
        self._messages.append(
            MessageBlock(to=read.to, type=read.type, id=read.id, body=body, mended=mended)
        )


def _ignored(why: str, opening: str) -> IgnoredBlock:
    opening = whole_text(on_one_line(opening.strip(), _MAX_OPENING))
    return IgnoredBlock(why=whole_text(on_one_line(why)), shown=opening)


def read_messages(text: str, *, columns: int = 0) -> ParsedBlocks:
    """The messages of a whole text. With `columns`, of a screen that is so wide, where lines are broken to fit."""
    stream = MessageStream(columns=columns)
    return joined(stream.feed(text), stream.end())


def joined(*parts: ParsedBlocks) -> ParsedBlocks:
    """All of it, as far as it is kept: the last."""
    messages = [message for part in parts for message in part.messages]
    ignored = [one for part in parts for one in part.ignored]
    return ParsedBlocks(
        messages=tuple(messages[-MAX_MESSAGES:]), ignored=tuple(ignored[-MAX_IGNORED:])
    )


class MessageStream:
    """Reads messages out of a text that comes in pieces, cut anywhere: each is told once, when it is whole."""

    def __init__(self, *, columns: int = 0) -> None:
        self._lines = Lines(MAX_BODY)
        self._reader = MessageReader(columns)

    def feed(self, chunk: str) -> ParsedBlocks:
        """Return the blocks that this piece completes. A last line counts when its break, or the end, is seen."""
        for line in self._lines.feed(chunk):
            self._reader.take(line)
        return self._reader.drain()

    def end(self) -> ParsedBlocks:
        """Return the blocks that the end of the text completes. Blocks that it cuts off count as ignored."""
        for line in self._lines.end():
            self._reader.take(line)
        self._reader.end()
        return self._reader.drain()


MAX_ANSWER = MAX_BODY + 200_000
"""Characters that are kept: the largest message with words around it, and what one record holds."""


def bounded_answer(text: str, awaited: AwaitedMessage) -> str:
    """At most so many characters, with the awaited message whole. Words alone are cut in their middle.

    Raises `ReplyInvalid` where there is no room for the message.
    """
    if len(text) <= MAX_ANSWER:
        return text
    meant = awaited.find_in(read_messages(text))
    if meant is None and awaited.or_words and awaited.id not in text:
        return bounded(text)
    end = text[-MAX_ANSWER:].partition("\n")[2]
    # What is cut at its beginning may quote another that is whole.
    if meant is None or awaited.find_in(read_messages(end)) != meant:
        raise ReplyInvalid(
            f"{awaited.sender} answered with {len(text):,} characters, and no whole message is in the last {MAX_ANSWER:,}, "
            "which is all that is read; have it write what is long into a file and name that in its message"
        )
    return end
