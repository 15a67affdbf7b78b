"""Words as tmux reads them, byte for byte."""

from __future__ import annotations

import re

_UNSAFE = re.compile(rb"[^a-zA-Z0-9 _\-./:,=+@]")
_QUOTED = {bytes([byte]): b"\\%03o" % byte for byte in range(256)}


def quoted(text: str) -> str:
    """The text as one word of a tmux command. It must hold no NUL, which tmux cannot carry."""
    safe = _UNSAFE.sub(lambda byte: _QUOTED[byte[0]], text.encode(errors="replace"))
    return f'"{safe.decode("ascii")}"'


def literally(text: str) -> str:
    """The text so that tmux finds no `#{format}` or `#(command)` in it, where it would look for them."""
    return text.replace("#", "##")


def without_dates(text: str) -> str:
    """The same for the few places where tmux puts in dates as well, by `%H` and the like."""
    return literally(text).replace("%", "%%")
