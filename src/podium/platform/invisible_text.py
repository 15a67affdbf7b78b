"""Invisible characters, and how they are escaped where none may be overlooked.

Somebody who is asked about a text must see all of it: one that turns its direction around, or has
zero width, or steers a terminal is shown as `\\u202e`, `\\u200b`, `\\x1b`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Controls, formats, surrogates, private and unassigned ones, separators of lines and words."""
_BLANK_CHARACTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks by category that nobody can see."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_JOINED = "\u0600-\u109f\u1780-\u18af"
"""Scripts, from Arabic to Mongolian, whose letters take another form beside a joiner."""
_IDEOGRAPHS = "\u3400-\u9fff\U00020000-\U0003ffff"
_PART_OF_WRITING = (
    f"(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])"  # families, professions
    f"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # in colour or not; keycaps
    f"|(?<=[{_JOINED}])[\u200c\u200d]"
    f"|(?<=[{_IDEOGRAPHS}])[\ufe00-\ufe02\U000e0100-\U000e01ef]"  # how a name's character is drawn
    # The flags of England, Scotland and Wales; in other tags a whole message could hide.
    "|(?<=\U0001f3f4)\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)"
    "\U000e007f"
)
_ODD = re.compile(f"(?P<writing>{_PART_OF_WRITING})|(?P<emoji>[{_EMOJI}])|[^ -~\n\t]")


def written_out(text: str) -> str:
    """The text with every hidden character written out. Keeps lines, tabs and blanks, and those joiners
    that belong to emoji and to the writing of words."""
    return _ODD.sub(lambda match: written(match[0]) if _hides(match) else match[0], text)


def hidden_in(text: str) -> Iterator[tuple[int, str]]:
    """The hidden characters of a text, each with its place."""
    return ((match.start(), match[0]) for match in _ODD.finditer(text) if _hides(match))


def is_visible(char: str) -> bool:
    """Tell whether a character alone leaves a mark on the screen."""
    if unicodedata.category(char) in _UNSEEN_CATEGORIES or char in _BLANK_CHARACTERS:
        return False
    return not ("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef")


def written(char: str, *, json: bool = False) -> str:
    r"""A character as an escape: `\x1b`, `\u202e`, `\U000e0041`; with `json` in JSON's own way."""
    code = ord(char)
    if json and code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    if not json and char in _NAMED:
        return _NAMED[char]
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code <= 0xFF and not json else f"\\u{code:04x}"


def _hides(match: re.Match[str]) -> bool:
    # Emoji by their range: the newest are not assigned yet where Python is older than they are.
    if match["writing"] or match["emoji"]:
        return False
    return not is_visible(match[0]) and unicodedata.category(match[0]) != "Zs"
