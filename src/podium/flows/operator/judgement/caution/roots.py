"""Words as they are compared here: without endings, and with room for a slip of the finger."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

WORD = re.compile(r"(?<![\w.])[^\W\d_]+(?:'[^\W\d_]+)*(?!\w|-\d|\.\w)")
"""A word; the letters of an id such as `INV-9` and the parts of a tool's name are none."""
_IRREGULAR = {
    "sent": "send", "paid": "pay", "payment": "pay", "made": "make", "gave": "give", "given": "give", "took": "take",
    "taken": "take", "wrote": "write", "written": "write", "put": "put", "rang": "ring", "mail": "email",
    "e-mail": "email",
}  # fmt: skip
IRREGULAR_PAST = frozenset(
    {"sent", "paid", "made", "gave", "given", "took", "taken", "wrote", "written"}
)
_SHORTEST = 3
"""Letters that must be left of a word."""
_LONG_ENOUGH = 4
"""Shorter words are too much like each other to allow for a slip."""
_FUNCTION_WORDS = (
    "a an the this that these those there here of to in on at by for from with into onto as per via re about i me my we us our"
    " you your he him his she her it its they them their is are was were be been am do does did has have had will would shall"
    " should can could may might must and or but so then than also too just now please out up off back down over away not no"
    " got get all one go because if when so s t ll ve d m"
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


@lru_cache(maxsize=8192)
def root(word: str) -> str:
    """The word in lower case without its endings. Only equality means anything."""
    word = word.lower()
    word = _IRREGULAR.get(word, word)
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _SHORTEST:
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word.removesuffix(ending)
            doubled = word[-1] == word[-2] and word[-1] not in "aeiosz"
            word = word[:-1] if doubled else word
            break
    if word.endswith("e") and len(word) > _LONG_ENOUGH:
        word = word[:-1]
    return word[:-2] + "iz" if word.endswith("is") and len(word) > _LONG_ENOUGH else word


@lru_cache(maxsize=8192)
def roots_of(text: str) -> frozenset[str]:
    """The roots of all words that say something."""
    return frozenset(
        root(word) for word in WORD.findall(text.lower()) if word not in FUNCTION_WORDS
    )


@lru_cache(maxsize=8192)
def words_in(text: str) -> frozenset[str]:
    """All words of a text in lower case; ids and numbers are none."""
    return frozenset(WORD.findall(text))


def names_one(words: Collection[str], known: Collection[str]) -> bool:
    """Whether one of the roots is known, or nearly: `viod` for `void`."""
    if any(word in known for word in words):
        return True
    return any(_nearly(word, other) for word in words for other in known)


def _nearly(word: str, other: str) -> bool:
    """Whether two letters stand the other way round or, in a longer word, one is missing, too many or wrong."""
    if min(len(word), len(other)) < _LONG_ENOUGH or abs(len(word) - len(other)) > 1:
        return False
    if len(word) < len(other):
        word, other = other, word
    same = next((place for place, sign in enumerate(other) if word[place] != sign), len(other))
    rest, left = word[same:], other[same:]
    if rest[1::-1] == left[:2] and rest[2:] == left[2:]:
        return True
    if len(other) <= _LONG_ENOUGH:
        return False
    return rest[1:] == left if len(word) > len(other) else rest[1:] == left[1:]
