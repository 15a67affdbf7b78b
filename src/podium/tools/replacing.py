"""Several files brought to new contents: all of them, or none."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass

from podium.domain.errors import OutcomeUnknown
from podium.tools.beneath import find_beneath, look_beneath, remove_beneath, write_beneath
from podium.tools.kept import sha256_of
from podium.tools.places import LARGEST_BYTES
from podium.tools.scope import ToolScope


@dataclass(frozen=True)
class Standing:
    """What stands at a place now. None: nothing."""

    content: bytes | None
    mode: int | None = None

    @property
    def sha256(self) -> str | None:
        return None if self.content is None else sha256_of(self.content)


@dataclass(frozen=True)
class Replacement:
    """A place, what stands there, and what shall. Permission bits stay with the place."""

    path: str
    before: Standing
    after: Standing


def standing_at(scope: ToolScope, path: str) -> Standing:
    """The plain file there. Raises `ToolBroke` for anything else, and for one with a second name."""
    content = find_beneath(scope.root, path, LARGEST_BYTES, alone=True)
    found = look_beneath(scope.root, path) if content is not None else None
    return Standing(content, stat.S_IMODE(found.st_mode) & 0o777 if found else None)


def replace_all(scope: ToolScope, replacements: Sequence[Replacement]) -> None:
    """Make them all, removals last. What was made is taken back when a later one fails.

    Each file changes in one step and is durable. Raises `OutcomeUnknown` when one cannot be taken
    back: then some are made and some are not.
    """
    made: list[Replacement] = []
    for each in sorted(replacements, key=lambda each: each.after.content is None):
        try:
            _put(scope, each.path, each.after)
        except BaseException as error:
            _take_back(scope, [*made, each], error)
            raise
        made.append(each)


def _put(scope: ToolScope, path: str, wanted: Standing) -> None:
    if wanted.content is None:
        remove_beneath(scope.root, path)
    else:
        write_beneath(scope.root, path, wanted.content, scope.key, mode=wanted.mode)


def _take_back(scope: ToolScope, made: Sequence[Replacement], because: BaseException) -> None:
    """The last may be made or not: its error may have come behind the act."""
    for each in reversed(made):
        try:
            if standing_at(scope, each.path).sha256 != each.before.sha256:
                _put(scope, each.path, each.before)
        except Exception as error:
            raise OutcomeUnknown(
                f"a part of the change failed ({because}), and {each.path!r} could not be brought back "
                f"to what it was ({error}); look at it before you go on"
            ) from error
