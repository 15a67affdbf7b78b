"""Whose a pair on terminals is, and where it keeps its things. A pair is known by its server: the same socket is the same pair."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from podium.domain.duets import Pair
from podium.domain.errors import NotPossibleNow
from podium.domain.model import Noun, json_of
from podium.wiring.duet_pairs import socket_path
from podium.wiring.writing import write_whole

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


class Claim(Noun):
    """Whose server it is, and who sits there."""

    project: str
    pair: Pair


def claim(podium: Podium, pair: Pair) -> None:
    """Make the server this project's, with these seats, before anything is started on it.

    Raises `NotPossibleNow` where it is up for another project, or with other programs or folders: their panes would be taken for
    these.
    """
    held = _claimed(podium, pair)
    if held is not None and (held.pair.planner, held.pair.executer) != (
        pair.planner,
        pair.executer,
    ):
        raise NotPossibleNow(
            f"pair {pair.name!r} is up with other programs or folders; `podium duet down` ends it, then bring it up anew"
        )
    write_whole(
        _file_of(podium, pair), json_of(Claim(project=_project(podium), pair=pair)), mode=0o600
    )


def as_claimed(podium: Podium, pair: Pair) -> Pair:
    """The pair as it is up, or as it is named where it is not. Raises `NotPossibleNow` where it is another project's."""
    held = _claimed(podium, pair)
    return pair if held is None else held.pair


def let_go(podium: Podium, pair: Pair) -> None:
    _file_of(podium, pair).unlink(missing_ok=True)


def pair_folder(podium: Podium, pair: Pair) -> Path:
    """Homes, messages and records of its programs."""
    return podium.folders.user_state / "duets" / _name_of(podium, pair)


def door_folder(podium: Podium, pair: Pair) -> Path:
    """Where doors listen. Short, since the kernel takes no long path for a socket, and private."""
    base = Path(tempfile.gettempdir()) / f"podium-{os.getuid()}"
    folder = base / _name_of(podium, pair)[:8]
    for each in (base, folder):
        each.mkdir(mode=0o700, exist_ok=True)
        facts = each.lstat()
        if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
            raise NotPossibleNow(f"{str(each)!r} is open to others; remove it, then try again")
    return folder


def _claimed(podium: Podium, pair: Pair) -> Claim | None:
    """Who has it. None: nobody, its server is not there, or what was kept cannot be read."""
    if not socket_path(pair.socket, podium.environ).exists():
        return None
    try:
        held = Claim.model_validate_json(_file_of(podium, pair).read_bytes())
    except (OSError, ValidationError):
        return None
    if held.project != _project(podium):
        raise NotPossibleNow(
            f"the tmux server {pair.socket!r} holds the pair of {held.project!r}; end it there with `podium duet down`, or "
            "choose another with --socket NAME"
        )
    return held


def _project(podium: Podium) -> str:
    return str(podium.folders.project)


def _name_of(podium: Podium, pair: Pair) -> str:
    socket = str(socket_path(pair.socket, podium.environ))
    return hashlib.sha256(socket.encode()).hexdigest()[:16]


def _file_of(podium: Podium, pair: Pair) -> Path:
    folder = pair_folder(podium, pair)
    return folder.with_name(f"{folder.name}.json")
