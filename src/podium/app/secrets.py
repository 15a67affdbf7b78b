"""Values of `secret://NAME`, and detection of texts that contain one in the clear."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.errors import UserMustAct

if TYPE_CHECKING:
    from podium.store import Redactor


_REDACTED = re.compile(r"\[redacted:([^\]\n]{1,200})\]")
_IN_EXAMPLES = ("authorization", "bearer-token", "url-password")


def resolved(
    name: str, declared: Collection[str], environ: Mapping[str, str], user_file: Path
) -> str:
    """The value behind `secret://NAME`, taken from the environment if a person declared it.

    Raises `UserMustAct` that says where to declare or set it.
    """
    if name not in declared:
        raise UserMustAct(
            f"secret {name!r} is not declared; to allow its use, add `secrets: [{name}]` to {user_file}"
        )
    value = environ.get(name)
    if not value:
        raise UserMustAct(f"secret {name!r} is not set; set it in Podium's environment")
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


def secret_finder(redactor: Redactor) -> Callable[[str], Sequence[str]]:
    """Names what the redactor would take out, but for shapes that examples in code and manuals often have.

    `SECRET_VALUE_PREFIX` stands before the name of a secret whose value is known.
    """
    # Late: only import gates look for secrets, and every command has this file.
    from podium.core.workspaces import SECRET_VALUE_PREFIX

    def secrets_in(text: str) -> Sequence[str]:
        values = redactor.values_in(text)
        # Marks that stand there already are text like any other, and must not be counted for found ones.
        unmarked = text.replace("[redacted:", "[redacted ")
        marked = redactor.text(unmarked)
        shapes = () if marked == unmarked else dict.fromkeys(_REDACTED.findall(marked))
        return (
            *(f"{SECRET_VALUE_PREFIX}{name}" for name in values),
            *(name for name in shapes if name not in (*values, *_IN_EXAMPLES)),
        )

    return secrets_in
