"""The body of a block, as its agent meant it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.agents.contract.framing import body_freed
from podium.agents.contract.unwrapping import cells, unwrapped
from podium.domain.messages import SECTIONS

_FRAME_CELLS = 4
"""A border and a blank on either side."""


@dataclass(frozen=True)
class Setting:
    """How a block stands in its text."""

    lead: str
    """What stands before its opening tag."""
    frame_width: int
    """0: no frame is around it."""
    row_width: int
    """Where its rows are known to break. 0: that is not known."""
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
    shown = "\n".join(line.rstrip() for line in lines)
    freed = body_freed(shown, setting.lead, is_framed=setting.frame_width > 0)
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
