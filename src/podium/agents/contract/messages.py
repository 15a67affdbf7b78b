"""Messages of a reply and their tags: `[[POLI:MSG {…}]] … [[/POLI:MSG]]`, one after another. Linear in the text.

What counts:
* A tag begins its line; a bullet, a border or an indent may stand before it. A closing tag is alone on its line.
* An opening tag cuts off the block before it. Only in fenced code of a block's text is it a quotation: that is read
  too, and the block around it goes on. Whose turn a message is of, its id says, fenced or not.
* Behind `>` nothing is a tag: that is how terminals echo prompts, and how people quote.
* A closing tag in fenced code of a block's text ends the block only if no other does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from podium.agents.contract.json_objects import leading_object
from podium.agents.contract.reply_schema import on_one_line
from podium.agents.contract.reply_text import (
    BLANKS,
    BORDERS,
    EDGE,
    LEAD,
    body_freed,
    bounded,
    cells,
    unwrapped,
    without_escapes,
)
from podium.core.errors import ReplyInvalid
from podium.core.model import Json, whole_text
from podium.core.turns import (
    SECTIONS,
    TAG,
    AwaitedMessage,
    IgnoredBlock,
    MessageBlock,
    ParsedBlocks,
)

MAX_HEADER = 4000
MAX_HEADER_LINES = 20
MAX_FIELD = 200
"""Characters of a header's `to`, `type` and `id`."""

_KEYS = ("to", "type", "id")
_NAME = re.escape(TAG)
# Without metadata on its line it is a tag only where the line ends, or where it is closed: else it is prose about tags.
_OPENS = re.compile(rf"{LEAD}\[\[{_NAME}(?P<said>[ \t]*(?:\{{.*|[│┃|]?[ \t]*$)|.*\]\].*)")
_CLOSES = re.compile(rf"{LEAD}\[\[/{_NAME}\]\]{EDGE}")
_HEADER_ENDS = re.compile(r"\s*\]\s*\]")
_CODE_BLOCK = re.compile(rf"[ \t{BORDERS}]{{0,200}}+(?P<run>`{{3,}}+|~{{3,}}+)(?P<info>[^`]*+)$")


def closes(line: str) -> bool:
    """Return whether the line is a closing tag, and nothing else."""
    return "[[/" in line and _CLOSES.match(line) is not None


def header_begun(line: str) -> Header | None:
    """The header that begins on this line. None: no opening tag begins it."""
    match = _OPENS.match(line) if "[[" in line else None
    return Header(match["lead"], line, match["said"]) if match else None


class Header:
    """An opening tag, which a terminal may have wrapped over several lines."""

    def __init__(self, lead: str, line: str, metadata: str) -> None:
        self.lead = lead
        self.opening_line = line
        self.width = 0
        """Columns of the frame around it; 0: there is none."""
        self.widest = 0
        """Columns of its widest line, without what stands before it."""
        self._metadata = metadata
        self._lines = 1
        self._look_at(line)

    def take(self, line: str) -> bool:
        """Go on with the next line. False: the tag cannot go on there."""
        added = line.strip(BLANKS + BORDERS)
        self._lines += 1
        if not added or self._lines > MAX_HEADER_LINES or len(self._metadata) > MAX_HEADER:
            return False
        self._metadata = f"{self._metadata.rstrip(BLANKS + BORDERS)}\n{added}"
        self._look_at(line)
        return True

    def read(self) -> Read | None:
        """Read it once it is complete. None: it is not. Raises `ValueError` that says what is wrong with it."""
        source = self._metadata.lstrip()
        if "]]" not in source.replace("\n", ""):
            return None
        metadata, end = leading_object(source[:MAX_HEADER])
        ends = _HEADER_ENDS.match(source, end)
        if ends is None:
            raise ValueError("it is not followed by ']]'")
        is_wrapped = "\n" in source[: ends.end()]
        to, type_, id_ = (_field(metadata, key, is_wrapped=is_wrapped) for key in _KEYS)
        return Read(
            to=to,
            type=type_,
            id=id_,
            rest=self._rest(source[ends.end() :]),
            is_wrapped=is_wrapped,
            row_width=self.widest if _is_cut_anywhere(source[: ends.end()]) else 0,
        )

    def _rest(self, written: str) -> str:
        if not written.strip(BLANKS + BORDERS):
            return ""
        return (written.rstrip(BLANKS + BORDERS) if self.width else written).removeprefix(" ")

    def _look_at(self, line: str) -> None:
        visible = line.strip()
        is_framed = self.lead.strip() in tuple(BORDERS) and visible.endswith(tuple(BORDERS))
        self.width = cells(visible) if is_framed else 0
        self.widest = max(self.widest, cells(line.rstrip()) - cells(self.lead))


