"""`write_file`, `edit_file` and `restore_file`.

CLIs have editors of their own, and what they do comes here under the same name: then `change` says
what, and Podium judges and records it without doing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from podium.core.decisions import Access, Call, CallOutcome, PathArgument, Tier, ToolSpec
from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.core.tool_replies import INTERNAL, REQUIRED
from podium.platform.completion import in_thread
from podium.platform.safe_files import find_below, read_below, remove_below, write_below
from podium.tools.edits import (
    EditRefused,
    EditResult,
    TextEdit,
    apply_edits,
    decoded,
    diff_between,
    unified_diff,
)
from podium.tools.file_changes import (
    MAX_BYTES,
    attempt,
    clean_diff,
    fix,
    in_turn,
    keep_for_undo,
    path_of_argument,
    recall,
    refusal,
    refuse_references,
    sha256_of,
    stored_content,
)
from podium.tools.normalization import MAX_REPLACED_BYTES, changed_since
from podium.tools.registry import Tool
from podium.tools.scope import REFERENCE, ToolScope

_MAX_DIFF = 6_000
_MAX_QUESTION_DIFF = 60_000
"""Characters of a diff that a person is shown before the file is replaced."""
_NAMED_VALUE = re.compile(r"([- ]\s*(?:export\s+)?[\w.-]{1,80}\s*[=:]\s*)\S")


async def _write_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    path = _writable(scope)
    content: str = arguments["content"]
    if (reference := REFERENCE.search(content)) is not None:
        raise ToolBroke(
            f"the content contains {reference[0]!r}, and secrets cannot be written to files; let the "
            "program read an environment variable instead, and set it in `env` of run_command"
        )
    return await in_thread(_write, scope, path, content.encode())


def _write(scope: ToolScope, path: str, content: bytes) -> dict[str, Json]:
    with in_turn(scope, path):
        return _written(scope, path, content)


def _written(scope: ToolScope, path: str, content: bytes) -> dict[str, Json]:
    before = find_below(scope.root, path, MAX_REPLACED_BYTES)
    if before is not None and before != content:
        _refuse_unseen(scope, path)
    can_undo = before is None or keep_for_undo(scope, before)
    if before != content:
        write_below(scope.root, path, content, scope.key)
    written = sha256_of(content)
    previous = None if before is None else sha256_of(before)
    undo = {"path": path, "written_sha256": written, "previous_sha256": previous}
    return {
        "path": path,
        "bytes": len(content),
        "sha256": written,
        "created": before is None,
        "previous_sha256": previous,
        "can_undo": can_undo,
        "diff": _diff(scope, path, before, content),
        "undo": undo if can_undo else None,
    }


def _refuse_unseen(scope: ToolScope, path: str) -> None:
    """Nobody judged, or said yes to, the loss of any other content than the call names."""
    if not scope.call.files or changed_since(scope.call.files, scope.root):
        raise ToolBroke(
            f"{path!r} was changed by someone else after this write was judged; nothing was written. Read the file "
            "again, then request the write again"
        )


def _diff(scope: ToolScope, path: str, before: bytes | None, content: bytes) -> str:
    """Lines removed and added. Empty for a new file: whoever wrote it knows what is in it."""
    if before is None or before == content:
        return ""
    return clean_diff(scope, _text_diff(path, before, content), _MAX_DIFF)


def _text_diff(path: str, before: bytes, content: bytes) -> str:
    try:
        return diff_between(path, decoded(before).text, decoded(content).text)
    except EditRefused:
        return f"[binary file: {len(before)} bytes are replaced by {len(content)} bytes]"


def overwrite_diff(
    call: Call, root: Path, clean: Callable[[str], str], *, is_secret: bool = False
) -> str:
    """Diff the file against the content of a `write_file` call, for the person who approves. May block.

    Of a file that may hold secrets, old lines are shown without their values.
    """
    (file,) = call.files
    try:
        before = read_below(root, file.path, MAX_REPLACED_BYTES)
    except OSError as error:
        return f"[{file.path} cannot be shown: {clean(str(error))}]"
    diff = clean(_text_diff(file.path, before, call.arguments["content"].encode()))
    if changed_since(call.files, root):
        return f"[{file.path} is being changed by someone else; an approval will not take effect]"
    lines = _without_values(diff.split("\n")) if is_secret else diff.split("\n")
    text = "\n".join(lines)
    if len(text) <= _MAX_QUESTION_DIFF:
        return text
    removed, added = (sum(line.startswith(sign) for line in lines[2:]) for sign in "-+")
    return f"{text[:_MAX_QUESTION_DIFF]}\n[cut: -{removed} +{added} lines in all]"


def _without_values(lines: list[str]) -> list[str]:
    heads, body = lines[:2], lines[2:]
    hidden = (line if line.startswith(("+", "@")) else _hidden(line) for line in body)
    return [*heads, *hidden]


def _hidden(line: str) -> str:
    named = _NAMED_VALUE.match(line)
    return f"{named[1] if named else line[:1]}[hidden]" if line.strip() else line


async def _restore_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    path = _writable(scope)
    return await in_thread(
        _restore, scope, path, arguments["written_sha256"], arguments["previous_sha256"]
    )


def _restore(scope: ToolScope, path: str, written: str, previous: str | None) -> dict[str, Json]:
    """Done before, it is done: what stands there already is what was asked for."""
    with in_turn(scope, path):
        return _restored(scope, path, written, previous)


def _restored(scope: ToolScope, path: str, written: str, previous: str | None) -> dict[str, Json]:
    present = find_below(scope.root, path, MAX_REPLACED_BYTES)
    state = None if present is None else sha256_of(present)
    if state not in (written, previous):
        raise ToolBroke(f"{path!r} was changed after it was written; undo would lose that change")
    if state != previous and previous is None:
        remove_below(scope.root, path)
    elif state != previous and previous is not None:
        write_below(scope.root, path, stored_content(scope.undo_folder, previous), scope.key)
    return {"path": path, "sha256": previous, "removed": previous is None}


def _writable(scope: ToolScope) -> str:
    """The judged path. Git's own files are git's: a hook or a config entry there would be run."""
    path = scope.relative("path")
    named = Path(scope.call.arguments["path"])
    for part in (*PurePosixPath(path).parts, *named.parts):
        if part.lower() == ".git":
            raise ToolBroke(f"{path!r} belongs to git; change it only with git commands")
    return path


_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

WRITE_FILE = Tool(
    ToolSpec(
        name="write_file",
        within_workspace="files",
        description=(
            "Create or replace a text file; folders above it are made. Secrets cannot be written."
        ),
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        undo="restore_file",
        receipt_fields=("path", "sha256", "bytes", "created", "previous_sha256", "can_undo"),
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "content": {"type": "string", "description": "The whole new content."},
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    ),
    _write_file,
    replaces=lambda arguments: ("path", arguments["content"]),
)

RESTORE_FILE = Tool(
    ToolSpec(
        name="restore_file",
        offered="by_name",
        within_workspace="files",
        description="Undo a write_file, provided nobody changed the file since.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        receipt_fields=("path", "sha256", "removed"),
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "written_sha256": _HASH,
                "previous_sha256": {"anyOf": [_HASH, {"type": "null"}]},
            },
            "required": ["path", "written_sha256", "previous_sha256"],
            "additionalProperties": False,
        },
    ),
    _restore_file,
)


_MAX_EDITS = 100


async def _edit_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json] | CallOutcome:
    if not arguments.get("edits"):
        raise ToolBroke(
            '`edits` is missing; pass a list such as [{"find": "old text", "replace": "new text"}]'
        )
    if arguments.get("change"):
        raise ToolBroke("both `edits` and `change` are set; omit `change`")
    path = path_of_argument(scope)
    edits = [
        TextEdit(argument["find"], argument["replace"], argument.get("at_line"))
        for argument in arguments["edits"]
    ]
    refuse_references([edit.replace for edit in edits])
    try:
        return await in_thread(_edit, scope, path, edits, arguments.get("expect_sha256"))
    except EditRefused as refused:
        of = f"edit {refused.number} of {path!r}" if refused.number else repr(path)
        return refusal(refused, scope, of)


def _edit(
    scope: ToolScope, path: str, edits: Sequence[TextEdit], expected: str | None
) -> dict[str, Json]:
    """Bring the file to its new content, once, however often this is tried."""
    with in_turn(scope, path):
        return _edited(scope, path, edits, expected)


def _edited(
    scope: ToolScope, path: str, edits: Sequence[TextEdit], expected: str | None
) -> dict[str, Json]:
    present = find_below(scope.root, path, MAX_BYTES, single_name=True)
    if present is None:
        raise ToolBroke(f"{path!r} does not exist; use write_file to create a file")
    intent = recall(scope)
    if intent is None:
        _refuse_other(path, present, expected)
        content, edited = _new_content(present, edits)
        intent = fix(scope, _intent(scope, path, present, content, edited))
    state = sha256_of(present)
    if state not in (intent["previous_sha256"], intent["sha256"]):
        raise OutcomeUnknown(
            f"{path!r} was changed by someone else in the meantime, so it is unknown whether this edit was made; "
            "read the file, and request only the edits that are still missing"
        )
    if state != intent["sha256"]:
        content, _ = _new_content(present, edits)
        with attempt(scope, lambda: _is_unchanged(scope, path, present)):
            write_below(scope.root, path, content, scope.key)
    return intent


def _refuse_other(path: str, present: bytes, expected: str | None) -> None:
    if expected is not None and sha256_of(present) != expected:
        raise ToolBroke(
            f"{path!r} does not have the hash in `expect_sha256`: its hash is {sha256_of(present)}; read the file again"
        )


def _new_content(present: bytes, edits: Sequence[TextEdit]) -> tuple[bytes, EditResult]:
    coded = decoded(present)
    edited = apply_edits(coded.text, edits)
    return coded.encoded(edited.text), edited


def _intent(
    scope: ToolScope, path: str, present: bytes, content: bytes, edited: EditResult
) -> dict[str, Json]:
    """The whole result, fixed before the act: a second try gives the same."""
    if len(content) > MAX_BYTES:
        raise ToolBroke(
            f"{path!r} would become larger than {MAX_BYTES} bytes; put the text into another file"
        )
    previous, written = sha256_of(present), sha256_of(content)
    # A secret in UTF-16 shows in the text alone.
    clean = scope.redact(edited.before.original) == edited.before.original
    can_undo = clean and keep_for_undo(scope, present)
    undo = {"path": path, "written_sha256": written, "previous_sha256": previous}
    diff = unified_diff(path, edited.before, edited.text, edited.changes)
    return {
        "path": path,
        "sha256": written,
        "bytes": len(content),
        "previous_sha256": previous,
        "can_undo": can_undo,
        "edits": [{"line": done.line, "found_by": str(done.level)} for done in edited.done],
        "diff": clean_diff(scope, diff),
        "undo": undo if can_undo else None,
    }


def _is_unchanged(scope: ToolScope, path: str, content: bytes) -> bool:
    return find_below(scope.root, path, MAX_BYTES) == content


_EDIT: Json = {
    "type": "object",
    "properties": {
        "find": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200_000,
            "description": "Best whole lines, indented as in the file.",
        },
        "replace": {"type": "string"},
        "at_line": {
            "type": "integer",
            "minimum": 1,
            "description": "A line of the place that is meant, if there are several.",
        },
    },
    "required": ["find", "replace"],
    "additionalProperties": False,
}

EDIT_FILE = Tool(
    ToolSpec(
        name="edit_file",
        within_workspace="files",
        description=(
            "Replace texts of a file, all or none. Each `find` must stand in it once, or `at_line` says where; quote it without the "
            "line numbers of read_file."
        ),
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        undo="restore_file",
        receipt_fields=("path", "sha256", "bytes", "previous_sha256", "can_undo", "edits", "done"),
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema={
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "edits": {"type": "array", "items": _EDIT, "minItems": 1, "maxItems": _MAX_EDITS},
                "expect_sha256": {
                    "type": "string",
                    "pattern": "^[0-9a-f]{64}$",
                    "description": "Refuse unless the file has this hash.",
                    INTERNAL: True,
                },
                "change": {
                    "type": "string",
                    "description": "Of an agent's own editor: what it does.",
                    INTERNAL: True,
                },
            },
            "required": ["path"],
            REQUIRED: ["path", "edits"],
            "additionalProperties": False,
            "examples": [
                {
                    "path": "src/app.py",
                    "edits": [{"find": "retries = 3", "replace": "retries = 5"}],
                }
            ],
        },
    ),
    _edit_file,
)
