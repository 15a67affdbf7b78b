"""What in a line looks the same to a reader, and putting a change into the file's own spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from podium.tools.edits.aligning import aligned
from podium.tools.edits.nouns import EditRefused, Reason

# Blanks; words, with accents that are characters of their own; anything else by itself.
_TOKENS = re.compile(r"\s+|\w(?:\w|[\u0300-\u036f])*|[^\w\s]")
_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006", " "),
        **dict.fromkeys("\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)

Key = Callable[[str], str]
"""What two lines must have in common to be taken for the same."""


def folded(text: str) -> str:
    """Plain quotes, dashes and blanks for typographic ones, character by character."""
    return text.translate(_LOOKALIKES)


def as_it_is(body: str) -> str:
    return body


def spaced(body: str) -> str:
    """Runs of blanks as one."""
    if body.isascii():  # several times as quick, and nearly every line
        return " ".join(body.split())
    return re.sub(r"\s+", " ", body)


def looking(body: str) -> str:
    """As `spaced`, typographic characters as plain ones, accents composed."""
    if body.isascii():
        return spaced(body)
    return spaced(folded(unicodedata.normalize("NFC", body)))


def put_into(own: str, found: str, wanted: str) -> str:
    """The file's `own` line with the change that leads from `found` to `wanted`.

    Both `own` and `found` look the same. Words that the change leaves alone stay spelt as the file
    has them. Raises `EditRefused` where a word that the file spells differently is replaced: whether
    the difference shall go cannot be told.
    """
    if own == found:
        return wanted
    own_words, found_words = _TOKENS.findall(own), _TOKENS.findall(found)
    wanted_words = _TOKENS.findall(wanted)
    if [looking(word) for word in own_words] != [looking(word) for word in found_words]:
        raise _doubt()
    parts: list[str] = []
    for block in aligned(found_words, wanted_words):
        old = slice(block.old, block.old + block.old_count)
        if block.same:
            parts += own_words[old]
        elif block.new_count and own_words[old] != found_words[old]:
            raise _doubt()
        else:
            parts += wanted_words[block.new : block.new + block.new_count]
    return "".join(parts)


def _doubt() -> EditRefused:
    return EditRefused(
        Reason.DOUBTFUL,
        "`find` spells a line differently in the very part that is replaced; copy it as it stands in "
        "the file",
    )
