"""Where the commands of a line run: every `cd` before them, as far as it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.domain.gating import BuiltInRule, Tier
from podium.gate.command_paths import Standing
from podium.gate.confines import may_be_seen
from podium.gate.places import relative_to
from podium.gate.refusing import Refused
from podium.gate.shell import COMPUTED, SimpleCommand

_MOST_FOLDERS = 16
_HARMLESS = frozenset({"-L", "-P", "--"})


@dataclass(slots=True)
class _Place:
    """A subshell's folder: the ones it may be, and those it would have stayed in had a `cd` failed."""

    folders: tuple[str, ...]
    left: tuple[str, ...] = ()
    been: tuple[str, ...] = ()
    """All it was before: `popd` goes back to one of them."""
    known: bool = True


class Route:
    """Follows the commands of a line in order. Raises `Refused` for a `cd` that may not be."""

    def __init__(self, root: str, folder: str) -> None:
        self._root = root
        self._folders: tuple[str, ...] = (folder,)

    def standing(self, command: SimpleCommand) -> Standing:
        """Where the command runs. After `cd` both places count: it may fail."""
        return Standing(self._root, self._folders)

    def passed(self, command: SimpleCommand) -> None:
        if command.program != "cd":
            return
        standing = Standing(self._root, self._folders)
        plain = _targets(command)
        if len(plain) != 1 or plain[0].startswith("-") or not standing.holds(plain[0]):
            raise _outside()
        reached = standing.touch(plain[0], None).paths
        self._folders = _few(tuple(dict.fromkeys((*self._folders, *reached))))


class ConfinedRoute(Route):
    """The same where the kernel keeps to the workspace what runs: a `cd` may lead to all it can see.

    A `cd` that the next command needs to succeed (`cd a && b`) leaves one place alone; one in a
    subshell ends with it. In a line with functions every folder counts for every command.
    """

    def __init__(
        self, root: str, folder: str, commands: Sequence[SimpleCommand], *, unsteady: bool
    ) -> None:
        super().__init__(root, folder)
        self._places: dict[tuple[int, ...], _Place] = {(): _Place((folder,))}
        self._all: _Place | None = None
        if unsteady:
            for command in commands:
                self.passed(command)
            places = self._places.values()
            folders = dict.fromkeys(f for p in places for f in (*p.folders, *p.left))
            self._all = _Place(_few(tuple(folders)), known=all(place.known for place in places))

    def standing(self, command: SimpleCommand) -> Standing:
        place = self._all or self._place(command)
        return Standing(self._root, place.folders, place.known)

    def passed(self, command: SimpleCommand) -> None:
        if command.program not in ("cd", "pushd", "popd"):
            return
        place = self._place(command)
        place.been = tuple(dict.fromkeys((*place.been, *place.folders)))
        if command.program == "popd":
            place.folders = _few(place.been)
            return
        plain = _targets(command)
        place.left = tuple(dict.fromkeys((*place.left, *place.folders)))
        target = plain[0] if plain else "~"
        if len(plain) > 1 or target.startswith(("-", COMPUTED)) or COMPUTED in target:
            place.known = False
            return
        reached = Standing(self._root, place.folders).touch(target, None).paths
        for path in reached:
            if relative_to(path, self._root) is None and not may_be_seen(path):
                raise _outside()
        place.folders = _few(reached)

    def _place(self, command: SimpleCommand) -> _Place:
        scope = command.scope
        while scope not in self._places:
            scope = scope[:-1]
        place = self._places[scope]
        if not command.after_success and place.left:
            place.folders = _few(tuple(dict.fromkeys((*place.folders, *place.left))))
            place.left = ()
        if scope == command.scope:
            return place
        own = self._places[command.scope] = _Place(place.folders, known=place.known)
        return own


def _targets(command: SimpleCommand) -> list[str]:
    return [word for word in command.argv[1:] if word not in _HARMLESS]


def _few(folders: tuple[str, ...]) -> tuple[str, ...]:
    if len(folders) > _MOST_FOLDERS:
        raise Refused(BuiltInRule.UNDECIDABLE_COMMAND, "too many cd in one line; use fewer")
    return folders


def _outside() -> Refused:
    return Refused(
        BuiltInRule.OUTSIDE_WORKSPACE, "cd may only go to one folder in the workspace", Tier.T2
    )
