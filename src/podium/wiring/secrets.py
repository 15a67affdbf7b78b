"""Secrets: what stands behind their names, and texts that hold one in the clear."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from podium.domain.errors import UserMustAct


def resolved(
    name: str, declared: Collection[str], environ: Mapping[str, str], user_file: Path
) -> str:
    """The value behind `secret://NAME`, taken from the environment if a person declared it.

    Raises `UserMustAct` that says where to declare or set it.
    """
    if name not in declared:
        raise UserMustAct(
            f"secret {name!r} is not declared, so nobody may use it; to allow it, add it to "
            f"`secrets: [{name}]` in {user_file}"
        )
    value = environ.get(name)
    if not value:
        raise UserMustAct(f"secret {name!r} is not set; put it in Podium's environment")
    return value


def secret_in(text: str, redact: Callable[[str], str], environ: Mapping[str, str]) -> str | None:
    """The name of a secret that the text holds, or None.

    `NAME` stands for what is known by its shape alone: nothing can be had as `secret://` of that.
    """
    marked = redact(text)
    if marked == text:
        return None
    name = marked.partition("[redacted:")[2].partition("]")[0]
    return name if name in environ else "NAME"
