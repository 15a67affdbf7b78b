"""What of a text stands on a screen as it was, whoever draws it."""

from __future__ import annotations

import unicodedata

_TONES_OF_SKIN = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_VIRAMA = 9
"""Of the classes of combining: it joins two letters to one."""
_WHERE_LETTERS_ARE_JOINED = (range(0x0900, 0x1D00), range(0xA800, 0xAC00))


def _join_letters() -> str:
    """Signs of Indian and kindred scripts that take a cell with a letter or without, as a program sees it."""
    signs = (chr(code) for codes in _WHERE_LETTERS_ARE_JOINED for code in codes)
    return "".join(
        sign
        for sign in signs
        if unicodedata.category(sign) == "Mc" or unicodedata.combining(sign) == _VIRAMA
    )


MEASURED_OTHERWISE = _TONES_OF_SKIN + _join_letters()
"""Signs that tmux gives other cells than a program which goes by whole characters. Where one stands in its input,
that program paints beside what is there from then on, and what it shows can no longer be read."""

_ENOUGH_SIGNS = 8
_SURE = frozenset("LNP")
_SURE_SIGNS = ("Sc", "Sm")


def surely_drawn(text: str) -> str:
    """Letters, digits and punctuation, and all signs of ASCII but blanks: the same for a text and for its picture.

    Lines are broken and blanks drawn as programs like. Of emoji that are put together, one leaves out the tone of the skin,
    and tmux what is beyond the bytes of a cell; accents that stand alone are put on their letters.
    """
    if text.isascii():
        return "".join(text.split())
    return "".join(filter(_is_sure, unicodedata.normalize("NFD", text)))


def tells_itself(text: str) -> bool:
    """Whether the text is known again in an input: by all of its signs, or by enough of them."""
    sure = surely_drawn(text)
    return len(sure) >= _ENOUGH_SIGNS or (bool(sure) and sure == "".join(text.split()))


def end_surely_drawn(text: str, length: int) -> str:
    """The last so many signs of `surely_drawn(text)`. Of a long text it reads no more than it needs."""
    part = 4 * length
    while len(drawn := surely_drawn(text[-part:])) < length and part < len(text):
        part *= 4
    return drawn[-length:]


def _is_sure(character: str) -> bool:
    if character.isascii():
        return not character.isspace()
    kind = unicodedata.category(character)
    return kind[0] in _SURE or kind in _SURE_SIGNS
