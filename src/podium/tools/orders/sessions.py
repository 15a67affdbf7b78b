"""`set_session`: keys of a session's state, which lies in a YAML file of its own."""

from __future__ import annotations

from podium.domain.errors import ToolBroke
from podium.domain.gating import Access, PathArgument, Tier, ToolSpec
from podium.domain.model import Json
from podium.domain.orders import ORDER_ID
from podium.tools.orders.files import CHANGED_FIELDS, change, schema_of, text_of
from podium.tools.places import place_of, refuse_references
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope, in_thread

_LARGEST_BYTES = 1_000_000


def set_session(sessions: str) -> Tool:
    """The tool for sessions that lie in this folder, from the root on."""
    return Tool(_spec(sessions), _set_session)


async def _set_session(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    session, values = str(arguments["session"]), dict(arguments["values"])
    # In a schema `$` also stands before a newline at the end.
    if not ORDER_ID.fullmatch(session):
        raise ToolBroke(f"{session!r} is no name of a session; use letters, digits, `-`, `_`")
    refuse_references(values)
    path = f"{place_of(scope, 'folder')}/{session}.yaml"
    if scope.passed_over(str(scope.root / path)):
        raise ToolBroke(f"{path!r} lies in a place that is closed by the policy")
    done = await in_thread(change, scope, path, lambda was: _set(was, values, path))
    return {"session": session, "keys": list(values), **done}


def _set(was: bytes | None, values: dict[str, Json], path: str) -> bytes:
    # PyYAML takes a tenth of a second to load, and few calls need it.
    from podium.tools.orders.session_text import with_values

    if len(was or b"") > _LARGEST_BYTES:
        raise ToolBroke(f"{path!r} is larger than {_LARGEST_BYTES} bytes; a session is small")
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
