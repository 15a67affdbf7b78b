"""An edit, how it was matched, why it was refused; bytes to text and back without loss; snippets without what copying added."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class MatchLevel(StrEnum):
    """Tolerance at which an edit matched, the strictest first."""

    EXACT = "exact"
    """Character by character; line ends of any kind are equal."""
    LINES = "lines"
    """Whole lines, when blanks at their ends are left out of account."""
    INDENT = "indent"
    """As `lines`, all of them shifted by the same indentation."""
    TABS = "tabs"
    """As `lines`, with tabs for spaces in the indentation or the other way round."""
    SPACING = "spacing"
    """As these, with other numbers of blanks between words."""
    LOOKALIKE = "lookalike"
    """As these, with typographic quotes, dashes and blanks for plain ones."""
    ELIDED = "elided"
    """By the lines around a `...` that stands for lines which stay as they are."""
    PASTED = "pasted"
    """As `lines`, `indent` or `tabs`, without the fence, line numbers or escapes around it."""


class RefusalReason(StrEnum):
    """Reason of a refused edit."""

    MISSING = "missing"
    AMBIGUOUS = "ambiguous"
    OVERLAP = "overlap"
    NOTHING = "nothing"
    """It would change nothing."""
    DOUBTFUL = "doubtful"
    """The place is known, and what shall stand there is not beyond doubt."""
    NOT_TEXT = "not text"


@dataclass(frozen=True)
class TextEdit:
    """Replace one text by another. `at_line` (from 1) only chooses among equal matches."""

    find: str
    replace: str
    at_line: int | None = None


@dataclass(frozen=True)
class MatchCandidate:
    """A place that is not, or not alone, the one that was meant."""

    line: int
    """From 1."""
    text: str
    """The line of the file that tells most: where it differs, or its first. Not cut."""
    differs: str = ""
    """Description of the difference there."""


class EditRefused(Exception):
    """Nothing was changed, for this reason. `number` is the edit's, from 1; 0: all of them."""

    def __init__(
        self,
        reason: RefusalReason,
        message: str,
        candidates: Sequence[MatchCandidate] = (),
        number: int = 0,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.candidates = tuple(candidates)
        self.number = number

    def of_edit(self, number: int) -> EditRefused:
        """The same, about the edit with this number."""
        return EditRefused(self.reason, self.message, self.candidates, number)


@dataclass(frozen=True)
class TextChange:
    """Characters `start` to `end` of the text with plain line feeds, and what comes there instead."""

    start: int
    end: int
    text: str
    level: MatchLevel


_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
# What a text has beyond printable characters: tab, line ends, form feed, escape (colours in logs).
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13, 27}


@dataclass(frozen=True)
class EncodedText:
    """A text, and how its bytes are made."""

    text: str
    encoding: str
    bom: bytes = b""
    """The byte order mark in front, if there is one."""

    def encoded(self, text: str) -> bytes:
        """Another text in the same way. Raises `EditRefused` when the encoding cannot write it."""
        if "\0" in text:
            raise EditRefused(
                RefusalReason.NOT_TEXT, "a NUL character would make the file binary; remove it"
            )
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            char = text[error.start]
            raise EditRefused(
                RefusalReason.NOT_TEXT,
                f"the file is {self.encoding}, which has no {char!r} (U+{ord(char):04X}); use another character, or write the whole file in UTF-8",
            ) from None


def decoded(content: bytes) -> EncodedText:
    """The text of a file. Raises `EditRefused` for one that is not text beyond doubt."""
    for bom, encoding in _BOMS:
        if content.startswith(bom) and not content.startswith(_WIDE):
            return _strictly(content, encoding, bom)
    if b"\0" in content:
        raise _binary()
    try:
        return EncodedText(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    if _CONTROLS.intersection(content) or _has_c1(content):
        raise _binary()
    return EncodedText(content.decode("latin-1"), "latin-1")


def _has_c1(content: bytes) -> bool:
    """Check for bytes that latin-1 has no characters for: then it is another encoding."""
    return any(0x7F <= byte < 0xA0 for byte in set(content))


def _strictly(content: bytes, encoding: str, bom: bytes) -> EncodedText:
    try:
        text = content[len(bom) :].decode(encoding)
    except UnicodeDecodeError:
        raise _binary() from None
    if "\0" in text:
        raise _binary()
    return EncodedText(text, encoding, bom)


def _binary() -> EditRefused:
    return EditRefused(
        RefusalReason.NOT_TEXT,
        "the file is binary or has an unknown encoding; only text files can be edited",
    )


_CODE_BLOCK_LINE = re.compile(r"[ \t]*(`{3,9}|~{3,9})[^`\n]*")
_NUMBERED = re.compile(r"^[ ]*(\d+)([ ]?[|\u2502\u2192:][ ]?|\t)(.*)$")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True)
class UnwrappedEdit:
    """An edit without what came along. `line`: where it must stand then, from 1; None: anywhere."""

    edit: TextEdit
    line: int | None = None


