"""What a terminal does to a block, undone: its frame, its indent, and the wraps in its header."""

from __future__ import annotations

from typing import Literal

from podium.agents.contract.strict import load_object
from podium.domain.model import Json

BORDERS = "│┃|"
BLANKS = " \t"
LEAD = r"^(?P<lead>[\u200b\ufeff]?[ \t]{0,200}+(?:[⏺●•✦◆│┃|][ \t]{0,200}+)?)"
"""Pattern of what may stand before a tag."""
EDGE = r"[ \t]{0,2000}+[│┃|]?+[ \t]{0,2000}+$"
"""Pattern of what may stand behind one."""


def header_of(written: str) -> tuple[dict[str, Json], Literal["strict", "repaired"]] | None:
    """What the JSON of an opening tag says. None when it cannot be read."""
    source = written.strip() or "{}"
    try:
        return load_object(source), "strict"
    except ValueError:
        pass
    lines = [line.strip(BLANKS + BORDERS) for line in source.split("\n")]
    try:
        wrapped = load_object("\n".join(lines), raw_breaks=True)
        return dict(map(_joined, wrapped.items())), "repaired"
    except ValueError:
        return None


def _joined(member: tuple[str, Json]) -> tuple[str, Json]:
    key, value = member
    return _unwrapped(key), _unwrapped(value) if isinstance(value, str) else value


def _unwrapped(text: str) -> str:
    """A word that was wrapped. Between several, whether a blank was lost at the break cannot be told."""
    if "\n" in text and " " in text:
        raise ValueError("it is wrapped between words")
    return text.replace("\n", "")


def body_freed(body: str, lead: str, *, is_framed: bool) -> str:
    """The body without the frame or the indent that its opening tag stands behind.

    `is_framed`: a border stands after the tag too. Without, borders at both ends are a table of the body.
    """
    lead = lead.lstrip("\u200b\ufeff")
    if not lead:
        return body
    lines = body.split("\n")
    if is_framed and lead.strip() and lead.strip(BLANKS) in BORDERS:
        framed = [_unframed(line) for line in lines]
        whole = [each for each in framed if each is not None]
        if len(whole) == len(lines):
            return "\n".join(whole)
    width = len(lead)
    return "\n".join(line[width:] if not line[:width].strip() else line for line in lines)


def _unframed(line: str) -> str | None:
    """What stands between two borders; None when they are not there."""
    inner = line.strip(BLANKS)
    if len(inner) < 2 or inner[0] not in BORDERS or inner[-1] not in BORDERS:
        return None
    return inner[1:-1].removeprefix(" ").rstrip(BLANKS)
