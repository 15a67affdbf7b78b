"""Tagged blocks: `[[TAG {"id": …}]] … [[/TAG]]` and `<TAG id="…"> … </TAG>`. Pure, and linear in the text.

Terminals indent, frame and wrap what they show. So a tag may be indented or stand behind a bullet or
a frame's border, and a header may be wrapped; what is taken away from the body's lines is what stood
before the opening tag.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from podium.agents.contract.json_objects import thoughts
from podium.agents.contract.reply_schema import NotAnAnswer
from podium.agents.contract.reply_text import EDGE, LEAD, body_freed, header_of, without_escapes
from podium.core.model import Json

LOOKED_AT = 1_000_000
"""Characters at the end of a text in which blocks are looked for."""

MAX_BLOCKS = 1000
"""Blocks that are read, from the last one back."""

MAX_HEADER = 4000

_HEADER_ENDS = re.compile(r"\]\][ \t│┃|]*+(?:\n|\Z)")
_ATTRIBUTES = re.compile(r"""([\w-]{1,40})=(?:"([^"\n]{0,200})"|'([^'\n]{0,200})')""")


@dataclass(frozen=True)
class Block:
    """A block: what its opening tag says, its text, and whether a terminal's marks were taken off."""

    header: Mapping[str, Json]
    body: str
    how: Literal["strict", "repaired"]


def read_block(text: str, tag: str, *, nonce: str | None = None) -> Block:
    """The last whole block of this tag, `NAME` for square brackets, `<NAME>` for angle ones.

    With a nonce only blocks count whose id is the nonce, or begins with it and a dash. Blocks of the
    same header must have the same body. Raises `NotAnAnswer`, a `ReplyInvalid`, when there is none.
    """
    page = _Page(text, tag, nonce)
    page.check_end()
    blocks = list(page.blocks())
    if not blocks:
        raise page.nothing()
    last = blocks[0]
    for other in blocks[1:]:
        if other.header == last.header and other.body != last.body:
            raise NotAnAnswer(
                "ambiguous",
                f"The reply has several {page.tag_text} blocks with the same header and different text",
            )
    return last


