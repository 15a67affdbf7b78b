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
        code = int(found[1], 16)
        escape = f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        advice = (
            f"leave the character out, or write it escaped, as `{escape}` in a script or for printf"
        )
    return f"the command cannot be read for certain: {why}; {advice}"
