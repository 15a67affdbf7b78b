"""`move_file`, `copy_file` and `make_folder`: nothing that stands somewhere is replaced."""

from __future__ import annotations

import os
import stat

from podium.domain.errors import OutcomeUnknown, ToolBroke
from podium.domain.gating import Access, PathArgument, Tier, ToolSpec
from podium.domain.model import Json
from podium.tools.beneath import (
    look_beneath,
    make_folder_beneath,
    move_beneath,
    read_beneath,
    write_beneath,
)
from podium.tools.intents import attempt, fix, recall
from podium.tools.kept import sha256_of
from podium.tools.orders.files import PATH, schema_of
from podium.tools.places import LARGEST_BYTES, must_be_file, place_of
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope, in_thread


async def _move_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_move, scope, place_of(scope), place_of(scope, "to"))


def _move(scope: ToolScope, path: str, to: str) -> dict[str, Json]:
    source, target = look_beneath(scope.root, path), look_beneath(scope.root, to)
    intent = recall(scope)
    if intent is None:
        identity = identity_of(must_be_file(source, path))
        must_be_free(target, to)
        intent = fix(scope, identity)
    moved = is_same(target, intent)
    if is_same(source, intent) and (moved or target is None):
        # With both names a crash came in between, and the old one is left to be taken away.
        with attempt(scope, lambda: look_beneath(scope.root, to) is None):
            move_beneath(scope.root, path, to)
    elif not moved:
        raise meanwhile(path, to)
    return {"path": path, "to": to, "bytes": intent["bytes"], "undo": {"path": to, "to": path}}


async def _copy_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_copy, scope, place_of(scope), place_of(scope, "to"))


def _copy(scope: ToolScope, path: str, to: str) -> dict[str, Json]:
    target = look_beneath(scope.root, to)
    intent = recall(scope)
    if intent is None:
        content, mode = _source(scope, path)
        must_be_free(target, to)
        intent = fix(scope, {"sha256": sha256_of(content), "bytes": len(content), "mode": mode})
    if target is None:
        _write_copy(scope, path, to, intent)
    elif sha256_of(read_beneath(scope.root, to, LARGEST_BYTES, alone=True)) != intent["sha256"]:
        raise meanwhile(path, to)
    undo = {"path": to, "written_sha256": intent["sha256"], "previous_sha256": None}
    said = {"sha256": intent["sha256"], "bytes": intent["bytes"]}
    return {"path": path, "to": to, **said, "undo": undo}


def _source(scope: ToolScope, path: str) -> tuple[bytes, int]:
    found = must_be_file(look_beneath(scope.root, path), path)
    content = read_beneath(scope.root, path, LARGEST_BYTES, alone=True)
    text = content.decode(errors="replace")
    if scope.redact(text) != text:
        raise ToolBroke(f"{path!r} holds a secret; it is not copied")
    return content, stat.S_IMODE(found.st_mode) & 0o777


def _write_copy(scope: ToolScope, path: str, to: str, intent: dict[str, Json]) -> None:
    content = read_beneath(scope.root, path, LARGEST_BYTES, alone=True)
    if sha256_of(content) != intent["sha256"]:
        raise meanwhile(path, to)
    with attempt(scope, lambda: look_beneath(scope.root, to) is None):
        write_beneath(scope.root, to, content, scope.key, mode=int(intent["mode"]))


async def _make_folder(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_make, scope, place_of(scope))


def _make(scope: ToolScope, path: str) -> dict[str, Json]:
    found = look_beneath(scope.root, path)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise ToolBroke(f"{path!r} is there and no folder; choose another name")
    intent = recall(scope) or fix(scope, {"created": found is None})
    if found is None:
        make_folder_beneath(scope.root, path)
    return {"path": path, "created": intent["created"]}


def must_be_free(found: os.stat_result | None, path: str) -> None:
    if found is not None:
        raise ToolBroke(f"{path!r} is there already and is not replaced; choose another name")


def identity_of(found: os.stat_result) -> dict[str, Json]:
    """What stays the same when a file or folder is moved, and differs between two of them.

    A folder's time of change follows what is put into it, so its number alone counts. The device
    is left out: it may be another one after the machine was started again.
    """
    if stat.S_ISDIR(found.st_mode):
        return {"inode": found.st_ino, "bytes": None, "changed_ns": None}
    return {"inode": found.st_ino, "bytes": found.st_size, "changed_ns": found.st_mtime_ns}


def is_same(found: os.stat_result | None, identity: dict[str, Json]) -> bool:
    return found is not None and identity_of(found) == identity


def meanwhile(path: str, to: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{path!r} or {to!r} was changed meanwhile by somebody else; look at both, and send a new "
        "order if it is still needed"
    )


MOVE_FILE = Tool(
    ToolSpec(
        name="move_file",
        description="Give a file another place or name, where nothing stands yet. Folders stay.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        undo="move_file",
        receipt_fields=("path", "to", "bytes"),
        paths=(
            PathArgument(name="path", access=Access.WRITE),
            PathArgument(name="to", access=Access.WRITE),
        ),
        input_schema=schema_of({"path": PATH, "to": PATH}),
    ),
    _move_file,
)

COPY_FILE = Tool(
    ToolSpec(
        name="copy_file",
        description="Copy a file to a place where nothing stands yet.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        undo="restore_file",
        receipt_fields=("path", "to", "sha256", "bytes"),
        paths=(
            PathArgument(name="path", access=Access.READ),
            PathArgument(name="to", access=Access.WRITE),
        ),
        input_schema=schema_of({"path": PATH, "to": PATH}),
    ),
    _copy_file,
)

MAKE_FOLDER = Tool(
    ToolSpec(
        name="make_folder",
        description="Make a folder, with those above it.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        receipt_fields=("path", "created"),
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema=schema_of({"path": PATH}),
    ),
    _make_folder,
)
