"""Proof that a mended value says what its source says, and all of it.

The source is walked along the value. Allowed to differ from JSON: comments, trailing commas, a line
break in place of a comma, bare keys, single or typographic quotes, Python's names for literals, raw
line breaks in strings, and quotes inside a string where they can mean nothing else.
"""

from __future__ import annotations

import re

from podium.domain.model import Json

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
_LEAVES_OUT = re.compile(r"\.\.|…")


class _Differs(Exception):
    """The source does not say this."""


def says_the_same(source: str, value: Json) -> bool:
    """Whether the source, read with the allowances above, is this value and nothing more."""
    if _RAW_CONTROLS.search(source):
        return False
    walk = _Walk(source)
    try:
        walk.value(value)
        walk.gap()
    except (_Differs, RecursionError):
        return False
    return walk.at == len(source)


class _Walk:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0

    def gap(self) -> str:
        """Step over white space and comments. A comment with dots stands for what was left out."""
        found = _GAP.match(self.source, self.at)
        skipped = found[0] if found else ""
        if _LEAVES_OUT.search(skipped):
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
                self._separator()
            walk_item(item)
        skipped = self.gap()
        if not items and skipped.strip():
            raise _Differs  # a comment in place of everything
        if items and self._peek() == ",":
            self.at += 1
            self.gap()
        self._expect(end)

    def _separator(self) -> None:
        skipped = self.gap()
        if self._peek() == ",":
            self.at += 1
        elif "\n" not in skipped:
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
        found = _NUMBER.match(self.source, self.at)
        if found is None or found[0] != str(value):
            raise _Differs
        self.at = found.end()

    def _string(self, value: str) -> None:
        close = _CLOSING.get(self._peek())
        if close is None:
            raise _Differs
        self.at += 1
        inner_quotes = 0
        for char in value:
            if self._peek() == "\\":
                self._escape(char)
                continue
            if self._peek() != char:
                raise _Differs
            self.at += 1
            if char == close:
                inner_quotes += self._inner_quote(close, inner_quotes)
        if inner_quotes % 2:
            raise _Differs
        self._expect(close)

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
        elif char == "\\" and not _OTHER_ESCAPES.match(self.source, self.at):
            self.at += 1  # no escape at all: the backslash of a path or a pattern
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

    def _expect(self, mark: str) -> None:
        if self._peek() != mark:
            raise _Differs
        self.at += 1
