"""Links where none may be: a bind follows them, and an agent could have put them there."""

from __future__ import annotations

import os
import stat

from podium.domain.errors import NotPossibleNow, WorkspaceTampered
from podium.domain.launching import Confinement
from podium.sandbox.confining.inside import Inside, is_under, normal


def refuse_what_was_tampered_with(confinement: Confinement) -> None:
    """Look at every name between a writable tree and what is bound from inside it.

    To be called while no process of an earlier turn lives. Raises `WorkspaceTampered` for a link, and
    `NotPossibleNow` for what is not there.
    """
    inside = Inside(confinement.mounts)
    writable = [normal(mount.source) for mount in confinement.mounts if mount.writable]
    pinned = [inside.outside(path) for path in confinement.pinned]
    for path in (*pinned, *(normal(mount.source) for mount in confinement.mounts)):
        for top in writable:
            if path != top and is_under(path, top):
                _look(top, path)


def _look(top: str, path: str) -> None:
    at = top.rstrip("/")
    names = path[len(at) + 1 :].split("/")
    for count, name in enumerate(names, 1):
        at = f"{at}/{name}"
        try:
            mode = os.lstat(at).st_mode
        except FileNotFoundError:
            raise NotPossibleNow(
                f"{at!r} is to be kept as it is, and is not there; create it first"
            ) from None
        whole = count == len(names)
        if stat.S_ISLNK(mode) or not (whole or stat.S_ISDIR(mode)):
            raise WorkspaceTampered(
                f"{at!r} is not the plain folder or file it was; nothing runs there until somebody has "
                "looked at it and put it back"
            )
