"""Tools of work orders; and `file_candidate` and `deliver_order`: an order becomes a file, once, in one step."""

from __future__ import annotations

from pathlib import PurePosixPath

from podium.core.decisions import Access, PathArgument, Tier, ToolSpec
from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.jobs.sense.orders.file_edits import (
    APPEND_TO_FILE,
    PATH,
    REPLACE_IN_FILE,
    schema_of,
    set_session,
)
from podium.jobs.sense.orders.file_moves import (
    COPY_FILE,
    MAKE_FOLDER,
    MOVE_FILE,
    TRASH_FILE,
    UNTRASH_FILE,
)
from podium.jobs.sense.orders.work_order import ORDER_ID, WorkOrder
from podium.platform.completion import in_thread
from podium.platform.safe_files import find_below, rename_below, status_below, write_below
from podium.tools.file_changes import (
    MAX_BYTES,
    fix,
    key_digest,
    path_of_argument,
    recall,
    sha256_of,
)
from podium.tools.registry import Tool
from podium.tools.scope import Handler, ToolScope


def order_tools(sessions: str = "state/clc_sessions") -> tuple[Tool, ...]:
    """Return the tools of orders besides the built-in ones. `sessions`: their folder, relative to the root."""
    return (
        REPLACE_IN_FILE,
        APPEND_TO_FILE,
        MAKE_FOLDER,
        MOVE_FILE,
        COPY_FILE,
        TRASH_FILE,
        UNTRASH_FILE,
        set_session(sessions),
    )


def sense_tools(inbox: str, candidates: str) -> tuple[Tool, ...]:
    """Return the loop's two tools; both folders are relative to the root."""
    return (file_candidate(candidates), deliver_order(inbox))


def file_candidate(candidates: str) -> Tool:
    """The tool that puts orders into this folder, from the root on, for people to review."""
    return Tool(_FILE_CANDIDATE, _into(candidates))


def deliver_order(inbox: str) -> Tool:
    """The tool that puts orders into this inbox, from the root on."""
    return Tool(_DELIVER_ORDER, _into(inbox))


def _into(folder: str) -> Handler:
    async def handle(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        path, content = path_of_argument(scope), str(arguments["content"])
        _refuse_elsewhere(path, folder, str(arguments["wo_id"]))
        digest = sha256_of(content.encode())
        if arguments.get("sha256", digest) != digest:
            raise ToolBroke("`sha256` does not match the content; submit the order again")
        _refuse_other_order(content, arguments)
        await in_thread(_put_once, scope, path, content.encode())
        return {"wo_id": arguments["wo_id"], "path": path, "sha256": digest}

    return handle


def _refuse_elsewhere(path: str, folder: str, wo_id: str) -> None:
    expected = PurePosixPath(folder) / f"{wo_id}.yaml"
    if PurePosixPath(path) != expected:
        raise ToolBroke(f"order {wo_id!r} belongs at {str(expected)!r}, not at {path!r}")


def _refuse_other_order(content: str, arguments: dict[str, Json]) -> None:
    """Compare the order in the content with the arguments: the gate judged the arguments, and the content is what will be done."""
    # PyYAML takes a tenth of a second to load, and importing tools must stay quick.
    import yaml

    try:
        order = WorkOrder.model_validate(yaml.safe_load(content))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ToolBroke(f"the content is not a work order: {str(error)[:300]}") from None
    tier = "" if order.tier is None else str(order.tier)
    stated = {"wo_id": order.id, "target": order.target, "tier": tier, "zones": list(order.zones)}
    for name, value in stated.items():
        if name in arguments and arguments[name] != value:
            raise ToolBroke(f"{name} is {value!r} in the order and {arguments[name]!r} in the call")


def _put_once(scope: ToolScope, path: str, content: bytes) -> None:
    """Put a file into its place, and never a second time: a reader may have taken it away by then.

    The draft lies beside it under a name that readers pass over. Once the intent says that it is
    complete, it is gone exactly when it was put into place.
    """
    draft = str(PurePosixPath(path).with_name(f".podium-{key_digest(scope)}.draft"))
    intent = recall(scope)
    if intent is None:
        if _is_delivered(scope, path, content):
            fix(scope, {"drafted": True})
            return
        intent = fix(scope, {"drafted": False})
    if not intent["drafted"]:
        write_below(scope.root, draft, content, scope.key)
        fix(scope, {"drafted": True})
    if status_below(scope.root, draft) is not None:
        _is_delivered(scope, path, content)
        rename_below(scope.root, draft, path)


def _is_delivered(scope: ToolScope, path: str, content: bytes) -> bool:
    """True if exactly this content is there. Raises `ToolBroke` for other content."""
    present = find_below(scope.root, path, MAX_BYTES, single_name=True)
    if present is not None and present != content:
        raise ToolBroke(
            f"{path!r} already exists with other content and is not replaced; give the order another id"
        )
    return present is not None


_ORDER_ARGUMENTS: dict[str, Json] = {
    "wo_id": {"type": "string", "pattern": f"^{ORDER_ID.pattern}$"},
    "path": PATH,
    "content": {"type": "string", "minLength": 1, "description": "The order as YAML."},
}

_FILE_CANDIDATE = ToolSpec(
    name="file_candidate",
    description="File a proposed work order for review.",
    tier=Tier.T1,
    idempotent=True,
    timeout_seconds=30,
    receipt_fields=("wo_id", "path", "sha256"),
    paths=(PathArgument(name="path", access=Access.WRITE),),
    input_schema=schema_of(_ORDER_ARGUMENTS),
    in_dry_run="act",
)

_DELIVER_ORDER = ToolSpec(
    name="deliver_order",
    description="Put a work order into the inbox, from which a worker takes it.",
    tier=Tier.T1,
    idempotent=True,
    timeout_seconds=30,
    receipt_fields=("wo_id", "path", "sha256"),
    paths=(PathArgument(name="path", access=Access.WRITE),),
    input_schema=schema_of(
        {
            **_ORDER_ARGUMENTS,
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "target": {"type": "string"},
            "zones": {"type": "array", "items": {"type": "string"}},
            "tier": {"type": "string"},
        }
    ),
    tier_argument="tier",
    in_dry_run="ask",
)