@dataclass(frozen=True)
class Read:
    """A header that was read whole."""

    to: str
    type: str
    id: str
    rest: str
    """The rest of its line: the body's beginning."""
    is_wrapped: bool
    row_width: int
    """Width of the rows that it was broken into. 0: not known."""


def _is_cut_anywhere(written: str) -> bool:
    """Metadata without blanks is one word: broken rows of it are full."""
    return "\n" in written.strip() and " " not in written.strip()


def _field(metadata: dict[str, Json], key: str, *, is_wrapped: bool) -> str:
    value = metadata.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_FIELD:
        raise ValueError(f"its {key!r} is missing, or is not a text of 1 to {MAX_FIELD} characters")
    return value.replace("\n", "") if is_wrapped else value


class CodeBlockTracker:
    """Follows lines of Markdown: whether they stand in fenced code."""

    def __init__(self) -> None:
        self._run = ""

    @property
    def is_open(self) -> bool:
        return self._run != ""

    def take(self, line: str) -> None:
        match = _CODE_BLOCK.match(line) if "```" in line or "~~~" in line else None
        if match is None:
            return
        if not self._run:
            self._run = match["run"]
        elif match["run"].startswith(self._run) and not match["info"].strip(BLANKS + BORDERS):
            self._run = ""


_FRAME_CELLS = 4
"""A border and a blank on either side."""


@dataclass(frozen=True)
class Setting:
    """The surroundings of a block in its text."""

    lead: str
    """The characters before its opening tag."""
    frame_width: int
    """0: no frame is around it."""
    row_width: int
    """Width at which its rows are known to break. 0: not known."""
    columns: int
    """Of the screen it was read on. 0: it was not."""
    has_returns: bool
    """Its lines end with a carriage return."""


def body_of(lines: Sequence[str], setting: Setting) -> str:
    """The lines without what a terminal put around and between them."""
    if setting.has_returns:
        lines = [line.removesuffix("\r") for line in lines]
    if not setting.columns:
        return body_freed("\n".join(lines), setting.lead, is_framed=setting.frame_width > 0)
    visible = "\n".join(line.rstrip() for line in lines)
    freed = body_freed(visible, setting.lead, is_framed=setting.frame_width > 0)
    return "\n".join(unwrapped(freed.split("\n"), _row_width(setting)))


def _row_width(setting: Setting) -> int:
    if setting.frame_width:
        return setting.frame_width - _FRAME_CELLS
    return setting.row_width or setting.columns - cells(setting.lead)


def without_section(body: str, type_: str) -> str:
    """The body without the tags of its type's section, when they are around the whole of it."""
    name = next((section for kind, section in SECTIONS.items() if kind == type_), "")
    inner = body.strip().removeprefix(f"<{name}>").removesuffix(f"</{name}>")
    is_whole = name and len(body.strip()) == len(inner) + 2 * len(name) + 5
    if not is_whole or f"</{name}>" in inner or f"<{name}>" in inner:
        return body
    return inner.removeprefix("\n").removesuffix("\n")


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
                    self._give_up(
                        self._blocks.pop(), "the code block around it ends before it does"
                    )
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
            f"{awaited.sender} answered with {len(text):,} characters, and the last {MAX_ANSWER:,}, which are all that "
            "is read, hold no complete message; have it write long text to a file and name the file in its message"
        )
    return end
