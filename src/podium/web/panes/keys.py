"""What a browser's terminal says was typed, as keys by tmux's names: tmux knows what each program wants to get for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SEQUENCE = re.compile(
    r"\x1b\[(?P<numbers>[0-?]*)(?P<final>[A-Za-z~])|\x1bO(?P<letter>[A-Z])|\x1b(?P<meta>[^\x00-\x1f\x7f])"
    r"|(?P<one>.)",
    re.DOTALL,
)
_FINALS = {
    "A": "Up", "B": "Down", "C": "Right", "D": "Left", "H": "Home", "F": "End",
    "P": "F1", "Q": "F2", "R": "F3", "S": "F4",
}  # fmt: skip
_NUMBERS = {
    "1": "Home", "2": "IC", "3": "DC", "4": "End", "5": "PPage", "6": "NPage", "11": "F1", "12": "F2", "13": "F3",
    "14": "F4", "15": "F5", "17": "F6", "18": "F7", "19": "F8", "20": "F9", "21": "F10", "23": "F11", "24": "F12",
}  # fmt: skip
_SINGLE = {
    "\r": "Enter",
    "\n": "Enter",
    "\t": "Tab",
    "\x1b": "Escape",
    "\x7f": "BSpace",
    " ": "Space",
}
_MODIFIERS = ((1, "S-"), (2, "M-"), (4, "C-"))
_CONTROLS = "@abcdefghijklmnopqrstuvwxyz[\\]^_"


def keys_of(data: str) -> tuple[str, ...]:
    """The keys, in their order. What is no key is left out."""
    return tuple(_keys(data))


def _keys(data: str) -> Iterator[str]:
    for found in _SEQUENCE.finditer(data):
        if found["final"]:
            if key := _of_sequence(found["numbers"], found["final"]):
                yield key
        elif found["letter"]:
            if key := _FINALS.get(found["letter"], ""):
                yield key
        elif found["meta"]:
            yield f"M-{'Space' if found['meta'] == ' ' else found['meta']}"
        else:
            yield from _of_character(found["one"])


def _of_sequence(numbers: str, final: str) -> str:
    if final == "Z":
        return "BTab"
    first, _, modifier = numbers.partition(";")
    name = _NUMBERS.get(first) if final == "~" else _FINALS.get(final)
    if name is None:
        return ""
    held = int(modifier[:2]) - 1 if modifier[:2].isdecimal() else 0
    return "".join(word for bit, word in _MODIFIERS if held & bit) + name


def _of_character(one: str) -> Iterator[str]:
    if one in _SINGLE:
        yield _SINGLE[one]
    elif one < " ":
        yield f"C-{_CONTROLS[ord(one)]}"
    elif not "\x7f" <= one <= "\x9f" and not "\ud800" <= one <= "\udfff":
        yield one
