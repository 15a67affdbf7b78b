"""The forms of a text that rules look at: as it was said, and as it may be disguised."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import unquote

LONGEST_DISGUISED = 20_000
"""Longer texts are not turned round and decoded: no message is longer."""
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"'})
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_LOOK_ALIKE = str.maketrans(
    dict(zip("аеорсухіјѕԁһмтвнкαορτυικνε", "aeopcyxijsdhmtbhkaoptuikve", strict=True))
)
"""Letters of other alphabets that look like Latin ones, once capitals are small."""
_LEET = str.maketrans("01345789@$!|", "oieastbgasil")
_LEET_L = str.maketrans("01345789@$!|", "oleastbgasll")
_MIXED_WORD = re.compile(r"(?=\S*[a-z])(?=\S*[0-9@$!|])[a-z0-9@$!|']+")
_SPELLED = re.compile(r"(?<![^\W_])(?:[^\W_][ ._*-]){2,}[^\W_](?![^\W_])")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){10,}")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\s]")
_TAG_LETTERS = range(0xE0020, 0xE007F)
"""Letters of Unicode that nobody sees, one for each of ASCII's."""


@lru_cache(maxsize=64)
def plain(text: str) -> str:
    """In small letters, without accents and what nobody sees, white space as one blank or line break."""
    if text.isascii():
        return _tidy(_UNPRINTABLE.sub(" ", text.casefold().replace("`", "'")))
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTES).translate(_DASHES)
    return _tidy("".join(_visible(folded)))


def _visible(text: str) -> Iterator[str]:
    for letter in text:
        if letter.isascii():
            yield letter if letter.isprintable() or letter in "\n\t\r" else " "
            continue
        parts = unicodedata.normalize("NFKD", letter)
        if len(parts) > 1 and parts[0].isascii() and all(map(unicodedata.combining, parts[1:])):
            yield parts[0]
        elif unicodedata.category(letter) in ("Cf", "Mn", "Cc", "Cs", "Co"):
            # Between letters these hide a word; marks of other alphabets stay with theirs.
            yield letter if unicodedata.category(letter) == "Mn" else ""
        else:
            yield letter


def _tidy(text: str) -> str:
    return re.sub(r"[^\S\n]*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


@lru_cache(maxsize=16)
def forms(text: str) -> tuple[str, ...]:
    """The plain form first, then what the text would say if it were disguised; each once."""
    found = [plain(text)]
    if len(text) <= LONGEST_DISGUISED:
        found += (plain(each) for disguise in _DISGUISES for each in disguise(text))
    return tuple(dict.fromkeys(each for each in found if each))


def _look_alikes(text: str) -> Iterator[str]:
    if not text.isascii():
        yield unicodedata.normalize("NFKC", text).casefold().translate(_LOOK_ALIKE)


def _leet(text: str) -> Iterator[str]:
    said = plain(text)
    if not _MIXED_WORD.search(said):
        return
    yield _MIXED_WORD.sub(lambda word: word[0].translate(_LEET), said)
    yield _MIXED_WORD.sub(lambda word: word[0].translate(_LEET_L), said)
    yield _MIXED_WORD.sub(lambda word: word[0].replace("11", "ll").translate(_LEET), said)


def _spelled_out(text: str) -> Iterator[str]:
    """`i g n o r e` is one word; two blanks part two of them."""
    if _SPELLED.search(text):
        yield _SPELLED.sub(lambda run: re.sub(r"[ ._*-]", "", run[0]), text)


def _encoded(text: str) -> Iterator[str]:
    for run in _BASE64.findall(text):
        # The alphabet for addresses differs in two letters.
        data = run.rstrip("=").replace("-", "+").replace("_", "/")
        yield from _readable(lambda: base64.b64decode(data + "=" * (-len(data) % 4)))  # noqa: B023
    for run in _HEX.findall(text):
        yield from _readable(lambda: bytes.fromhex(run))  # noqa: B023
    if "%" in text:
        yield unquote(text)
    if "&" in text:
        yield html.unescape(text)


def _readable(decode: Callable[[], bytes]) -> Iterator[str]:
    try:
        said = decode().decode()
    except (ValueError, binascii.Error):
        return
    if said.isprintable() and any(letter.isalpha() for letter in said):
        yield said


def _turned(text: str) -> Iterator[str]:
    yield text[::-1]
    yield codecs.encode(text, "rot13")


def _unseen(text: str) -> Iterator[str]:
    hidden = [chr(ord(each) - 0xE0000) for each in text if ord(each) in _TAG_LETTERS]
    if hidden:
        yield "".join(hidden)


_DISGUISES = (_look_alikes, _leet, _spelled_out, _encoded, _turned, _unseen)
