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
        tokens = shlex.split(text)
        if not tokens:
            raise ValueError("a command pattern may not be empty")
        if tokens[-1] == "*":
            tokens[-1] = REST
        self._tests = tuple(token if token == REST else _token_test(token) for token in tokens)
        self.program = tokens[0] if not _WILD & set(tokens[0]) else None
        """The program when the pattern names one plainly; None when it may be several."""

    def fits(self, command: Sequence[str]) -> bool:
        """Greedy matching with one step back, linear in practice."""
        at_token = at_pattern = 0
        retry_token, retry_pattern = 0, -1
        while at_token < len(command):
            test = self._tests[at_pattern] if at_pattern < len(self._tests) else None
            if test == REST:
                retry_token, retry_pattern = at_token, at_pattern
                at_pattern += 1
            elif callable(test) and test(command[at_token]):
                at_token += 1
                at_pattern += 1
            elif retry_pattern >= 0:
                retry_token += 1
                at_token, at_pattern = retry_token, retry_pattern + 1
            else:
                return False
        return all(token == REST for token in self._tests[at_pattern:])

    def may_fit(self, command: Sequence[str]) -> bool:
        """Tell whether it could fit once words that are only known when they run are known."""
        prefix: list[str] = []
        for token in command:
            if COMPUTED in token or ANY in token:
                return any(
                    self._fits_beginning(prefix, length) for length in range(len(self._tests) + 1)
                )
            prefix.append(token)
        return self.fits(command)

    def _fits_beginning(self, prefix: Sequence[str], length: int) -> bool:
        shorter = CommandPattern.__new__(CommandPattern)
        shorter._tests = self._tests[:length]
        return shorter.fits(prefix)


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


def _token_test(token: str) -> Callable[[str], object]:
    return text_glob(token).fullmatch if _WILD & set(token) else token.__eq__
