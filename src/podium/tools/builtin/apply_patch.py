"""`apply_patch` and `restore_files`: several files at once, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.core.decisions import Access, CallOutcome, Tier, ToolSpec
from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.platform.completion import in_thread
from podium.tools.edits import EditRefused, apply_hunks, decoded, diff_between
from podium.tools.edits.patch import FilePatch, read_patch
from podium.tools.file_changes import (
    MAX_BYTES,
    FileReplacement,
    FileState,
    attempt,
    clean_diff,
    fix,
    in_turn,
    keep_for_undo,
    path_of_use,
    recall,
    refusal,
    refuse_references,
    replace_all,
    state_at,
    stored_content,
)
from podium.tools.registry import NamedPath, Tool, TouchedByCall
from podium.tools.scope import ToolScope

_CHANGE_LABELS = {"add": "added", "change": "changed", "delete": "deleted"}

NOTHING = FileState(None)


class PatchRefused(Exception):
    """One file's part of the patch does not fit. Nothing was changed."""

    def __init__(self, path: str, why: EditRefused) -> None:
        super().__init__(f"{path!r}: {why.message}")
        self.path = path
        self.why = why


@dataclass(frozen=True)
class PlannedFile:
    """Effect of the patch on one file."""

    summary: dict[str, Json]
    replacements: tuple[FileReplacement, ...]
    diff: str
    can_undo: bool


def plan(scope: ToolScope, file: FilePatch, paths: Mapping[str, str]) -> PlannedFile:
    """Raises `PatchRefused`, or `ToolBroke` for a file that cannot be patched at all."""
    path, to = _from_and_to(file, paths)
    before = state_at(scope, path)
    if to != path and state_at(scope, to).content is not None:
        raise ToolBroke(f"{to!r} already exists and is not overwritten; nothing was changed")
    try:
        after = _after(file, path, before)
        diff = diff_between(to, _text(before), _text(after), was=path)
        can_undo = _keep(scope, before)
    except EditRefused as refused:
        raise PatchRefused(path, refused) from None
    summary: dict[str, Json] = {
        "path": to,
        "change": "moved" if file.to else _CHANGE_LABELS[file.kind],
    }
    summary |= {"from": path} if file.to else {}
    summary |= {"sha256": after.sha256, "bytes": len(after.content or b"")}
    return PlannedFile(summary, tuple(_replacements(path, to, before, after)), diff, can_undo)


def what_is_left(
    scope: ToolScope,
    files: Sequence[FilePatch],
    paths: Mapping[str, str],
    fixed: Mapping[str, tuple[str | None, str | None]],
) -> Iterator[FileReplacement]:
    """Return the replacements that an earlier try did not reach. `fixed` has the hashes of every path, before and after.

    Raises `OutcomeUnknown` where neither of them stands by now.
    """
    for file in files:
        path, to = _from_and_to(file, paths)
        state = {name: state_at(scope, name) for name in {path, to}}
        if all(current.sha256 == fixed[name][1] for name, current in state.items()):
            continue
        # New places are written before old ones are removed, so what the patch starts from is there.
        if state[path].sha256 != fixed[path][0] or state[to].sha256 not in fixed[to]:
            raise OutcomeUnknown(
                f"{path!r} was changed by someone else while the patch was applied, and a part of the patch may have "
                "been made; read the files of the patch, and request only the changes that are still missing"
            )
        after = _after(file, path, state[path])
        made = _replacements(path, to, state[path], after)
        yield from (
            replacement
            for replacement in made
            if state[replacement.path].sha256 != fixed[replacement.path][1]
        )


def _from_and_to(file: FilePatch, paths: Mapping[str, str]) -> tuple[str, str]:
    path = paths[file.path]
    return path, paths[file.to] if file.to else path


def _replacements(
    path: str, to: str, before: FileState, after: FileState
) -> Iterator[FileReplacement]:
    if to == path:
        yield FileReplacement(path, before, after)
    else:
        yield FileReplacement(to, NOTHING, after)
        yield FileReplacement(path, before, NOTHING)


