"""Words as tmux reads them, byte for byte."""

from __future__ import annotations

import string

_SAFE = frozenset(f"{string.ascii_letters}{string.digits} _-./:,=+@".encode())
_QUOTED = [chr(byte) if byte in _SAFE else f"\\{byte:03o}" for byte in range(256)]


def quoted(text: str) -> str:
    """The text as one word of a tmux command. It must hold no NUL, which tmux cannot carry."""
    return f'"{"".join(_QUOTED[byte] for byte in text.encode(errors="replace"))}"'


def literally(text: str) -> str:
    """The text so that tmux finds no `#{format}` or `#(command)` in it, where it would look for them."""
    return text.replace("#", "##")


def without_dates(text: str) -> str:
    """The same for the few places where tmux puts in dates as well, by `%H` and the like."""
    return literally(text).replace("%", "%%")
