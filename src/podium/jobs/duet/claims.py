"""Claims on a pair: the project that owns its tmux server, and the folders that the user granted to duets."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from podium.app.inventory import Blocker, UninstallCheck, entries
from podium.config.folders import write_whole
from podium.config.trust import TrustBook
from podium.core.errors import CallRefused, NotPossibleNow, PodiumError
from podium.core.model import FrozenModel, json_of
from podium.jobs.duet.models import Pair
from podium.jobs.duet.pairs import socket_path

if TYPE_CHECKING:
    from podium.app.app import Podium


class PairClaim(FrozenModel):
    """Project that owns a tmux server, and the pair on it."""

    project: str
    pair: Pair


def claim(podium: Podium, pair: Pair) -> None:
    """Claim the pair's server for this project before anything is started on it.

    Raises `NotPossibleNow` if it is up for another project, or with other programs or folders, whose panes would be
    mistaken for these.
    """
    held = _claimed(podium, pair)
    if held is not None and (held.pair.planner, held.pair.executer) != (
        pair.planner,
        pair.executer,
    ):
        raise NotPossibleNow(
            f"pair {pair.name!r} is up with other programs or folders; run `podium duet down` first"
        )
    write_whole(
        _file_of(podium, pair), json_of(PairClaim(project=_project(podium), pair=pair)), mode=0o600
    )


def as_claimed(podium: Podium, pair: Pair) -> Pair:
    """Return the pair as it is up, or `pair` if it is not. Raises `NotPossibleNow` if another project owns its server."""
    held = _claimed(podium, pair)
    return pair if held is None else held.pair


def let_go(podium: Podium, pair: Pair) -> None:
    _file_of(podium, pair).unlink(missing_ok=True)


def pair_folder(podium: Podium, pair: Pair) -> Path:
    """Return the folder with homes, messages and records of its programs."""
    return podium.folders.user_state / "duets" / _name_of(podium, pair)


def hook_folder(podium: Podium, pair: Pair) -> Path:
    """Make the private folder of hook sockets. Its path is short, since the kernel limits socket paths."""
    base = Path(tempfile.gettempdir()) / f"podium-{os.getuid()}"
    folder = base / _name_of(podium, pair)[:8]
    for path in (base, folder):
        path.mkdir(mode=0o700, exist_ok=True)
        facts = path.lstat()
        if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
            raise NotPossibleNow(
                f"{str(path)!r} is accessible to other users; remove it and try again"
            )
    return folder


def _claimed(podium: Podium, pair: Pair) -> PairClaim | None:
    """Read the claim. None: there is none, its server is not up, or its file cannot be read."""
    if not socket_path(pair.socket, podium.environ).exists():
        return None
    try:
        held = PairClaim.model_validate_json(_file_of(podium, pair).read_bytes())
    except (OSError, ValidationError):
        return None
    if held.project != _project(podium):
        raise NotPossibleNow(
            f"the tmux server {pair.socket!r} is in use by project {held.project!r}; run `podium duet down` there, or "
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


_GRANT = "duet"


def ungranted(podium: Podium, pair: Pair) -> tuple[str, ...]:
    """List the folders of the pair without a grant."""
    book = _book(podium)
    folders = dict.fromkeys((pair.planner.cwd, pair.executer.cwd))
    return tuple(folder for folder in folders if not book.trusts(Path(folder), _GRANT))


def grant(podium: Podium, pair: Pair) -> tuple[str, ...]:
    """Let duets work in the folders of this pair from now on. Returns the new ones."""
    new, book = ungranted(podium, pair), _book(podium)
    for folder in new:
        book.trust(Path(folder), _GRANT)
    return new


def refuse_ungranted(podium: Podium, pair: Pair) -> None:
    """Raise `CallRefused` if the pair would work in a folder without a grant."""
    if missing := ungranted(podium, pair):
        raise CallRefused(
            f"a duet works in your own folder, not in a copy; access to {', '.join(map(repr, missing))} is not granted; "
            "grant it with `podium duet up --grant`"
        )


def _book(podium: Podium) -> TrustBook:
    return TrustBook(podium.folders.user_state / "duets")


class RunningPairs(UninstallCheck):
    """Pairs of terminals whose tmux server runs keep their project from being removed."""

    def running(self, *, everywhere: bool) -> Iterator[Blocker]:
        folders = self.podium.folders
        for file in entries(folders.user_state / "duets"):
            if not file.is_file():
                continue
            with suppress(OSError, ValidationError, PodiumError):
                claim = PairClaim.model_validate_json(file.read_bytes())
                if not everywhere and claim.project != str(folders.project):
                    continue
                path = str(socket_path(claim.pair.socket, self.podium.environ))
                # With another TMUX_TMPDIR nobody can tell from here.
                if file.stem == hashlib.sha256(path.encode()).hexdigest()[:16]:
                    with socket.socket(socket.AF_UNIX) as server:
                        server.connect(path)
                why = f"pair {claim.pair.name!r} is up; end it with `podium duet down` there"
                yield Blocker(what=claim.project, why=why, busy=True)
