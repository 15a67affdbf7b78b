"""Bytes to text and back without losing any: the encodings that are edited in place."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from podium.tools.edits.nouns import EditRefused, Reason

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
# What a text has beyond printable characters: tab, line ends, form feed, escape (colours in logs).
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13, 27}


@dataclass(frozen=True)
class Coded:
    """A text, and how its bytes are made."""

    text: str
    encoding: str
    mark: bytes = b""
    """The byte order mark in front, if there is one."""

    def encoded(self, text: str) -> bytes:
        """Another text in the same way. Raises `EditRefused` when the encoding cannot write it."""
        if "\0" in text:
            raise EditRefused(Reason.NOT_TEXT, "a zero character would make the file binary")
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            char = text[error.start]
            raise EditRefused(
                Reason.NOT_TEXT,
                f"the file is {self.encoding}, which has no {char!r} (U+{ord(char):04X}); use another "
                "character, or write the whole file in UTF-8",
            ) from None


def decoded(content: bytes) -> Coded:
    """The text of a file. Raises `EditRefused` for one that is not text beyond doubt."""
    for mark, encoding in _MARKS:
        if content.startswith(mark) and not content.startswith(_WIDE):
            return _strictly(content, encoding, mark)
    if b"\0" in content:
        raise _binary()
    try:
        return Coded(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    if _CONTROLS.intersection(content) or _has_c1(content):
        raise _binary()
    return Coded(content.decode("latin-1"), "latin-1")


def _has_c1(content: bytes) -> bool:
    """Whether it has bytes that latin-1 has no characters for: then it is something else."""
    return any(0x7F <= byte < 0xA0 for byte in set(content))


def _strictly(content: bytes, encoding: str, mark: bytes) -> Coded:
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        raise _binary() from None
    if "\0" in text:
        raise _binary()
    return Coded(text, encoding, mark)


def _binary() -> EditRefused:
    return EditRefused(
        Reason.NOT_TEXT, "the file is binary, or of an unknown encoding; only text is edited"
    )
