"""A task's words as a short name that git, file systems and people can read."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 40
NAMELESS = "task"

_READ = 2_000
"""Characters of a task that are looked at: a name needs its beginning alone."""
_APOSTROPHES = re.compile(r"(?<=[a-z])['’ʼ](?=[a-z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")

# Letters that do not come apart into a Latin one and its marks.
_LATIN = str.maketrans(
    {"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
_CYRILLIC = (
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ",
    "a b v g d e e zh z i i k l m n o p r s t u f kh ts ch sh shch _ y _ e yu ya i i e g",
)
_GREEK = (
    "αβγδεζηθικλμνξοπρσςτυφχψω",
    "a v g d e z i th i k l m n x o p r s s t y f ch ps o",
)
_OTHER = str.maketrans(
    {
        letter: said.strip("_")
        for letters, sounds in (_CYRILLIC, _GREEK)
        for letter, said in zip(letters, sounds.split(), strict=True)
    }
)


def slug_of(task: str) -> str:
    """Lower-case ASCII letters, digits and single dashes; `task` where no letter can be written so."""
    words = [word for word in _BETWEEN.split(ascii_of(task.strip()[:_READ])) if word]
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:LONGEST]
        if len(longer) > LONGEST:
            break
        slug = longer
    return slug or NAMELESS


def ascii_of(text: str) -> str:
    """The text in lower case with letters of other alphabets written in Latin ones, where that goes."""
    lower = unicodedata.normalize("NFKC", text).casefold().translate(_LATIN).translate(_OTHER)
    apart = unicodedata.normalize("NFKD", lower).translate(_OTHER)
    plain = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return _APOSTROPHES.sub("", plain)
