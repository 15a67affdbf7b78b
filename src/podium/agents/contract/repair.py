"""Repair of broken JSON, only where the repaired value provably says what was written, and all of it.

Python's reader or `json-repair` proposes; `says_the_same` checks the proposal against the source,
character by character. What it completed, dropped, guessed or turned into another type is not
accepted.

The source is walked along the value. Allowed to differ from JSON: comments, trailing commas, a line
break in place of a comma, bare keys, single or typographic quotes, Python's names for literals, raw
line breaks in strings, and quotes inside a string where they can mean nothing else.
"""

from __future__ import annotations

import math
import re
from itertools import accumulate

from podium.agents.contract.json_objects import MAX_DEPTH, check_value, load_object
from podium.core.model import Json

_GAP = re.compile(r"(?:[\s\u200b\u2060\ufeff]++|//[^\n]*+|#[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$-]*+")
_NUMBER = re.compile(r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])")
_LITERALS = {True: ("true", "True"), False: ("false", "False"), None: ("null", "None")}
_CLOSING = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’"}
_ESCAPED = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}  # fmt: skip
_MAY_END = set(",:}]\n")
_BEFORE_QUOTATION = set(" \t\n([-—–/")
_AFTER_QUOTATION = set(" \t\n).;!?-—–/")
_OTHER_ESCAPES = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|U[0-9A-Fa-f]{8}|N\{|[0-7])")  # of Python, C
_RAW_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LEAVES_OUT = re.compile(
    r"\.\.|…|\b(?:remaining|rest|same|unchanged|omitted|others?|similar|etc|and so on|todo|fixme|or|if|should)\b",
    re.IGNORECASE,
)
# Before these a backslash is markdown's or a shell's: whether it belongs to the text cannot be told.
_ESCAPED_ELSEWHERE = set("_*!$#~`")
_CONTROL_ESCAPES = set("bfnrt")
_WRAPPED_AT = 60
"""Characters from which on a line that ends in a string may have been broken by a terminal."""


# A path, a hash, a name: what a terminal breaks and nobody else does.
_BROKEN_TOKEN = re.compile(r"\S++\n\s*+\S++")


class _Differs(Exception):
    """The source does not say this."""


def says_the_same(source: str, value: Json, names: re.Pattern[str] | None = None) -> bool:
    """Return whether the source, read with the allowances above, is this value and nothing more.

    A comment in which one of these `names` stands speaks of the answer itself, and is more.
    """
    if _RAW_CONTROLS.search(source):
        return False
    walk = _Walk(source, names)
    try:
        walk.value(value)
        walk.gap()
    except (_Differs, RecursionError):
        return False
    # Beside a backslash that escapes nothing, `\\n` and its like are as likely two characters.
    return walk.at == len(source) and not (walk.bare_backslash and walk.control_escape)


