"""`find`: the commands it starts on what it finds, and where that lies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from podium.domain.gating import BuiltInRule
from podium.gate.refusing import Refused
from podium.gate.shell.nouns import ANY, COMPUTED

_STARTING = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_NAME_TESTS = frozenset({"-name", "-iname"})
_PATH_TESTS = frozenset({"-path", "-ipath", "-wholename"})
_LOOSENING = frozenset({"-o", "-or", "-not", "!", ","})
_OF_GIT = (
    *("HEAD", "config", "index", "packed-refs", "main", "master", "pre-commit", "objects"),
    "a1b2c3",
)
"""Names that lie in every git folder: a search for one of them finds that too."""
_LETTERS = re.compile(r"[A-Za-z0-9]")
_BEFORE_PATHS = frozenset({"-H", "-L", "-P"})


class Search(NamedTuple):
    """A `find` taken apart."""

    plain: tuple[str, ...]
    """Its words without the commands it starts."""
    started: tuple[tuple[str, ...], ...]
    """Those commands; what was found stands in them as a glob over the places searched."""


def taken_apart(words: tuple[str, ...]) -> Search:
    """Raises `Refused` when a command in it has no end."""
    plain: list[str] = []
    started: list[tuple[str, ...]] = []
    name = found_name(words) or ANY
    found = tuple(f"{place.rstrip('/')}/{name}" for place in places(words))
    at = 0
    while at < len(words):
        if words[at] not in _STARTING:
            plain.append(words[at])
            at += 1
            continue
        end = next((i for i in range(at, len(words)) if words[i] in (";", "+")), None)
        if end is None or end == at + 1:
            raise Refused(
                BuiltInRule.UNDECIDABLE_COMMAND, f"the command of find {words[at]} has no end"
            )
        started.append(tuple(_with_found(words[at + 1 : end], found)))
        at = end + 1
    return Search(tuple(plain), tuple(started))


def places(words: tuple[str, ...]) -> tuple[str, ...]:
    """Where it searches: the words before its first test."""
    found: list[str] = []
    for word in words[1:]:
        if word in _BEFORE_PATHS:
            continue
        if word.startswith(("-", "(", "!", ",")):
            break
        found.append(word)
    return tuple(found) or (".",)


def found_name(words: tuple[str, ...]) -> str:
    """What is found beneath a place, as a glob; empty when nothing narrows the search."""
    if _LOOSENING & set(words):
        return ""
    for at, word in enumerate(words[:-1]):
        pattern = words[at + 1]
        if COMPUTED in pattern or not _LETTERS.search(pattern):
            continue
        if word in _NAME_TESTS and not any(fnmatchcase(name, pattern) for name in _OF_GIT):
            return re.sub(r"[*?\[]", ANY, pattern)
        if word in _PATH_TESTS:
            return re.sub(r"[*?\[]", ANY, pattern.removeprefix("./"))
    return ""


def _with_found(words: tuple[str, ...], found: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        if word == "{}":
            yield from found
        else:
            yield word.replace("{}", COMPUTED)
