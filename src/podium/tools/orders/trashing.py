"""`trash_file` and its undo, `untrash_file`: out of the way, and nothing is lost."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path, PurePosixPath

from podium.domain.errors import ToolBroke
from podium.domain.gating import Access, PathArgument, Tier, ToolSpec
from podium.domain.model import Json
from podium.tools.beneath import (
    look_beneath,
    make_folder_beneath,
    read_beneath,
    rename_beneath,
    write_beneath,
)
from podium.tools.intents import attempt, fix, key_digest, recall
from podium.tools.orders.files import PATH, schema_of
from podium.tools.orders.moving import identity_of, is_same, meanwhile, must_be_free
from podium.tools.places import must_be_file, place_of
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope, in_thread

_STATE = ".podium"
_MOST_ENTRIES = 100_000
_NOTE_BYTES = 100_000


async def _trash_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_trash, scope, place_of(scope))


def _trash(scope: ToolScope, path: str) -> dict[str, Json]:
    trash = key_digest(scope)
    to = _resting_place(trash, path)
    source = look_beneath(scope.root, path)
    intent = recall(scope)
    if intent is None:
        entries = _may_go(scope, path, source)
        intent = fix(scope, {**entries, "trash": trash})
    if not is_same(look_beneath(scope.root, to), _identity(intent)):
        if not is_same(source, _identity(intent)):
            raise meanwhile(path, to)
        with attempt(scope, lambda: look_beneath(scope.root, to) is None):
            _put_into_trash(scope, trash, path, to)
    undo = {"path": path, "trash": trash}
    return {"path": path, "trash": trash, "files": intent["files"], "undo": undo}


def _may_go(scope: ToolScope, path: str, source: os.stat_result | None) -> dict[str, Json]:
    """The identity of what is to go, and how many files that is."""
    if source is not None and stat.S_ISDIR(source.st_mode):
        return {**identity_of(source), "files": _files_beneath(scope, scope.root / path, path)}
    return {**identity_of(must_be_file(source, path)), "files": 1}


def _identity(intent: dict[str, Json]) -> dict[str, Json]:
    return {name: intent[name] for name in ("inode", "bytes", "changed_ns")}


def _files_beneath(scope: ToolScope, folder: Path, path: str) -> int:
    """How many files go with a folder. Raises `ToolBroke` when one of them must stay in its place."""
    files = seen = 0
    for above, folders, names in os.walk(folder, onerror=_unreadable):
        seen += len(folders) + len(names)
        files += len(names)
        if seen > _MOST_ENTRIES:
            raise ToolBroke(f"{path!r} holds more than {_MOST_ENTRIES} entries; trash its parts")
        for name in (*folders, *names):
            if name.lower() == ".git" or scope.passed_over(str(Path(above, name))):
                inner = Path(above, name).relative_to(scope.root).as_posix()
                raise ToolBroke(f"{path!r} holds {inner!r}, which must stay where it is")
    return files


def _unreadable(error: OSError) -> None:
    raise error


def _put_into_trash(scope: ToolScope, trash: str, path: str, to: str) -> None:
    make_folder_beneath(scope.root, _STATE, 0o700)
    note = {"path": path, "call": scope.key, "at": scope.clock.now().isoformat()}
    write_beneath(scope.root, _note(trash), json.dumps(note).encode(), scope.key)
    rename_beneath(scope.root, path, to)


async def _untrash_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_untrash, scope, place_of(scope), str(arguments["trash"]))


def _untrash(scope: ToolScope, path: str, trash: str) -> dict[str, Json]:
    resting = _resting_place(trash, path)
    source, target = look_beneath(scope.root, resting), look_beneath(scope.root, path)
    intent = recall(scope)
    if intent is None:
        if source is None or _came_from(scope, trash) != path:
            raise ToolBroke(f"nothing from {path!r} lies in the trash under {trash!r} any more")
        must_be_free(target, path)
        intent = fix(scope, identity_of(source))
    if not is_same(target, intent):
        if target is not None or not is_same(source, intent):
            raise meanwhile(resting, path)
        with attempt(scope, lambda: look_beneath(scope.root, path) is None):
            rename_beneath(scope.root, resting, path)
    return {"path": path, "trash": trash}


def _came_from(scope: ToolScope, trash: str) -> Json:
    try:
        note = json.loads(read_beneath(scope.root, _note(trash), _NOTE_BYTES))
    except (ValueError, FileNotFoundError):
        return None
    return note.get("path") if isinstance(note, dict) else None


def _note(trash: str) -> str:
    return f"{_STATE}/trash/{trash}/note.json"


def _resting_place(trash: str, path: str) -> str:
    return f"{_STATE}/trash/{trash}/was/{PurePosixPath(path).name}"


TRASH_FILE = Tool(
    ToolSpec(
        name="trash_file",
        description="Put a file, or a folder with all in it, into Podium's trash.",
        tier=Tier.T2,
        idempotent=True,
        timeout_seconds=60,
        undo="untrash_file",
        receipt_fields=("path", "trash", "files"),
        paths=(PathArgument(name="path", access=Access.DELETE),),
        input_schema=schema_of({"path": PATH}),
    ),
    _trash_file,
)

UNTRASH_FILE = Tool(
    ToolSpec(
        name="untrash_file",
        description="Undo a trash_file, provided nothing stands there by now.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        receipt_fields=("path", "trash"),
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema=schema_of(
            {"path": PATH, "trash": {"type": "string", "pattern": "^[0-9a-f]{32}$"}}
        ),
    ),
    _untrash_file,
)