class _Page:
    """The end of a text, with its tags."""

    def __init__(self, whole: str, tag: str, nonce: str | None) -> None:
        raw = whole[-LOOKED_AT:]
        self.text = without_escapes(raw).replace("\r\n", "\n")
        self.how: Literal["strict", "repaired"] = "repaired" if "\x1b" in raw else "strict"
        self.nonce = nonce
        self.angled = tag.startswith("<")
        self.name = tag.strip("<>")
        self.tag_text = f"<{self.name}>" if self.angled else f"[[{self.name}]]"
        opening, closing = _patterns(re.escape(self.name), angled=self.angled)
        thought = thoughts(self.text, earlier=whole[: -len(raw) or None])
        self.opens = [
            match for match in opening.finditer(self.text) if not thought.hold(match.start())
        ]
        self.closes = [
            match.start()
            for match in closing.finditer(self.text)
            if not thought.hold(match.start()) and not self._is_named(match.start())
        ]

    def _is_named(self, closing: int) -> bool:
        """Return whether a closing tag ends a line of text. In angle brackets only a block of one line ends so."""
        if not self.angled:
            return False
        begin = self.text.rfind("\n", 0, closing) + 1
        at = bisect_left(self.opens, begin, key=re.Match.start)
        on_its_line = at < len(self.opens) and self.opens[at].start() == begin
        return not on_its_line and self.text[begin:closing].strip(" \t│┃|") != ""

    def blocks(self) -> Iterator[Block]:
        """Whole blocks of this turn, last first. Of several opening tags the last before a closing one counts."""
        starts = [opening.start() for opening in self.opens]
        ends = self.closes
        for number in range(len(ends) - 1, max(-1, len(ends) - 1 - MAX_BLOCKS), -1):
            before = bisect_left(starts, ends[number]) - 1
            if before < 0 or (number > 0 and starts[before] < ends[number - 1]):
                continue
            block = self._block(self.opens[before], ends[number])
            if block is None:
                continue
            following = starts[before + 1] if before + 1 < len(starts) else len(self.text)
            if number + 1 < len(ends) and ends[number + 1] < following:
                raise NotAnAnswer("ambiguous", f"The {self.tag_text} block has two closing tags")
            yield block

    def check_end(self) -> None:
        """A block that begins after the last closing tag was cut off, unless it is of another turn."""
        if not self.opens or (self.closes and self.closes[-1] > self.opens[-1].start()):
            return
        header = self._header(self.opens[-1])
        if header is None or self._is_of_this_turn(header[0]):
            raise NotAnAnswer(
                "cut off", f"The reply ends before its last {self.tag_text} block does"
            )

    def nothing(self) -> NotAnAnswer:
        if not self.closes or not self.opens:
            return NotAnAnswer("missing", f"The reply has no complete {self.tag_text} block")
        if self.nonce is not None:
            return NotAnAnswer("nonce", f"No {self.tag_text} block has this turn's id")
        return NotAnAnswer(
            "malformed", f"The opening tag of the {self.tag_text} block cannot be read"
        )

    def _is_of_this_turn(self, header: Mapping[str, Json]) -> bool:
        id_ = str(header.get("id", ""))
        return self.nonce is None or id_ == self.nonce or id_.startswith(f"{self.nonce}-")

    def _block(self, opening: re.Match[str], end: int) -> Block | None:
        """None when its header cannot be read or is another turn's, whose body is not looked at."""
        parsed = self._header(opening)
        if parsed is None or parsed[1] > end or not self._is_of_this_turn(parsed[0]):
            return None
        header, start, header_how = parsed
        written = self.text[start:end].removesuffix("\n")
        self._check_body(written)
        is_framed = self.text[opening.start() : start].rstrip().endswith(("│", "┃", "|"))
        body = body_freed(written, opening["lead"], is_framed=is_framed)
        intact = body == written and header_how == self.how == "strict"
        return Block(header, body, "strict" if intact else "repaired")

    def _check_body(self, body: str) -> None:
        if body.count("```") % 2:
            raise NotAnAnswer(
                "cut off", f"The {self.tag_text} block ends inside a code fence of its text"
            )
        if self.angled and f"</{self.name}>" in body:
            raise NotAnAnswer("ambiguous", f"The {self.tag_text} block has two closing tags")

    def _header(
        self, opening: re.Match[str]
    ) -> tuple[dict[str, Json], int, Literal["strict", "repaired"]] | None:
        """Read the opening tag, and where the body begins. None when it cannot be read."""
        if self.angled:
            start = opening.end() + self.text.startswith("\n", opening.end())
            attributes = [
                (name, one or other) for name, one, other in _ATTRIBUTES.findall(opening["said"])
            ]
            return (
                (dict(attributes), start, "strict")
                if len(dict(attributes)) == len(attributes)
                else None
            )
        end = _HEADER_ENDS.search(self.text, opening.end(), opening.end() + MAX_HEADER)
        header = header_of(self.text[opening.end() : end.start()]) if end else None
        return (header[0], end.end(), header[1]) if end and header else None


def _patterns(name: str, *, angled: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    if angled:
        attributes = (
            r"""(?P<said>(?:[ \t]{1,8}[\w-]{1,40}=(?:"[^"\n]{0,200}"|'[^'\n]{0,200}')){0,8})"""
        )
        return (
            re.compile(rf"{LEAD}<{name}{attributes}[ \t]{{0,8}}>", re.MULTILINE),
            re.compile(rf"</{name}>{EDGE}", re.MULTILINE),
        )
    return (
        re.compile(rf"{LEAD}\[\[{name}(?=[\s{{\]])", re.MULTILINE),
        re.compile(rf"{LEAD}\[\[/{name}\]\]{EDGE}", re.MULTILINE),
    )
