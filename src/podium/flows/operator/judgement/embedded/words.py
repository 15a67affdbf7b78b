"""Words of a message: cleaned of what only eyes or machines see, cut, and brought to their stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"(?=[\w-]*\d)[^\W_]+(?:[_-]+[^\W_]+)*|[^\W_]+(?:['-][^\W_]+)*")
"""A word, or a reference such as `INV-9` and `lead_7f3a`, which has a digit and stays whole."""
_CONTRACTED = re.compile(r"'(?:s|re|ve|ll|m)$")
_STRAIGHT = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": "-"}
)
_LINES = {"\n", "\r", "\t", "\u2028", "\u2029", "\u0085"}

_FUNCTION_WORDS = (
    "a an the this that these those there here of to in on at by for from with into onto as per via re about"
    " i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one ones"
    " is are was were be been being am do does did has have had having will would shall should can could may"
    " might must and or but so then than also too just now please pls plz thanks thank cheers ta hi hey hello"
    " ok okay yes yeah yep well want wants wanted need needs needed like id im ive lets let go ahead some any"
    " all both each every such very really quite still already currently right if whether while which who whom"
    " whose what when where why how not no nor dont doesnt didnt wont cant couldnt shouldnt wouldnt isnt arent"
    " never up today tomorrow tonight yesterday mate etc eg ie think hope sure maybe"
    " gotta gonna wanna first second whats whos hows wheres whens thats theres able kindly thx ty u ur gday self myself asap urgent urgently immediately straightaway whenever rush something"
    " anything thing things stuff guy called named got number after before until till til next last"
)


def word_set(words: str) -> frozenset[str]:
    """The words that stand in one line."""
    return frozenset(words.split())


FUNCTION_WORDS = word_set(_FUNCTION_WORDS)
"""Words that hold a sentence together and say nothing of what is to be done."""

DENIALS = word_set(
    "not dont never nto donot dnt isnt arent wasnt werent hasnt havent hadnt didnt doesnt wont cant cannot couldnt"
    " shouldnt wouldnt mustnt nobody noone nothing"
)
DENIED = "¬"
"""Stands in place of any word that denies: `not finished` is another thing than `finished`."""

_IRREGULAR = {
    "sent": "send", "paid": "pay", "made": "make", "found": "find", "gave": "give", "given": "give",
    "wrote": "write", "written": "write", "took": "take", "taken": "take", "shown": "show", "began": "begin",
    "begun": "begin", "held": "hold", "rang": "ring", "brought": "bring", "payment": "pay", "payments": "pay",
    "people": "person", "sms": "sms", "status": "status", "news": "news",
    "takings": "takings", "address": "address", "need": "need",
    "speed": "speed", "booking": "book", "bookings": "book", "mail": "email", "emails": "email", "texts": "text",
}  # fmt: skip
_VOWEL = re.compile(r"[aeiouy]")
_SHORTEST_NOUN = 6
_SHORT_WITH_LL = 6
"""Shorter remainders have their second l by themselves: `called`, but not `cancelled`."""
_SHORT_OPEN = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
"""A remainder such as `mov` or `not`, which lost its e."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text, at `start:end` of it."""

    text: str
    """Case-folded, without apostrophes."""
    stem: str
    start: int
    end: int
    capital: bool = False
    kind: str = ""
    """What it is part of when it is a value and not a word: `phone`, `id:lead`, `text`."""


def clean(text: str) -> str:
    """The text in one spelling of characters, without controls and without what cannot be seen."""
    text = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in _LINES:
        return "\n" if character != "\t" else " "
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    return "" if category in ("Cc", "Cf", "Cs", "Co", "Cn") else character


def words_of(text: str) -> list[Word]:
    """The words of a text that was cleaned, in their order."""
    return [
        Word(folded, stem(folded), start, end, text[start].isupper())
        for folded, start, end in _folded(text)
    ]


def _folded(text: str) -> Iterator[tuple[str, int, int]]:
    """Each word case-folded and without apostrophes, and where it stands."""
    for found in _WORD.finditer(text):
        word = found.group().casefold()
        if "'" in word:
            word = _CONTRACTED.sub("", word).replace("'", "")
        if "-" not in word or any(letter.isdigit() for letter in word):
            yield word, found.start(), found.end()
        elif word[1] == "-" or FUNCTION_WORDS.issuperset(word.split("-")):
            # `e-mail` and `to-do` are words; `roof-check` is two.
            yield word.replace("-", ""), found.start(), found.end()
        else:
            start = found.start()
            for part in word.split("-"):
                yield part, start, start + len(part)
                start += len(part) + 1


@lru_cache(maxsize=8192)
def plain_words(text: str) -> tuple[str, ...]:
    """The words of a text of the registry, which is read more than once."""
    return tuple(word for word, _, _ in _folded(text))


def stems_of(text: str) -> list[str]:
    """The stems of all words that say something, and `DENIED` for one that denies it."""
    return [
        DENIED if word in DENIALS else stem(word)
        for word in plain_words(text)
        if word not in FUNCTION_WORDS or word in DENIALS
    ]


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """The word without its endings. Only equality of stems means anything."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ings") and len(word) > _SHORTEST_NOUN:
        # `takings` are no taking.
        return word
    word = _without_plural(word)
    word = _without_tense(word)
    for ending, instead in (("ization", "iz"), ("isation", "iz"), ("ise", "iz"), ("ize", "iz")):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending) + instead
    if word.endswith("ion") and len(word) > 6:
        return word[:-3]
    if word.endswith("ment") and len(word) > 7:
        return word[:-4]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) or not word.endswith("s") else word[:-1]


def _without_tense(word: str) -> str:
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < 2 or not _VOWEL.search(rest):
            continue
        if rest.endswith("ll") and len(rest) < _SHORT_WITH_LL:
            return rest
        if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "aeiosz":
            return rest[:-1]
        if len(rest) == 3 and _SHORT_OPEN.fullmatch(rest):
            return rest + "e"
        if rest.endswith("is") and len(rest) > 4:
            return rest[:-1] + "z"
        return rest
    return word
