"""Splits a shell line into simple commands, or says why that cannot be done for certain.

Only what every POSIX shell reads in one way is read at all: plain words, quotes without
expansion, and the joints `&&`, `||`, `;` and `|`. Everything else is undecidable, which the gate
answers with a denial. A fuller grammar can take the place of `split_command` behind the same
signature.
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import NamedTuple

from podium.gate.programs import names

LONGEST_LINE = 32_768
MOST_COMMANDS = 64
MOST_WORDS = 2_000
"""In all commands of a line together."""

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
"""The beginning of a word such as `NAME=value`."""

_PLAIN = frozenset(string.ascii_letters + string.digits + "_./:=,@%+^-")
_RESERVED = names(
    "if then else elif fi do done case esac while until for select in function coproc"
)
_MEANINGS = {
    "$": "an expansion ($)",
    "`": "a command substitution (backticks)",
    "<": "a redirection (<)",
    ">": "a redirection (>)",
    "&": "a background job (&)",
    "*": "a glob (*)",
    "?": "a glob (?)",
    "[": "a glob ([)",
    "]": "a glob (])",
    "{": "a brace expansion or group ({)",
    "}": "a brace expansion or group (})",
    "(": "a subshell or function (parenthesis)",
    ")": "a subshell or function (parenthesis)",
    "~": "a home folder (~)",
    "#": "a comment (#)",
    "!": "a negation or history expansion (!)",
    "\n": "a line break",
}


class SplitCommand(NamedTuple):
    """The simple commands of a line, each as argv; or none, and why it could not be split."""

    commands: tuple[tuple[str, ...], ...]
    undecidable: str


class _Unclear(Exception):
    """This line may mean something that its text does not show."""


def split_command(text: str) -> SplitCommand:
    """Split a line. Never raises: an odd line comes back with its reason."""
    try:
        return SplitCommand(_Splitter(text).split(), "")
    except _Unclear as unclear:
        return SplitCommand((), str(unclear))


class _Splitter:
    def __init__(self, text: str) -> None:
        _check_characters(text)
        self.text = text.strip(" \t\n")
        self.at = 0
        self.pieces: list[str] | None = None
        """What the word at hand is made of; None between words."""
        self.first_quote: int | None = None
        """How many pieces the word had, one for each character, when its first quote began."""
        self.words: list[str] = []
        self.only_assignments = True
        """Whether all words of the command so far set variables: the next may be its program."""
        self.words_taken = 0
        self.commands: list[tuple[str, ...]] = []

    def split(self) -> tuple[tuple[str, ...], ...]:
        joint = ""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t":
                self._end_word()
                self.at += 1
            elif char in ";|&":
                joint = self._take_joint()
                self._end_command(f"{joint!r} has no command before it")
            else:
                self._take_piece(char)
        self._end_word()
        if self.words or joint != ";":
            self._end_command(f"{joint!r} has no command after it" if joint else "it is empty")
        return tuple(self.commands)

    def _take_joint(self) -> str:
        pair = self.text[self.at : self.at + 2]
        joint = pair if pair in ("&&", "||") else pair[0]
        if joint == "&":
            raise _Unclear(f"it has {_MEANINGS['&']}")
        self._end_word()
        self.at += len(joint)
        return joint

    def _take_piece(self, char: str) -> None:
        if char == "'":
            self._take_single_quoted()
        elif char == '"':
            self._take_double_quoted()
        elif char == "\\":
            self._take_escape()
        elif char in _PLAIN or char.isalnum() or self._is_revision_tilde(char):
            self._add(char)
            self.at += 1
        else:
            raise _Unclear(f"it has {_MEANINGS.get(char, f'the character {char!r} unquoted')}")

    def _is_revision_tilde(self, char: str) -> bool:
        """`HEAD~1`: a tilde behind a letter or digit never stands for a home folder."""
        return char == "~" and self.pieces is not None and self.pieces[-1][-1:].isalnum()

    def _take_single_quoted(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise _Unclear("a single quote is not closed")
        self._add_quoted(self.text[self.at + 1 : end])
        self.at = end + 1

    def _take_double_quoted(self) -> None:
        self._add_quoted("")
        self.at += 1
        while (char := self.text[self.at : self.at + 1]) != '"':
            if not char:
                raise _Unclear("a double quote is not closed")
            after = self.text[self.at + 1 : self.at + 2]
            if char in "$`" or (char == "!" and after not in (" ", '"')):
                raise _Unclear(f"inside double quotes it has {_MEANINGS[char]}")
            if char == "\\":
                char = self._escaped_in_quotes(after)
            self._add_quoted(char)
            self.at += 1
        self.at += 1

    def _escaped_in_quotes(self, after: str) -> str:
        """Inside double quotes a backslash is itself, save before `$`, `"` and another one."""
        if after in ("", "`", "\n", "!"):
            raise _Unclear("it has an escape that shells read differently")
        if after not in '$"\\':
            return "\\"
        self.at += 1
        return after

    def _take_escape(self) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if after in ("", "\n"):
            raise _Unclear("it has a line continuation")
        self._add_quoted(after)
        self.at += 2

    def _add_quoted(self, piece: str) -> None:
        if self.first_quote is None:
            self.first_quote = len(self.pieces or ())
        self._add(piece)

    def _add(self, piece: str) -> None:
        if self.pieces is None:
            self.pieces = []
        self.pieces.append(piece)

    def _end_word(self) -> None:
        if self.pieces is None:
            return
        word = "".join(self.pieces)
        if self.only_assignments:
            self._check_leading_word(word)
            self.only_assignments = ASSIGNMENT.match(word) is not None
        self.words.append(word)
        self.words_taken += 1
        if self.words_taken > MOST_WORDS:
            raise _Unclear(f"it has more than {MOST_WORDS} words")
        self.pieces = None
        self.first_quote = None

    def _check_leading_word(self, word: str) -> None:
        if self.first_quote is None:
            if word in _RESERVED:
                raise _Unclear(f"it has shell grammar ({word})")
        elif ASSIGNMENT.match(word) and self.first_quote <= word.index("="):
            raise _Unclear(f"{word!r} looks like an assignment but its name is quoted")

    def _end_command(self, problem: str) -> None:
        if not self.words:
            raise _Unclear(problem)
        self.commands.append(tuple(self.words))
        self.words = []
        self.only_assignments = True
        if len(self.commands) > MOST_COMMANDS:
            raise _Unclear(f"it has more than {MOST_COMMANDS} commands")


def _check_characters(text: str) -> None:
    """Characters that terminals hide or that shells treat in ways of their own are refused everywhere."""
    if len(text) > LONGEST_LINE:
        raise _Unclear(f"it is longer than {LONGEST_LINE} characters")
    for char in text:
        if char not in "\t\n" and (not char.isascii() or not char.isprintable()):
            kind = unicodedata.category(char)
            if kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
                raise _Unclear(f"it has the invisible character U+{ord(char):04X}")