def unwrapped(edit: TextEdit) -> Iterator[UnwrappedEdit]:
    """Other readings of an edit that was found nowhere as it is.

    Raises `EditRefused` when `find` can be unwrapped and `replace` only by half, or when nothing is
    left of that: whether an empty line shall stay cannot be told.
    """
    edit = _without_last_end(edit)
    for other in _readings(edit):
        if not other.edit.replace.strip():
            raise _half("extra text around the quoted lines")
        yield other


def _readings(edit: TextEdit) -> Iterator[UnwrappedEdit]:
    if (inside := _code_block_body(edit.find)) is not None:
        yield UnwrappedEdit(replace(edit, find=inside, replace=_without_code_block(edit.replace)))
    if (numbered := _without_numbers(edit)) is not None:
        yield numbered
    if "\\n" in edit.find and "\n" not in edit.find:
        plain = _unescaped_replacement(edit.replace)
        yield UnwrappedEdit(
            _without_last_end(replace(edit, find=_unescaped(edit.find), replace=plain))
        )


def _without_last_end(edit: TextEdit) -> TextEdit:
    """The line end behind a snippet is part of neither text, if both have it."""
    if not edit.find.endswith("\n"):
        return edit
    return replace(edit, find=edit.find[:-1], replace=edit.replace.removesuffix("\n"))


def _code_block_body(text: str) -> str | None:
    """The lines of a block of code; None when the text is no such block."""
    first, *lines = text.strip("\n").split("\n")
    opened = _CODE_BLOCK_LINE.fullmatch(first)
    if opened is None or len(lines) < 2 or lines[-1].strip() != opened[1]:
        return None
    return "\n".join(lines[:-1])


def _without_code_block(text: str) -> str:
    if (inside := _code_block_body(text)) is not None:
        return inside
    if any(map(_CODE_BLOCK_LINE.match, text.split("\n"))) or text != text.strip("\n"):
        raise _half("the fence of a code block")
    return text


def _without_numbers(edit: TextEdit) -> UnwrappedEdit | None:
    lines = edit.find.split("\n")
    matches = [_NUMBERED.match(line) for line in lines]
    numbered = [match for match in matches if match]
    if len(numbered) < len(lines) or len(lines) < 2 or len({match[2] for match in numbered}) > 1:
        return None
    numbers = [int(match[1]) for match in numbered]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    find = "\n".join(match[3] for match in numbered)
    # With a colon it may be a table of the program itself: then only its own place will do.
    line = numbers[0] if ":" in numbered[0][2] else None
    return UnwrappedEdit(
        replace(edit, find=find, replace=_unnumbered(edit.replace, numbered[0][2])), line
    )


def _unnumbered(text: str, separator: str) -> str:
    lines = text.split("\n")
    matches = [_NUMBERED.match(line) for line in lines]
    numbered = [match for match in matches if match and match[2] == separator]
    if not numbered:
        return text
    if len(numbered) < len([line for line in lines if line.strip()]):
        raise _half("line numbers")
    return "\n".join(
        match[3] if match else line for match, line in zip(matches, lines, strict=True)
    )


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[0]), text)


def _unescaped_replacement(text: str) -> str:
    """Refused where a `\\n` may be meant to stay one, as in a text of the program."""
    if "\\" not in text:
        return text
    plain = _unescaped(text)
    odd = any(line.count(quote) % 2 for line in plain.split("\n") for quote in "\"'`/")
    if odd or "\n" in text or "\\" in plain:
        raise _half("`\\n` in place of line ends")
    return plain


def _half(what: str) -> EditRefused:
    return EditRefused(
        RefusalReason.DOUBTFUL,
        f"`find` contains {what}, and what that means for `replace` is ambiguous; quote both as in the file, without it",
    )
