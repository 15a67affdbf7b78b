"""Run ids as names of files: only plain ones, so that no id reaches outside its folder."""

from __future__ import annotations

import re

from podium.domain.errors import BadInput

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def is_plain(run_id: str) -> bool:
    return _PLAIN.fullmatch(run_id) is not None


def plain_name(run_id: str) -> str:
    """The id, if it can be a file's name as it is. Raises `BadInput` for anything else."""
    if not is_plain(run_id):
        raise BadInput(
            f"run id {run_id!r} cannot name a file; use letters, digits, `_` and `-` alone"
        )
    return run_id
