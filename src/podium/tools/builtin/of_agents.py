"""What agents do with tools of their own: judged and recorded here, performed by them.

Podium cannot perform these itself. Their specs let the gate judge, and the receipts name, what a
CLI does inside.
"""

from __future__ import annotations

from podium.domain.errors import ToolBroke
from podium.domain.gating import Access, PathArgument, Tier, ToolSpec
from podium.domain.model import Json
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope


async def _not_ours(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    raise ToolBroke(
        f"{scope.call.tool!r} is a tool that agents have themselves; Podium does not perform it"
    )


def _own_tool(
    name: str,
    description: str,
    tier: Tier,
    required: dict[str, Json],
    *,
    paths: tuple[PathArgument, ...] = (),
    optional: dict[str, Json] | None = None,
) -> Tool:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": sorted(required),
        "additionalProperties": False,
    }
    spec = ToolSpec(
        name=name,
        description=description,
        tier=tier,
        input_schema=schema,
        receipt_fields=("done",),
        paths=paths,
        observed_only=True,
    )
    return Tool(spec, _not_ours)


_TEXT: dict[str, Json] = {"type": "string"}
_NAME: dict[str, Json] = {"type": "string", "minLength": 1}

DELETE_FILE = _own_tool(
    "delete_file",
    "Remove a file of the workspace, as an agent's own editor does.",
    Tier.T1,
    {"path": _NAME},
    paths=(PathArgument(name="path", access=Access.DELETE),),
)
# Not of a higher tier: the model's provider searches, and it has read the conversation anyway.
WEB_SEARCH = _own_tool(
    "web_search", "Search the web with the agent's own means.", Tier.T1, {"query": _TEXT}
)
WEB_FETCH = _own_tool(
    "web_fetch", "Fetch a page with the agent's own means.", Tier.T3, {"url": _TEXT}
)
ASK_SUBAGENT = _own_tool(
    "ask_subagent",
    "Hand a part of the work to an agent inside the agent. What that one does is judged too.",
    Tier.T0,
    {"name": _TEXT, "task": _TEXT},
)
KEEP_NOTES = _own_tool(
    "keep_notes", "Keep a list or a plan inside the agent's own head.", Tier.T0, {"text": _TEXT}
)
OWN_TOOL = _own_tool(
    "own_tool",
    "Any other tool that an agent brings along.",
    Tier.T3,
    {"name": _NAME},
    optional={"arguments": {"type": "object", "default": {}}},
)

OWN_TOOLS = (DELETE_FILE, WEB_SEARCH, WEB_FETCH, ASK_SUBAGENT, KEEP_NOTES, OWN_TOOL)