def _after(file: FilePatch, path: str, before: FileState) -> FileState:
    """Return the new state of a file, with its permission bits and encoding."""
    if file.kind == "add":
        if before.content is not None:
            raise ToolBroke(f"the patch adds {path!r}, which already exists; nothing was changed")
        return FileState(file.content.encode(), file.mode)
    if before.content is None:
        raise ToolBroke(f"the patch changes {path!r}, which does not exist; nothing was changed")
    if file.kind == "delete":
        _refuse_other_content(file, path, before.content)
        return NOTHING
    if not file.hunks:
        return before
    coded = decoded(before.content)
    content = coded.encoded(apply_hunks(coded.text, file.hunks).text)
    if len(content) > MAX_BYTES:
        raise ToolBroke(f"{path!r} would be larger than {MAX_BYTES} bytes; nothing was changed")
    return FileState(content, before.mode)


def _refuse_other_content(file: FilePatch, path: str, content: bytes) -> None:
    """A patch that tells what it removes means that content and no other."""
    removed = [line for hunk in file.hunks for line in hunk.old]
    text = decoded(content).text.replace("\r\n", "\n")
    if file.hunks and removed != text.removesuffix("\n").split("\n"):
        raise ToolBroke(
            f"the content of {path!r} is not what the patch deletes; nothing was changed. Read the file again"
        )


def _text(state: FileState) -> str | None:
    return None if state.content is None else decoded(state.content).text


def _keep(scope: ToolScope, before: FileState) -> bool:
    """Store the replaced content for undo. False when it is not stored."""
    if before.content is None:
        return True
    # A secret in UTF-16 shows in the text alone.
    text = decoded(before.content).text
    return scope.redact(text) == text and keep_for_undo(scope, before.content)


_MAX_RECORD = 10_000
"""Limit on the list of files, and on the list that undoes it: neither may be cut from the result."""


def _named_in_patch(arguments: dict[str, Json]) -> TouchedByCall:
    """Return every path that the patch names. A move loses nothing, so it is a write."""
    uses: list[NamedPath] = []
    for file in read_patch(arguments["patch"]):
        access = Access.DELETE if file.kind == "delete" else Access.WRITE
        uses += [NamedPath("patch", path, access) for path in file.paths]
    return TouchedByCall(paths=tuple(uses))


async def _apply_patch(
    arguments: dict[str, Json], scope: ToolScope
) -> dict[str, Json] | CallOutcome:
    files = read_patch(arguments["patch"])
    refuse_references([_added_by(file) for file in files])
    paths = _paths_by_name(scope)
    try:
        return await in_thread(_apply, scope, files, paths)
    except PatchRefused as refused:
        number = refused.why.number
        of = f"hunk {number} of {refused.path!r}" if number else repr(refused.path)
        return refusal(refused.why, scope, f"the patch, by {of},")


def _added_by(file: FilePatch) -> str:
    """The text that was not there before."""
    added = [line for hunk in file.hunks for line in hunk.new if line not in set(hunk.old)]
    return "\n".join([file.content, *added])


def _paths_by_name(scope: ToolScope) -> dict[str, str]:
    """Return the judged paths by the names in the patch. Raises `ToolBroke` where two are one."""
    paths = {use.given: path_of_use(scope, use) for use in scope.call.paths}
    folded = [path.casefold() for path in paths.values()]
    for name, path in paths.items():
        if folded.count(path.casefold()) > 1:
            raise ToolBroke(f"{name!r} is named by several paths; use only one of them")
    return paths


def _apply(scope: ToolScope, files: Sequence[FilePatch], paths: dict[str, str]) -> dict[str, Json]:
    """Bring all files to their new contents, once, however often this is tried."""
    with in_turn(scope, *paths.values()):
        intent = recall(scope)
        if intent is None:
            planned = [plan(scope, file, paths) for file in files]
            left = [replacement for one in planned for replacement in one.replacements]
            intent = fix(scope, _intent(scope, planned, left))
        else:
            hashes = {
                entry["path"]: (entry["previous_sha256"], entry["written_sha256"])
                for entry in intent["places"]
            }
            left = list(what_is_left(scope, files, paths, hashes))
        with attempt(scope, lambda: all(_is_unchanged(scope, replacement) for replacement in left)):
            replace_all(scope, left)
        result: dict[str, Json] = intent["result"]
        return result


