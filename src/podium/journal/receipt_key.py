"""The key that seals receipts: made once, kept outside the database, never replaced in silence."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from podium.domain.errors import StoreUnusable
from podium.platform import locked_folder

KEY_BYTES = 32
HEADS_FOLDER = "heads"
"""Folder beside the key that holds the heads of the chains."""


def load_or_create_key(path: Path) -> bytes:
    """The key in this file, made on first use. Processes that race for it get the same one.

    Raises `StoreUnusable` when the file is there and is not a key, when it cannot be read or
    made, and when it is gone although heads sealed with it stand beside it.
    """
    try:
        with locked_folder(path.parent):
            if not path.exists():
                _refuse_beside_heads(path)
                _create(path)
            key = path.read_bytes()
    except OSError as error:
        raise StoreUnusable(
            str(path),
            f"the receipts' key cannot be read or made: {error.strerror or error}",
            "make file and folder accessible to this user, or set PODIUM_HOME to a folder of your own",
        ) from error
    if len(key) != KEY_BYTES:
        raise StoreUnusable(
            str(path),
            f"this is no key for receipts: {len(key)} bytes instead of {KEY_BYTES}",
            "restore the file from a backup",
        )
    return key


def _refuse_beside_heads(path: Path) -> None:
    heads = path.parent / HEADS_FOLDER
    if heads.is_dir() and any(heads.iterdir()):
        raise StoreUnusable(
            str(path),
            f"the receipts' key is gone, while {str(heads)!r} holds heads of chains sealed with it",
            "restore the key from a backup, or move the heads away to begin anew "
            "(earlier receipts can then no longer be verified)",
        )


def _create(path: Path) -> None:
    """Write a whole key or none: a crash leaves at most the side file, which the next try overwrites."""
    side = path.with_name(f".{path.name}.new")
    handle = os.open(side, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    side.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