class _Walk:
    def __init__(self, source: str, names: re.Pattern[str] | None) -> None:
        self.source = source
        self.names = names
        self.at = 0
        self.bare_backslash = False
        self.control_escape = False

    def gap(self) -> str:
        """Step over white space and comments. Some comments stand for what was left out, or say otherwise."""
        match = _GAP.match(self.source, self.at)
        skipped = match[0] if match else ""
        says_more = self.names is not None and self.names.search(skipped)
        if says_more or _LEAVES_OUT.search(skipped):
            raise _Differs
        self.at += len(skipped)
        return skipped

    def value(self, value: Json) -> None:
        self.gap()
        if isinstance(value, dict):
            self._container("{", "}", value.items(), self._member)
        elif isinstance(value, list):
            self._container("[", "]", value, self.value)
        elif isinstance(value, str):
            self._string(value)
        elif value is None or isinstance(value, bool):
            self._literal(value)
        else:
            self._number(value)

    def _container(self, begin: str, end: str, items: Json, walk_item: Json) -> None:
        self._expect(begin)
        for number, item in enumerate(items):
            if number:
                self._separator(comma_needed=begin == "[")
            walk_item(item)
        skipped = self.gap()
        if not items and skipped.strip():
            raise _Differs  # a comment in place of everything
        if items and self._peek() == ",":
            self.at += 1
            self.gap()
        self._expect(end)

    def _separator(self, *, comma_needed: bool) -> None:
        """In a list, two strings without a comma may as well be one, as Python and C have it."""
        skipped = self.gap()
        if self._peek() == ",":
            self.at += 1
        elif comma_needed or "\n" not in skipped:
            raise _Differs

    def _member(self, member: tuple[str, Json]) -> None:
        key, value = member
        self.gap()
        bare = _BARE_KEY.match(self.source, self.at)
        if bare is None:
            self._string(key)
        elif bare[0] == key:
            self.at = bare.end()
        else:
            raise _Differs
        self.gap()
        self._expect(":")
        self.value(value)

    def _literal(self, value: bool | None) -> None:
        for name in _LITERALS[value]:
            end = self.at + len(name)
            if self.source[self.at : end] == name and not self.source[end : end + 1].isalnum():
                self.at = end
                return
        raise _Differs

    def _number(self, value: float) -> None:
        match = _NUMBER.match(self.source, self.at)
        if match is None or not _is_number(match[0], value):
            raise _Differs
        self.at = match.end()

    def _string(self, value: str) -> None:
        close = _CLOSING.get(self._peek())
        if close is None:
            raise _Differs
        self.at += 1
        begin, inner_quotes = self.at, 0
        for char in value:
            if self._peek() == "\\":
                self._escape(char)
                continue
            if self._peek() != char:
                raise _Differs
            self.at += 1
            if char == "\n":
                self._check_break()
            elif char == close:
                inner_quotes += self._inner_quote(close, inner_quotes)
        if inner_quotes % 2 or _BROKEN_TOKEN.fullmatch(self.source, begin, self.at):
            raise _Differs
        self._expect(close)

    def _check_break(self) -> None:
        """A line break in a string that a terminal may have made. Differs where it would change what is meant."""
        end = self.at - 1
        length = end - self.source.rfind("\n", max(0, end - _WRAPPED_AT), end) - 1
        is_long = length >= _WRAPPED_AT or (end >= _WRAPPED_AT and length == end)
        is_indented = self._peek() in (" ", "\t") and not self.source[end - 1].isspace()
        if is_long and is_indented:
            raise _Differs

    def _inner_quote(self, quote: str, earlier: int) -> int:
        """Step over a quote that is text: 1 when it needs a partner. Differs where it could be more."""
        before, after = self.source[self.at - 2 : self.at - 1], self._peek()
        if quote in "'’":
            if before.isalnum() and after.isalnum():
                return 0  # an apostrophe
            raise _Differs
        opens = before in _BEFORE_QUOTATION and not after.isspace()
        closes = not before.isspace() and after in _AFTER_QUOTATION
        if not (closes if earlier % 2 else opens) or self._could_end_here():
            raise _Differs
        return 1

    def _could_end_here(self) -> bool:
        following = self.source[self.at : self.at + 200].lstrip(" \t\r")[:1]
        return not following or following in _MAY_END

    def _escape(self, char: str) -> None:
        escape = self.source[self.at + 1 : self.at + 2]
        if escape == "u":
            self._code_point(char)
        elif escape in _ESCAPED:
            if _ESCAPED[escape] != char:
                raise _Differs
            self.at += 2
            self.control_escape |= escape in _CONTROL_ESCAPES and self._peek().isalpha()
        elif (
            char == "\\"
            and escape not in _ESCAPED_ELSEWHERE
            and not _OTHER_ESCAPES.match(self.source, self.at)
        ):
            self.at += 1  # no escape at all: the backslash of a path or a pattern
            self.bare_backslash = True
        else:
            raise _Differs

    def _code_point(self, char: str) -> None:
        units = char.encode("utf-16-be", "surrogatepass").hex()
        for unit in (units[:4], units[4:]):
            if unit:
                if self.source[self.at : self.at + 6].lower() != "\\u" + unit:
                    raise _Differs
                self.at += 6

    def _peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise _Differs
        self.at += 1


def _is_number(written: str, value: float) -> bool:
    if isinstance(value, int):
        return written == str(value)
    return math.isfinite(value) and not written.lstrip("-").isdigit() and float(written) == value


MAX_WITH_RAW_BREAKS = 200_000
"""Characters of an object whose only fault are line breaks that nobody escaped."""

MAX_CHARACTERS = 4_000
"""Characters of an object with other faults. json-repair looks ahead at every odd quote: its time grows
with the square of the length, and 32,000 characters of them were seen to take it a minute."""


# Strings are passed over whole, one that does not end to the end of the text, so that each is looked at
# once; a comma before a closing bracket goes, a bare key gets its quotes.
_SMALL_DEFECTS = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])|(?<![\w$])[A-Za-z_$][\w$]*+(?=\s*+:)', re.DOTALL
)


def repair_object(source: str, names: re.Pattern[str] | None = None) -> dict[str, Json]:
    """The object that was meant. Raises `ValueError` when that would be guessing.

    `names` are what the comments in it must not speak of.
    """
    value = _with_raw_breaks(source) or _with_small_defects(source) or _proposal(source)
    if not isinstance(value, dict) or not says_the_same(source, value, names):
        raise ValueError("it cannot be repaired without guessing")
    check_value(value)
    return value


def _with_raw_breaks(source: str) -> Json:
    """The commonest fault of all, read exactly: line breaks and tabs that nobody escaped."""
    if len(source) > MAX_WITH_RAW_BREAKS:
        raise ValueError(f"it is longer than {MAX_WITH_RAW_BREAKS} characters and was not repaired")
    try:
        return load_object(source, raw_breaks=True)
    except ValueError:
        return None


def _with_small_defects(source: str) -> Json:
    """Commas too many and keys without quotes, read exactly, in objects of any length."""
    try:
        return load_object(_SMALL_DEFECTS.sub(_put_right, source), raw_breaks=True)
    except ValueError:
        return None


def _put_right(match: re.Match[str]) -> str:
    text = match[0]
    return text if text[0] == '"' else "" if text == "," else f'"{text}"'


def _proposal(source: str) -> Json:
    if len(source) > MAX_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_CHARACTERS} characters and was not repaired")
    if _depth(source) > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    # Late, because few replies need it.
    from json_repair import loads

    try:
        return loads(source, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"it cannot be repaired ({type(error).__name__})") from None


def _depth(source: str) -> int:
    """Measure the depth of the brackets, those in strings included: json-repair pays for each level again."""
    steps = ((char in "{[") - (char in "}]") for char in source)
    return max(accumulate(steps), default=0)
