"""`edit_file`: texts of a file replaced by others, all of them or none.

CLIs have editors of their own, and what they do comes here under the same name: then `change` says
what, and Podium judges and records it without doing it.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.errors import OutcomeUnknown, ToolBroke
from podium.domain.gating import Access, Outcome, PathArgument, Tier, ToolSpec
from podium.domain.model import Json
from podium.domain.telling import INTERNAL, REQUIRED
from podium.tools.beneath import find_beneath, write_beneath
from podium.tools.builtin.told_diffs import refusal, told_diff
from podium.tools.edits import (
    Edit,
    Edited,
    EditRefused,
    apply_edits,
    decoded,
    unified_diff,
)
from podium.tools.intents import attempt, fix, keep_for_undo, recall
from podium.tools.kept import sha256_of
from podium.tools.places import LARGEST_BYTES, place_of, refuse_references
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope, in_thread
from podium.tools.turns import in_turn

_MOST_EDITS = 100


async def _edit_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json] | Outcome:
    if not arguments.get("edits"):
        raise ToolBroke(
            '`edits` is missing: give a list such as [{"find": "old text", "replace": "new text"}]'
        )
    if arguments.get("change"):
        raise ToolBroke("`edits` and `change` are both given; leave out `change`")
    path = place_of(scope)
    edits = [
        Edit(each["find"], each["replace"], each.get("at_line")) for each in arguments["edits"]
    ]
    refuse_references([edit.replace for edit in edits])
    try:
        return await in_thread(_edit, scope, path, edits, arguments.get("expect_sha256"))
    except EditRefused as refused:
        of = f"edit {refused.number} of {path!r}" if refused.number else repr(path)
        return refusal(refused, scope, of)


def _edit(
    scope: ToolScope, path: str, edits: Sequence[Edit], expected: str | None
) -> dict[str, Json]:
    """Bring the file to its new content, once, however often this is tried."""
    with in_turn(scope, path):
        return _edited(scope, path, edits, expected)


def _edited(
    scope: ToolScope, path: str, edits: Sequence[Edit], expected: str | None
) -> dict[str, Json]:
    present = find_beneath(scope.root, path, LARGEST_BYTES, alone=True)
    if present is None:
        raise ToolBroke(f"there is no {path!r}; write_file makes a new file")
    intent = recall(scope)
    if intent is None:
        _refuse_other(path, present, expected)
        content, edited = _new_content(present, edits)
        intent = fix(scope, _intent(scope, path, present, content, edited))
    standing = sha256_of(present)
    if standing not in (intent["previous_sha256"], intent["sha256"]):
        raise OutcomeUnknown(
            f"{path!r} was changed meanwhile by somebody else, so it cannot be told whether this was "
            "done; read it, and ask for what is still needed"
        )
    if standing != intent["sha256"]:
        content, _ = _new_content(present, edits)
        with attempt(scope, lambda: _stands(scope, path, present)):
            write_beneath(scope.root, path, content, scope.key)
    return intent


def _refuse_other(path: str, present: bytes, expected: str | None) -> None:
    if expected is not None and sha256_of(present) != expected:
        raise ToolBroke(
            f"{path!r} is not the file that `expect_sha256` names: its hash is {sha256_of(present)}; "
            "read it again"
        )


def _new_content(present: bytes, edits: Sequence[Edit]) -> tuple[bytes, Edited]:
    coded = decoded(present)
    edited = apply_edits(coded.text, edits)
    return coded.encoded(edited.text), edited


def _intent(
    scope: ToolScope, path: str, present: bytes, content: bytes, edited: Edited
) -> dict[str, Json]:
    """The whole result, fixed before the act: a second try gives the same."""
    if len(content) > LARGEST_BYTES:
        raise ToolBroke(f"{path!r} would be larger than {LARGEST_BYTES} bytes; use another file")
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
        "diff": told_diff(scope, diff),
        "undo": undo if can_undo else None,
    }


def _stands(scope: ToolScope, path: str, content: bytes) -> bool:
    return find_beneath(scope.root, path, LARGEST_BYTES) == content


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
            "Replace texts of a file, all or none. Each `find` must stand in it once, or `at_line` says where; "
            "quote it without the line numbers of read_file."
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
                "edits": {"type": "array", "items": _EDIT, "minItems": 1, "maxItems": _MOST_EDITS},
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