def _intent(
    scope: ToolScope, planned: Sequence[PlannedFile], made: Iterable[FileReplacement]
) -> dict[str, Json]:
    """Return the whole result, recorded before the act, with the state of every path before and after."""
    entries = [_reversed(replacement) for replacement in made]
    files: list[Json] = [one.summary for one in planned]
    if max(len(json.dumps(files)), len(json.dumps(entries))) > _MAX_RECORD:
        raise ToolBroke(
            "the patch changes too many files for one receipt; split it into several patches"
        )
    can_undo = all(one.can_undo for one in planned)
    result = {
        "files": files,
        "count": len(files),
        "can_undo": can_undo,
        "diff": clean_diff(scope, "".join(one.diff for one in planned)),
        "undo": {"files": entries} if can_undo else None,
    }
    return {"places": entries, "result": result}


def _reversed(made: FileReplacement) -> dict[str, Json]:
    return {
        "path": made.path,
        "written_sha256": made.after.sha256,
        "previous_sha256": made.before.sha256,
        "mode": made.before.mode,
    }


def _is_unchanged(scope: ToolScope, replacement: FileReplacement) -> bool:
    return state_at(scope, replacement.path).sha256 == replacement.before.sha256


def _named_in_files(arguments: dict[str, Json]) -> TouchedByCall:
    paths = (
        NamedPath("files", str(argument["path"]), Access.WRITE) for argument in arguments["files"]
    )
    return TouchedByCall(paths=tuple(paths))


async def _restore_files(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return await in_thread(_restore, scope, arguments["files"], _paths_by_name(scope))


def _restore(
    scope: ToolScope, files: Sequence[dict[str, Json]], paths: dict[str, str]
) -> dict[str, Json]:
    """Done before, it is done: what stands as it was already is left alone."""
    if len(paths) < len(files):
        raise ToolBroke("a file is listed twice; list each file once")
    replacements: list[FileReplacement] = []
    with in_turn(scope, *paths.values()):
        for file in files:
            path, previous = paths[file["path"]], file["previous_sha256"]
            present = state_at(scope, path)
            if present.sha256 not in (file["written_sha256"], previous):
                raise ToolBroke(
                    f"{path!r} was changed after the patch, and undo would lose that change; nothing was changed"
                )
            if present.sha256 != previous:
                content = None if previous is None else stored_content(scope.undo_folder, previous)
                replacements.append(
                    FileReplacement(path, present, FileState(content, file["mode"]))
                )
        replace_all(scope, replacements)
    return {"files": sorted(paths.values()), "count": len(paths)}


_HASH: Json = {"anyOf": [{"type": "string", "pattern": "^[0-9a-f]{64}$"}, {"type": "null"}]}

APPLY_PATCH = Tool(
    ToolSpec(
        name="apply_patch",
        within_workspace="files",
        description=(
            "Change, add, delete and rename files, all or nothing. The patch is a unified diff, or "
            "sections between `*** Begin Patch` and `*** End Patch`."
        ),
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=60,
        undo="restore_files",
        receipt_fields=("files", "count", "can_undo"),
        input_schema={
            "type": "object",
            "properties": {"patch": {"type": "string", "minLength": 1, "maxLength": 500_000}},
            "required": ["patch"],
            "additionalProperties": False,
            "examples": [
                {
                    "patch": "*** Begin Patch\n*** Update File: src/app.py\n-retries = 3\n+retries = 5\n"
                    "*** End Patch\n"
                }
            ],
        },
    ),
    _apply_patch,
    touches=_named_in_patch,
)

RESTORE_FILES = Tool(
    ToolSpec(
        name="restore_files",
        offered="by_name",
        within_workspace="files",
        description="Undo an apply_patch, provided nobody changed one of its files since.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=60,
        receipt_fields=("files", "count"),
        input_schema={
            "type": "object",
            "properties": {
                "files": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 80,
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string", "minLength": 1},
                            "written_sha256": _HASH,
                            "previous_sha256": _HASH,
                            "mode": {
                                "anyOf": [
                                    {"type": "integer", "minimum": 0, "maximum": 511},
                                    {"type": "null"},
                                ],
                                "description": "Permission bits of a file that is made again.",
                            },
                        },
                        "required": ["path", "written_sha256", "previous_sha256", "mode"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["files"],
            "additionalProperties": False,
        },
    ),
    _restore_files,
    touches=_named_in_files,
)
