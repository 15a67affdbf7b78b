"""Single lines of a text with blocks: opening and closing tags, and the fences of quoted code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from podium.agents.contract.framing import BLANKS, BORDERS, EDGE, LEAD
from podium.agents.contract.strict import leading_object
from podium.agents.contract.unwrapping import cells
from podium.domain.messages import TAG
from podium.domain.model import Json

MOST_HEADER = 4000
MOST_HEADER_LINES = 20
MOST_WORD = 200
"""Characters of a header's `to`, `type` and `id`."""

_KEYS = ("to", "type", "id")
_NAME = re.escape(TAG)
# Without metadata on its line it is a tag only where the line ends, or where it is closed: else it is prose about tags.
_OPENS = re.compile(rf"{LEAD}\[\[{_NAME}(?P<said>[ \t]*(?:\{{.*|[│┃|]?[ \t]*$)|.*\]\].*)")
_CLOSES = re.compile(rf"{LEAD}\[\[/{_NAME}\]\]{EDGE}")
_HEADER_ENDS = re.compile(r"\s*\]\s*\]")
_FENCE = re.compile(rf"[ \t{BORDERS}]{{0,200}}+(?P<run>`{{3,}}+|~{{3,}}+)(?P<info>[^`]*+)$")


def closes(line: str) -> bool:
    """Whether a closing tag stands on the line, and nothing else."""
    return "[[/" in line and _CLOSES.match(line) is not None


def header_begun(line: str) -> Header | None:
    """The header that begins on this line. None: no opening tag begins it."""
    found = _OPENS.match(line) if "[[" in line else None
    return Header(found["lead"], line, found["said"]) if found else None


class Header:
    """An opening tag, which a terminal may have wrapped over several lines."""

    def __init__(self, lead: str, line: str, said: str) -> None:
        self.lead = lead
        self.shown = line
        self.width = 0
        """Columns of the frame around it; 0: there is none."""
        self.widest = 0
        """Columns of its widest line, without what stands before it."""
        self._said = said
        self._lines = 1
        self._look_at(line)

    def take(self, line: str) -> bool:
        """Go on with the next line. False: the tag cannot go on there."""
        added = line.strip(BLANKS + BORDERS)
        self._lines += 1
        if not added or self._lines > MOST_HEADER_LINES or len(self._said) > MOST_HEADER:
            return False
        self._said = f"{self._said.rstrip(BLANKS + BORDERS)}\n{added}"
        self._look_at(line)
        return True

    def read(self) -> Read | None:
        """What it says, once it is whole. None: it is not. Raises `ValueError` that says what is wrong with it."""
        source = self._said.lstrip()
        if "]]" not in source.replace("\n", ""):
            return None
        said, end = leading_object(source[:MOST_HEADER])
        ends = _HEADER_ENDS.match(source, end)
        if ends is None:
            raise ValueError("']]' does not follow it")
        is_wrapped = "\n" in source[: ends.end()]
        to, type_, id_ = (_word(said, key, is_wrapped=is_wrapped) for key in _KEYS)
        return Read(
            to=to,
            type=type_,
            id=id_,
            rest=self._rest(source[ends.end() :]),
            is_wrapped=is_wrapped,
            row_width=self.widest if _is_cut_in_a_word(source[: ends.end()]) else 0,
        )

    def _rest(self, written: str) -> str:
        if not written.strip(BLANKS + BORDERS):
            return ""
        return (written.rstrip(BLANKS + BORDERS) if self.width else written).removeprefix(" ")

    def _look_at(self, line: str) -> None:
        shown = line.strip()
        is_framed = self.lead.strip() in tuple(BORDERS) and shown.endswith(tuple(BORDERS))
        self.width = cells(shown) if is_framed else 0
        self.widest = max(self.widest, cells(line.rstrip()) - cells(self.lead))


@dataclass(frozen=True)
class Read:
    """A header that was read whole."""

    to: str
    type: str
    id: str
    rest: str
    """What follows it on its line: the body's beginning."""
    is_wrapped: bool
    row_width: int
    """How wide the rows are that it was broken into. 0: that is not to be seen."""


def _is_cut_in_a_word(written: str) -> bool:
    """Metadata without blanks is one word: broken rows of it are full."""
    return "\n" in written.strip() and " " not in written.strip()


def _word(said: dict[str, Json], key: str, *, is_wrapped: bool) -> str:
    word = said.get(key)
    if not isinstance(word, str) or not 0 < len(word) <= MOST_WORD:
        raise ValueError(f"its {key!r} is missing, or no text of 1 to {MOST_WORD} characters")
    return word.replace("\n", "") if is_wrapped else word


class Fence:
    """Follows lines of Markdown: whether they stand in fenced code."""

    def __init__(self) -> None:
        self._run = ""

    @property
    def is_open(self) -> bool:
        return self._run != ""

    def take(self, line: str) -> None:
        found = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if found is None:
            return
        if not self._run:
            self._run = found["run"]
        elif found["run"].startswith(self._run) and not found["info"].strip(BLANKS + BORDERS):
            self._run = ""
