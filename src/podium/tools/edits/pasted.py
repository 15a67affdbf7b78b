"""What comes along when a snippet was copied from elsewhere: fences, line numbers, escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from podium.tools.edits.nouns import Edit, EditRefused, Reason

_FENCE = re.compile(r"[ \t]*(`{3,9}|~{3,9})[^`\n]*")
_NUMBERED = re.compile(r"^[ ]*(\d+)([ ]?[|\u2502\u2192:][ ]?|\t)(.*)$")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True)
class Unwrapped:
    """An edit without what came along. `line`: where it must stand then, from 1; None: anywhere."""

    edit: Edit
    line: int | None = None


def unwrapped(edit: Edit) -> Iterator[Unwrapped]:
    """Other readings of an edit that was found nowhere as it is.

    Raises `EditRefused` when `find` can be unwrapped and `replace` only by half, or when nothing is
    left of that: whether an empty line shall stay cannot be told.
    """
    edit = _without_last_end(edit)
    for other in _readings(edit):
        if not other.edit.replace.strip():
            raise _half("more around it than the text")
        yield other


def _readings(edit: Edit) -> Iterator[Unwrapped]:
    if (inside := _inside_fence(edit.find)) is not None:
        yield Unwrapped(replace(edit, find=inside, replace=_without_fence(edit.replace)))
    if (numbered := _without_numbers(edit)) is not None:
        yield numbered
    if "\\n" in edit.find and "\n" not in edit.find:
        plain = _unescaped_replacement(edit.replace)
        yield Unwrapped(_without_last_end(replace(edit, find=_unescaped(edit.find), replace=plain)))


def _without_last_end(edit: Edit) -> Edit:
    """The line end behind a snippet is part of neither text, if both have it."""
    if not edit.find.endswith("\n"):
        return edit
    return replace(edit, find=edit.find[:-1], replace=edit.replace.removesuffix("\n"))


def _inside_fence(text: str) -> str | None:
    """The lines of a block of code; None when the text is no such block."""
    first, *lines = text.strip("\n").split("\n")
    opened = _FENCE.fullmatch(first)
    if opened is None or len(lines) < 2 or lines[-1].strip() != opened[1]:
        return None
    return "\n".join(lines[:-1])


def _without_fence(text: str) -> str:
    if (inside := _inside_fence(text)) is not None:
        return inside
    if any(map(_FENCE.match, text.split("\n"))) or text != text.strip("\n"):
        raise _half("the fence of a code block")
    return text


def _without_numbers(edit: Edit) -> Unwrapped | None:
    lines = edit.find.split("\n")
    matches = [_NUMBERED.match(line) for line in lines]
    found = [match for match in matches if match]
    if len(found) < len(lines) or len(lines) < 2 or len({match[2] for match in found}) > 1:
        return None
    numbers = [int(match[1]) for match in found]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    find = "\n".join(match[3] for match in found)
    # With a colon it may be a table of the program itself: then only its own place will do.
    line = numbers[0] if ":" in found[0][2] else None
    return Unwrapped(replace(edit, find=find, replace=_unnumbered(edit.replace, found[0][2])), line)


def _unnumbered(text: str, separator: str) -> str:
    lines = text.split("\n")
    matches = [_NUMBERED.match(line) for line in lines]
    numbered = [match for match in matches if match and match[2] == separator]
    if not numbered:
        return text
    if len(numbered) < len([line for line in lines if line.strip()]):
        raise _half("numbers of lines")
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
    odd = any(line.count(mark) % 2 for line in plain.split("\n") for mark in "\"'`/")
    if odd or "\n" in text or "\\" in plain:
        raise _half("`\\n` in place of line ends")
    return plain


def _half(what: str) -> EditRefused:
    return EditRefused(
        Reason.DOUBTFUL,
        f"`find` has {what} and what `replace` means by its own cannot be told; send both as they "
        "stand in the file",
    )
