"""The note in a project's folder that its record is on a server: whoever forgets the variable is told."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import BadInput
from podium.wiring.folders import Folders
from podium.wiring.writing import write_whole

MARK = "database"
_MOST_BYTES = 500


def leave_mark(folders: Folders, url: str) -> None:
    """Note where the record is, without a password. The state folder must be there."""
    from podium.journal.postgres_connection import name_of

    name = name_of(url)
    if record_server(folders) != name:
        # It only helps people: work goes on without it.
        with suppress(BadInput):
            write_whole(_file(folders), f"{name}\n", mode=0o600)


def remove_mark(folders: Folders) -> None:
    """The record is here again."""
    with suppress(OSError):
        _file(folders).unlink(missing_ok=True)


def has_mark(folders: Folders) -> bool:
    """Whether the record was put on a server."""
    return bool(record_server(folders))


def elsewhere_words(folders: Folders, environ: Mapping[str, str]) -> str:
    """What to tell somebody who works beside the record; empty when nobody does."""
    if environ.get("PODIUM_DATABASE_URL") or not (name := record_server(folders)):
        return ""
    return (
        f"this project's record is on {name}; set PODIUM_DATABASE_URL, or remove "
        f"{str(_file(folders))!r} to work here"
    )


def record_server(folders: Folders) -> str:
    """The server that the record was put on, without a password; empty when it is in the project's folder."""
    if not _file(folders).is_file():
        return ""
    try:
        with _file(folders).open("rb") as file:
            lines = file.read(_MOST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[0].strip() if lines else ""


def _file(folders: Folders) -> Path:
    return folders.state / MARK
