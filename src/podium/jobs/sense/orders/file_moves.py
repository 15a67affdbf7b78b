"""`move_file`, `copy_file`, `make_folder`, `trash_file` and `untrash_file`: nothing is replaced or lost."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path, PurePosixPath

from podium.core.decisions import Access, PathArgument, Tier, ToolSpec
from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.jobs.sense.orders.file_edits import PATH, schema_of
from podium.platform.completion import in_thread
from podium.platform.safe_files import (
    make_folder_below,
    move_below,
    read_below,
    rename_below,
    status_below,
    write_below,
)
from podium.tools.file_changes import (
    MAX_BYTES,
    attempt,
    fix,
    key_digest,
    must_be_file,
    path_of_argument,
    recall,
    sha256_of,
)
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope


async def _move_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_move, scope, path_of_argument(scope), path_of_argument(scope, "to"))


def _move(scope: ToolScope, path: str, to: str) -> dict[str, Json]:
    source, target = status_below(scope.root, path), status_below(scope.root, to)
    intent = recall(scope)
    if intent is None:
        identity = identity_of(must_be_file(source, path))
        must_be_free(target, to)
        intent = fix(scope, identity)
    moved = is_same(target, intent)
    if is_same(source, intent) and (moved or target is None):
        # With both names a crash came in between, and the old one is left to be taken away.
        with attempt(scope, lambda: status_below(scope.root, to) is None):
            move_below(scope.root, path, to)
    elif not moved:
        raise meanwhile(path, to)
    return {"path": path, "to": to, "bytes": intent["bytes"], "undo": {"path": to, "to": path}}


async def _copy_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_copy, scope, path_of_argument(scope), path_of_argument(scope, "to"))


def _copy(scope: ToolScope, path: str, to: str) -> dict[str, Json]:
    target = status_below(scope.root, to)
    intent = recall(scope)
    if intent is None:
        content, mode = _source(scope, path)
        must_be_free(target, to)
        intent = fix(scope, {"sha256": sha256_of(content), "bytes": len(content), "mode": mode})
    if target is None:
        _write_copy(scope, path, to, intent)
    elif sha256_of(read_below(scope.root, to, MAX_BYTES, single_name=True)) != intent["sha256"]:
        raise meanwhile(path, to)
    undo = {"path": to, "written_sha256": intent["sha256"], "previous_sha256": None}
    facts = {"sha256": intent["sha256"], "bytes": intent["bytes"]}
    return {"path": path, "to": to, **facts, "undo": undo}


def _source(scope: ToolScope, path: str) -> tuple[bytes, int]:
    status = must_be_file(status_below(scope.root, path), path)
    content = read_below(scope.root, path, MAX_BYTES, single_name=True)
    text = content.decode(errors="replace")
    if scope.redact(text) != text:
        raise ToolBroke(f"{path!r} contains a secret, so it is not copied")
    return content, stat.S_IMODE(status.st_mode) & 0o777


def _write_copy(scope: ToolScope, path: str, to: str, intent: dict[str, Json]) -> None:
    content = read_below(scope.root, path, MAX_BYTES, single_name=True)
    if sha256_of(content) != intent["sha256"]:
        raise meanwhile(path, to)
    with attempt(scope, lambda: status_below(scope.root, to) is None):
        write_below(scope.root, to, content, scope.key, mode=int(intent["mode"]))


async def _make_folder(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_make, scope, path_of_argument(scope))


def _make(scope: ToolScope, path: str) -> dict[str, Json]:
    status = status_below(scope.root, path)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        raise ToolBroke(f"{path!r} exists and is not a folder; choose another name")
    intent = recall(scope) or fix(scope, {"created": status is None})
    if status is None:
        make_folder_below(scope.root, path)
    return {"path": path, "created": intent["created"]}


def must_be_free(status: os.stat_result | None, path: str) -> None:
    if status is not None:
        raise ToolBroke(f"{path!r} already exists; choose another name")


def identity_of(status: os.stat_result) -> dict[str, Json]:
    """Return facts that stay the same when a file or folder is moved, and differ between two of them.

    A folder's time of change follows what is put into it, so its number alone counts. The device
    is left out: it may be another one after the machine was started again.
    """
    if stat.S_ISDIR(status.st_mode):
        return {"inode": status.st_ino, "bytes": None, "changed_ns": None}
    return {"inode": status.st_ino, "bytes": status.st_size, "changed_ns": status.st_mtime_ns}


def is_same(status: os.stat_result | None, identity: dict[str, Json]) -> bool:
    return status is not None and identity_of(status) == identity


def meanwhile(path: str, to: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{path!r} or {to!r} was changed by somebody else in the meantime; check both, and send a new "
        "order if it is still needed"
    )


MOVE_FILE = Tool(
    ToolSpec(
        name="move_file",
        description="Move or rename a file, but not a folder. The target must not exist.",
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
        description="Copy a file. The target must not exist.",
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
        description="Create a folder, with its parent folders.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        receipt_fields=("path", "created"),
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema=schema_of({"path": PATH}),
    ),
    _make_folder,
)


_STATE = ".podium"
_MAX_ENTRIES = 100_000
_NOTE_BYTES = 100_000


async def _trash_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_trash, scope, path_of_argument(scope))


def _trash(scope: ToolScope, path: str) -> dict[str, Json]:
    trash = key_digest(scope)
    to = _trash_path(trash, path)
    source = status_below(scope.root, path)
    intent = recall(scope)
    if intent is None:
        entries = _may_go(scope, path, source)
        intent = fix(scope, {**entries, "trash": trash})
    if not is_same(status_below(scope.root, to), _identity(intent)):
        if not is_same(source, _identity(intent)):
            raise meanwhile(path, to)
        with attempt(scope, lambda: status_below(scope.root, to) is None):
            _put_into_trash(scope, trash, path, to)
    undo = {"path": path, "trash": trash}
    return {"path": path, "trash": trash, "files": intent["files"], "undo": undo}


def _may_go(scope: ToolScope, path: str, source: os.stat_result | None) -> dict[str, Json]:
    """The identity of what is to go, and how many files that is."""
    if source is not None and stat.S_ISDIR(source.st_mode):
        return {**identity_of(source), "files": _count_files(scope, scope.root / path, path)}
    return {**identity_of(must_be_file(source, path)), "files": 1}


def _identity(intent: dict[str, Json]) -> dict[str, Json]:
    return {name: intent[name] for name in ("inode", "bytes", "changed_ns")}


def _count_files(scope: ToolScope, folder: Path, path: str) -> int:
    """Count the files in a folder. Raises `ToolBroke` when one of them must stay in its place."""
    files = entries = 0
    for above, folders, names in os.walk(folder, onerror=_unreadable):
        entries += len(folders) + len(names)
        files += len(names)
        if entries > _MAX_ENTRIES:
            raise ToolBroke(
                f"{path!r} has more than {_MAX_ENTRIES} entries; trash its parts separately"
            )
        for name in (*folders, *names):
            if name.lower() == ".git" or scope.passed_over(str(Path(above, name))):
                inner = Path(above, name).relative_to(scope.root).as_posix()
                raise ToolBroke(f"{path!r} contains {inner!r}, which must not be moved")
    return files


def _unreadable(error: OSError) -> None:
    raise error


def _put_into_trash(scope: ToolScope, trash: str, path: str, to: str) -> None:
    make_folder_below(scope.root, _STATE, 0o700)
    note = {"path": path, "call": scope.key, "at": scope.clock.now().isoformat()}
    write_below(scope.root, _note(trash), json.dumps(note).encode(), scope.key)
    rename_below(scope.root, path, to)


async def _untrash_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_untrash, scope, path_of_argument(scope), str(arguments["trash"]))


def _untrash(scope: ToolScope, path: str, trash: str) -> dict[str, Json]:
    resting = _trash_path(trash, path)
    source, target = status_below(scope.root, resting), status_below(scope.root, path)
    intent = recall(scope)
    if intent is None:
        if source is None or _came_from(scope, trash) != path:
            raise ToolBroke(f"{path!r} is not in the trash under {trash!r}")
        must_be_free(target, path)
        intent = fix(scope, identity_of(source))
    if not is_same(target, intent):
        if target is not None or not is_same(source, intent):
            raise meanwhile(resting, path)
        with attempt(scope, lambda: status_below(scope.root, path) is None):
            rename_below(scope.root, resting, path)
    return {"path": path, "trash": trash}


def _came_from(scope: ToolScope, trash: str) -> Json:
    try:
        note = json.loads(read_below(scope.root, _note(trash), _NOTE_BYTES))
    except (ValueError, FileNotFoundError):
        return None
    return note.get("path") if isinstance(note, dict) else None


def _note(trash: str) -> str:
    return f"{_STATE}/trash/{trash}/note.json"


def _trash_path(trash: str, path: str) -> str:
    return f"{_STATE}/trash/{trash}/was/{PurePosixPath(path).name}"


TRASH_FILE = Tool(
    ToolSpec(
        name="trash_file",
        description="Move a file, or a folder with its contents, to Podium's trash.",
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
        description="Undo a trash_file call. The original path must be free.",
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
