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

from podium.agents.contract.cleaning import without_escapes
from podium.agents.contract.not_an_answer import NotAnAnswer
from podium.agents.contract.strict import load_object
from podium.domain.model import Json

LOOKED_AT = 1_000_000
"""Characters at the end of a text in which blocks are looked for."""

MOST_BLOCKS = 1000
"""Blocks that are read, from the last one back."""

MOST_HEADER = 4000

_LEAD = r"^(?P<lead>[ \t]{0,200}(?:[⏺●•✦◆│┃|][ \t]{0,200})?)"
_WRAP = re.compile(r"[ \t│┃|]*\n[ \t│┃|]*")
_HEADER_ENDS = re.compile(r"\]\][ \t│┃|]*(?:\n|\Z)")
_BORDERED = re.compile(r"[ \t]*[│┃|] ?(.*?)[ \t]*[│┃|][ \t]*")


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
    page = _Page(text[-LOOKED_AT:], tag, nonce)
    page.check_end()
    blocks = list(page.blocks())
    if not blocks:
        raise page.nothing()
    last = blocks[0]
    for other in blocks[1:]:
        if other.header == last.header and other.body != last.body:
            raise NotAnAnswer(
                "ambiguous",
                f"The reply holds several {page.shown} blocks of one header that differ",
            )
    return last


class _Page:
    """The end of a text, with its tags."""

    def __init__(self, raw: str, tag: str, nonce: str | None) -> None:
        self.text = without_escapes(raw).replace("\r\n", "\n")
        self.how: Literal["strict", "repaired"] = "repaired" if "\x1b" in raw else "strict"
        self.nonce = nonce
        self.angled = tag.startswith("<")
        self.name = tag.strip("<>")
        self.shown = f"<{self.name}>" if self.angled else f"[[{self.name}]]"
        opening, closing = _patterns(re.escape(self.name), angled=self.angled)
        self.opens = list(opening.finditer(self.text))
        self.closes = list(closing.finditer(self.text))

    def blocks(self) -> Iterator[Block]:
        """Whole blocks of this turn, last first. Of several opening tags the last before a closing one counts."""
        starts = [each.start() for each in self.opens]
        ends = [each.start() for each in self.closes]
        for number in range(len(ends) - 1, max(-1, len(ends) - 1 - MOST_BLOCKS), -1):
            before = bisect_left(starts, ends[number]) - 1
            if before >= 0 and (number == 0 or starts[before] > ends[number - 1]):
                block = self._block(self.opens[before], ends[number])
                if block is not None and self._is_of_this_turn(block.header):
                    yield block

    def check_end(self) -> None:
        """A block that begins after the last closing tag was cut off, unless it is of another turn."""
        if not self.opens or (self.closes and self.closes[-1].start() > self.opens[-1].start()):
            return
        header = self._header(self.opens[-1])
        if header is None or self._is_of_this_turn(header[0]):
            raise NotAnAnswer("cut off", f"The reply ends before its last {self.shown} block does")

    def nothing(self) -> NotAnAnswer:
        if not self.closes or not self.opens:
            return NotAnAnswer("missing", f"There is no whole {self.shown} block in the reply")
        if self.nonce is not None:
            return NotAnAnswer("nonce", f"No {self.shown} block has this turn's id")
        return NotAnAnswer("malformed", f"The opening tag of the {self.shown} block cannot be read")

    def _is_of_this_turn(self, header: Mapping[str, Json]) -> bool:
        given = str(header.get("id", ""))
        return self.nonce is None or given == self.nonce or given.startswith(f"{self.nonce}-")

    def _block(self, opening: re.Match[str], end: int) -> Block | None:
        found = self._header(opening)
        if found is None or found[1] > end:
            return None
        header, start, header_how = found
        written = self.text[start:end].removesuffix("\n")
        body = _freed(written, opening["lead"])
        intact = body == written and header_how == self.how == "strict"
        return Block(header, body, "strict" if intact else "repaired")

    def _header(
        self, opening: re.Match[str]
    ) -> tuple[dict[str, Json], int, Literal["strict", "repaired"]] | None:
        """What the opening tag says, and where the body begins. None when it cannot be read."""
        if self.angled:
            start = opening.end() + self.text.startswith("\n", opening.end())
            return {"id": opening["id"]} if opening["id"] else {}, start, "strict"
        end = _HEADER_ENDS.search(self.text, opening.end(), opening.end() + MOST_HEADER)
        if end is None:
            return None
        written = self.text[opening.end() : end.start()].strip()
        for source in (written, _WRAP.sub("", written)):
            try:
                header = load_object(source or "{}")
            except ValueError:
                continue
            return header, end.end(), "strict" if source == written else "repaired"
        return None


def _patterns(name: str, *, angled: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    edge = r"[ \t]{0,200}[│┃|]?[ \t]{0,2000}$"
    if angled:
        return (
            re.compile(
                rf'{_LEAD}<{name}(?:[ \t]+id="(?P<id>[^"\n]{{1,200}})")?[ \t]*>', re.MULTILINE
            ),
            re.compile(rf"</{name}>{edge}", re.MULTILINE),
        )
    return (
        re.compile(rf"{_LEAD}\[\[{name}(?=[\s{{\]])", re.MULTILINE),
        re.compile(rf"{_LEAD}\[\[/{name}\]\]{edge}", re.MULTILINE),
    )


def _freed(body: str, lead: str) -> str:
    """The body without the frame or the indent that its opening tag stands behind."""
    if not lead:
        return body
    lines = body.split("\n")
    framed = (
        [_BORDERED.fullmatch(line) for line in lines]
        if lead.strip(" \t") in "│┃|" and lead.strip()
        else []
    )
    if framed and all(framed):
        return "\n".join(each[1] for each in framed if each)
    width = len(lead)
    return "\n".join(line[width:] if not line[:width].strip() else line for line in lines)
