"""Patterns a policy is written in: over the words of a command, over names, over arguments."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from podium.policy.shell import ANY, COMPUTED

REST = "**"
"""A word of a command pattern that stands for any number of words, none included."""

_WILD = frozenset("*?[")


class CommandPattern:
    """One pattern such as `git diff *`, over program and arguments word by word.

    A word may hold wildcards. `*` alone is exactly one word, at the end it is the rest of the
    command; `**` alone is any number of words anywhere. Otherwise the command must end where the
    pattern ends.
    """

    def __init__(self, text: str) -> None:
        words = shlex.split(text)
        if not words:
            raise ValueError("a command pattern may not be empty")
        if words[-1] == "*":
            words[-1] = REST
        self._words = tuple(word if word == REST else _word_test(word) for word in words)
        self.program = words[0] if not _WILD & set(words[0]) else None
        """The program when the pattern names one plainly; None when it may be several."""

    def fits(self, command: Sequence[str]) -> bool:
        """Greedy matching with one step back, linear in practice."""
        at_word = at_pattern = 0
        retry_word, retry_pattern = 0, -1
        while at_word < len(command):
            test = self._words[at_pattern] if at_pattern < len(self._words) else None
            if test == REST:
                retry_word, retry_pattern = at_word, at_pattern
                at_pattern += 1
            elif callable(test) and test(command[at_word]):
                at_word += 1
                at_pattern += 1
            elif retry_pattern >= 0:
                retry_word += 1
                at_word, at_pattern = retry_word, retry_pattern + 1
            else:
                return False
        return all(word == REST for word in self._words[at_pattern:])

    def may_fit(self, command: Sequence[str]) -> bool:
        """Whether it could fit once words that are only known when they run are known."""
        known: list[str] = []
        for word in command:
            if COMPUTED in word or ANY in word:
                return any(
                    self._fits_beginning(known, length) for length in range(len(self._words) + 1)
                )
            known.append(word)
        return self.fits(command)

    def _fits_beginning(self, known: Sequence[str], length: int) -> bool:
        shorter = CommandPattern.__new__(CommandPattern)
        shorter._words = self._words[:length]
        return shorter.fits(known)


class CommandPatterns:
    """Several patterns, found by program."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_program: dict[str, list[CommandPattern]] = {}
        self._for_any: list[CommandPattern] = []
        for pattern in map(CommandPattern, texts):
            if pattern.program is None:
                self._for_any.append(pattern)
            else:
                self._by_program.setdefault(pattern.program, []).append(pattern)

    def fit(self, command: Sequence[str]) -> bool:
        named = self._by_program.get(command[0], ()) if command else ()
        return any(pattern.fits(command) for pattern in (*named, *self._for_any))

    def may_fit(self, command: Sequence[str]) -> bool:
        named = self._by_program.get(command[0], ()) if command else ()
        return any(pattern.may_fit(command) for pattern in (*named, *self._for_any))


@lru_cache(maxsize=512)
def command_patterns(texts: tuple[str, ...]) -> CommandPatterns:
    """Patterns of a rule, compiled once: every gate of a process has the built-in policy's."""
    return CommandPatterns(texts)


class NamePatterns:
    """Globs over a name, such as a tool's or a role's."""

    def __init__(self, globs: Iterable[str]) -> None:
        listed = tuple(globs)
        self._exact = frozenset(glob for glob in listed if not _WILD & set(glob))
        self._tests = tuple(text_glob(glob) for glob in listed if glob not in self._exact)

    def fit(self, name: str) -> bool:
        return name in self._exact or any(test.fullmatch(name) for test in self._tests)


@lru_cache(maxsize=512)
def text_glob(glob: str) -> re.Pattern[str]:
    """A glob over plain text: `*` is anything, slashes included."""
    return re.compile(fnmatch.translate(glob))


def _word_test(word: str) -> Callable[[str], object]:
    return text_glob(word).fullmatch if _WILD & set(word) else word.__eq__
