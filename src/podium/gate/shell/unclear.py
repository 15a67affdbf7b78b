"""How the reader says that it cannot read."""

from __future__ import annotations

import re

_INVISIBLE = re.compile(r"invisible character U\+([0-9A-F]{4,6})")


class Unclear(Exception):
    """This line may mean something that its text does not show. Answered inside the reader."""


def unreadable(why: str) -> str:
    """The reason of a denial, with what to do about it."""
    advice = "split it into plain commands without shell features and run them one by one"
    if found := _INVISIBLE.search(why):
        # Escapes do not help everybody: some programs decode them before they pass the command on.
        advice = (
            f"leave the character out, or name it by its number, as `chr(0x{found[1]})` in a script"
        )
    return f"the command cannot be read for certain: {why}; {advice}"
