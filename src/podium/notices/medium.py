"""A notice as text that means the same in every medium, whatever agents wrote in it."""

from __future__ import annotations

from podium.ports import Notice, NoticePart

LONGEST_TITLE = 120
LONGEST_TEXT = 700
"""Of one part."""

_TAMED = {
    "<": "‹",  # HTML; mentions and links of Slack and Discord
    ">": "›",
    "](": "] (",  # links of Markdown that show other words than where they lead
    "://": ":// ",  # addresses that a tap would open
    "@": "@ ",  # @everyone, @channel, @here
}


def title_of(notice: Notice) -> str:
    return tamed(notice.title)[:LONGEST_TITLE]


def body_of(notice: Notice) -> str:
    """Every part, a line between them empty. Only Podium's own links can be opened."""
    return "\n\n".join(map(_part, notice.parts))


def tamed(text: str) -> str:
    """The text without what one medium or another takes for markup that leads or calls somebody elsewhere."""
    for taken, shown in _TAMED.items():
        text = text.replace(taken, shown)
    return text


def _part(part: NoticePart) -> str:
    text = tamed(part.text)
    shown = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    return f"{shown}\n{part.link}" if part.link else shown
