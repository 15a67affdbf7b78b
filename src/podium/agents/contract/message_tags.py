"""Parts of a message block: opening and closing tags, fences of quoted code, and the body as its agent meant it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium.agents.contract.reply_text import (
    BLANKS,
    BORDERS,
    EDGE,
    LEAD,
    body_freed,
    cells,
    unwrapped,
)
from podium.agents.contract.strict_json import leading_object
from podium.core.model import Json
from podium.core.turns import SECTIONS, TAG

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
            raise ValueError("']]' does not follow it")
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
        raise ValueError(f"its {key!r} is missing, or no text of 1 to {MAX_FIELD} characters")
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
