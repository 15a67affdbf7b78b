"""`replace_in_file`, `append_to_file` and `set_session`: content derived from what the file holds."""

from __future__ import annotations

from collections.abc import Callable

from podium.core.decisions import Access, PathArgument, Tier, ToolSpec
from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.jobs.sense.orders.work_order import ORDER_ID
from podium.platform.completion import in_thread
from podium.platform.safe_files import find_below, write_below
from podium.tools.file_changes import (
    MAX_BYTES,
    attempt,
    fix,
    in_turn,
    keep_for_undo,
    path_of_argument,
    recall,
    refuse_references,
    sha256_of,
)
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope

NewContent = Callable[[bytes | None], bytes]
"""The content that is wished for, by the one that stands there; None stands for no file."""

CHANGED_FIELDS = ("path", "sha256", "bytes", "created", "previous_sha256", "can_undo")


async def _replace_in_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    path = path_of_argument(scope)
    find, replace = str(arguments["find"]), str(arguments["replace"])
    refuse_references(replace)
    return await in_thread(change, scope, path, lambda was: _replaced(was, path, find, replace))


async def _append_to_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    path = path_of_argument(scope)
    content = str(arguments["content"])
    refuse_references(content)
    return await in_thread(
        change, scope, path, lambda was: text_of(was or b"", path) + content.encode()
    )


def change(scope: ToolScope, path: str, wished: NewContent) -> dict[str, Json]:
    """Bring a file to the content that is wished for, once, however often this is tried."""
    with in_turn(scope, path):
        return _changed(scope, path, wished)


def _changed(scope: ToolScope, path: str, wished: NewContent) -> dict[str, Json]:
    present = find_below(scope.root, path, MAX_BYTES, single_name=True)
    intent = recall(scope) or fix(scope, _intent(scope, path, present, wished))
    present_digest = _digest(present)
    if present_digest not in (intent["previous_sha256"], intent["sha256"]):
        raise OutcomeUnknown(
            f"{path!r} was changed by somebody else in the meantime, so Podium cannot tell whether this was "
            "done; check the file, and send a new order if it is still needed"
        )
    if present_digest != intent["sha256"]:
        content = wished(present)
        with attempt(scope, lambda: _current_digest(scope, path) == present_digest):
            write_below(scope.root, path, content, scope.key)
    undo = {"path": path, "written_sha256": intent["sha256"]}
    undo["previous_sha256"] = intent["previous_sha256"]
    return {"path": path, **intent, "undo": undo if intent["can_undo"] else None}


def _intent(
    scope: ToolScope, path: str, present: bytes | None, wished: NewContent
) -> dict[str, Json]:
    after = wished(present)
    if len(after) > MAX_BYTES:
        raise ToolBroke(f"{path!r} would be larger than {MAX_BYTES} bytes; use another file")
    return {
        "sha256": sha256_of(after),
        "bytes": len(after),
        "created": present is None,
        "previous_sha256": _digest(present),
        "can_undo": present is None or keep_for_undo(scope, present),
    }


def _current_digest(scope: ToolScope, path: str) -> str | None:
    return _digest(find_below(scope.root, path, MAX_BYTES))


def _digest(content: bytes | None) -> str | None:
    return None if content is None else sha256_of(content)


def text_of(content: bytes, path: str) -> bytes:
    """The content itself. Raises `ToolBroke` when it is no text."""
    try:
        content.decode()
    except UnicodeDecodeError:
        raise ToolBroke(f"{path!r} is not valid UTF-8; only text files can be edited") from None
    if b"\0" in content:
        raise ToolBroke(f"{path!r} is binary; only text files can be edited")
    return content


def _replaced(was: bytes | None, path: str, find: str, replace: str) -> bytes:
    if was is None:
        raise ToolBroke(f"{path!r} does not exist; write it first")
    before = text_of(was, path)
    needle = find.encode()
    at = before.find(needle)
    if at < 0:
        raise ToolBroke(f"`find` does not occur in {path!r}; read the file and quote it exactly")
    if before.find(needle, at + 1) >= 0:
        raise ToolBroke(
            f"`find` occurs more than once in {path!r}; quote more of the surrounding text"
        )
    return before[:at] + replace.encode() + before[at + len(needle) :]


def schema_of(required: dict[str, Json]) -> dict[str, Json]:
    """Return a JSON Schema of arguments that are all required."""
    return {
        "type": "object",
        "properties": required,
        "required": list(required),
        "additionalProperties": False,
    }


PATH: Json = {"type": "string", "minLength": 1, "description": "From the root on."}

REPLACE_IN_FILE = Tool(
    ToolSpec(
        name="replace_in_file",
        description="Replace a text that stands in a file exactly once.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        undo="restore_file",
        receipt_fields=CHANGED_FIELDS,
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema=schema_of(
            {
                "path": PATH,
                "find": {"type": "string", "minLength": 1, "maxLength": 100_000},
                "replace": {"type": "string"},
            }
        ),
    ),
    _replace_in_file,
)

APPEND_TO_FILE = Tool(
    ToolSpec(
        name="append_to_file",
        description="Add a text to the end of a file; one that is not there is made.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        undo="restore_file",
        receipt_fields=CHANGED_FIELDS,
        paths=(PathArgument(name="path", access=Access.WRITE),),
        input_schema=schema_of({"path": PATH, "content": {"type": "string"}}),
    ),
    _append_to_file,
)


_MAX_BYTES_SIZE = 1_000_000


def set_session(sessions: str) -> Tool:
    """The tool for sessions that lie in this folder, from the root on."""
    return Tool(_spec(sessions), _set_session)


async def _set_session(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    session, values = str(arguments["session"]), dict(arguments["values"])
    # In a schema `$` also stands before a newline at the end.
    if not ORDER_ID.fullmatch(session):
        raise ToolBroke(f"{session!r} is not a session name; use letters, digits, `-`, `_`")
    refuse_references(values)
    path = f"{path_of_argument(scope, 'folder')}/{session}.yaml"
    if scope.passed_over(str(scope.root / path)):
        raise ToolBroke(f"the policy denies access to {path!r}")
    done = await in_thread(change, scope, path, lambda was: _set(was, values, path))
    return {"session": session, "keys": list(values), **done}


def _set(was: bytes | None, values: dict[str, Json], path: str) -> bytes:
    # PyYAML takes a tenth of a second to load, and few calls need it.
    from podium.jobs.sense.io.plain_yaml import with_values

    if len(was or b"") > _MAX_BYTES_SIZE:
        raise ToolBroke(f"{path!r} is larger than {_MAX_BYTES_SIZE} bytes, the limit for a session")
    return with_values(text_of(was or b"", path).decode(), values, path).encode()


def _spec(sessions: str) -> ToolSpec:
    schema = schema_of(
        {
            "session": {"type": "string", "pattern": f"^{ORDER_ID.pattern}$"},
            "values": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 200,
                "propertyNames": {"minLength": 1, "maxLength": 200},
            },
        }
    )
    # Nobody chooses the folder; it is an argument because the gate judges those.
    schema["properties"]["folder"] = {"const": sessions, "default": sessions}
    return ToolSpec(
        name="set_session",
        description="Set keys in the state of a session; its other keys stay as they are.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=30,
        undo="restore_file",
        receipt_fields=("session", "keys", *CHANGED_FIELDS),
        paths=(PathArgument(name="folder", access=Access.WRITE),),
        input_schema=schema,
    )
