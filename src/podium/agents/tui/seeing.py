"""What an adapter knows of its program's screen, and how patient one is with it."""

from __future__ import annotations

from typing import Literal, Protocol

from podium.agents.tui.capturing import Screen
from podium.domain.model import Noun

Manner = Literal["paste", "reference", "lines"]
"""How words are put in: as a bracketed paste; as one line that names a file, where a program takes no such
paste; or line by line, each with Enter, for a program that reads plain lines."""

Composer = Literal["empty", "ours", "unsent", "other", "unseen"]
"""What stands where the program takes input: nothing; the words that were put there, or their stand-in; those words with
the Enter that was to send them, taken for a newline; something else; or the place is not to be seen: the program starts,
works or asks."""


class Eyes(Protocol):
    """Reads one kind of program's screen. Knows no tmux and does nothing."""

    @property
    def manner(self) -> Manner: ...

    def composer(self, screen: Screen, words: str) -> Composer:
        """What stands in the composer, held against these words."""
        ...


class Patience(Noun):
    """How long things may take with one kind of program, and how much it can be handed at once."""

    ready_seconds: float = 30.0
    """Until its composer is empty and can be pasted into."""
    paint_seconds: float = 15.0
    """From a paste until it shows."""
    settle_seconds: float = 0.05
    """Some programs take an Enter for a newline that comes right after the paste was painted. And only what is gone for
    so long has left the composer: a screen may be seen half drawn."""
    enter_seconds: float = 2.0
    """From Enter until the composer lets go; then Enter is pressed again."""
    most_enters: int = 10
    longest_paste_bytes: int = 65_536
    """What is longer is handed over as a file."""
    spoilt: str = ""
    """Signs that it does not take as they are. Words with one of them are handed over as a file."""
