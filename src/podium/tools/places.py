"""Where an operation may act: a place beneath the root that is called by its own name."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

from podium.domain.errors import ToolBroke
from podium.domain.gating import PathUse
from podium.domain.model import Json
from podium.domain.protected_paths import GIT_DIR, STATE_DIR, protected_name
from podium.tools.beneath import must_be_alone
from podium.tools.scope import REFERENCE, ToolScope, inside

LARGEST_BYTES = 20_000_000
"""Files beyond are neither changed nor copied."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Kinds of characters that a person who reads a path does not see."""


def place_of(scope: ToolScope, argument: str = "path") -> str:
    """The judged path from the root on. Raises `ToolBroke` for one that no operation may act on."""
    scope.relative(argument)
    return place_at(scope, next(use for use in scope.call.paths if use.argument == argument))


def place_at(scope: ToolScope, use: PathUse) -> str:
    """The same of one judged path."""
    path = inside(scope.root, use.real, use.given)
    if path == ".":
        raise ToolBroke(f"{use.given!r} is the root itself; name something inside it")
    _refuse_unseen(use.given)
    _refuse_owned(path, (*PurePosixPath(path).parts, *PurePosixPath(use.given).parts))
    _refuse_links(scope, use)
    return path


def _refuse_unseen(given: str) -> None:
    for char in given:
        if unicodedata.category(char) in _UNSEEN:
            raise ToolBroke(
                f"{given!r} has the character U+{ord(char):04X}, which does not show; leave it out"
            )


def _refuse_owned(path: str, parts: Iterable[str]) -> None:
    names = {protected_name(part) for part in parts}
    if GIT_DIR in names:
        raise ToolBroke(f"{path!r} belongs to git and is changed by git commands alone")
    if STATE_DIR in names:
        raise ToolBroke(f"{path!r} belongs to Podium, which keeps its record there; leave it alone")


def _refuse_links(scope: ToolScope, use: PathUse) -> None:
    """What is judged is where a link leads; what is meant may be the link."""
    if os.path.normpath(scope.root / use.given) != use.real:
        raise ToolBroke(
            f"{use.given!r} goes through a symbolic link; name the place itself, from the root on"
        )


def must_be_file(found: os.stat_result | None, path: str) -> os.stat_result:
    """Raise `ToolBroke` unless it is a plain file with this one name."""
    if found is None:
        raise ToolBroke(f"there is no {path!r}; list the folder to see what there is")
    if stat.S_ISDIR(found.st_mode):
        raise ToolBroke(f"{path!r} is a folder; name a file")
    if not stat.S_ISREG(found.st_mode):
        raise ToolBroke(f"{path!r} is not a plain file")
    must_be_alone(found, path)
    return found


def refuse_references(value: Json) -> None:
    """Raise `ToolBroke` when a text would put a secret into a file."""
    for text in _texts(value):
        if (reference := REFERENCE.search(text)) is not None:
            raise ToolBroke(
                f"secrets are not written to files, and the text holds {reference[0]!r}; let the "
                "program read a variable instead"
            )


def _texts(value: Json) -> Iterable[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list):
            waiting += each
