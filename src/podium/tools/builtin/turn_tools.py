"""`ask_human`, `finish`, and the tools that agents perform themselves.

The gate asks a person before every call of it, as it does before anything risky, and the words that
they approve it with are the answer. So a question waits for days, survives a crash and is answered
wherever approvals are.

Podium cannot perform these itself. Their specs let the gate judge, and the receipts name, what a
CLI does inside.
"""

from __future__ import annotations

from podium.core.decisions import Access, PathArgument, Tier, ToolSpec
from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope


async def _ask_human(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    if not scope.approval_comment:
        raise ToolBroke(
            "no person was asked, because the policy allows ask_human without an approval. Say in your answer "
            "what you need to know; a person has to change the policy's decision for ask_human to `ask`"
        )
    return {"answer": scope.approval_comment}


ASK_HUMAN = Tool(
    ToolSpec(
        name="ask_human",
        description=(
            "Ask a person something that you cannot find out. The answer is the result; when you are told to wait, end your turn: "
            "it is brought to you."
        ),
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=5,
        receipt_fields=("answer",),
        input_schema={
            "type": "object",
            "properties": {
                "question": {"type": "string", "minLength": 1, "maxLength": 2_000},
                "choices": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 200},
                    "minItems": 2,
                    "maxItems": 12,
                    "uniqueItems": True,
                    "description": "Answers to choose from; a person may also answer in their own words.",
                },
            },
            "required": ["question"],
            "additionalProperties": False,
        },
    ),
    _ask_human,
    is_own_text=True,
)


async def _finish(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return {"summary": arguments["summary"], "payload": arguments["payload"]}


FINISH = Tool(
    ToolSpec(
        name="finish",
        description=(
            "End the work: a summary for people of what is done, or of what cannot be done and why; if asked for, a payload."
        ),
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=5,
        receipt_fields=("summary",),
        offered="without_contract",
        input_schema={
            "type": "object",
            "properties": {
                "summary": {"type": "string", "minLength": 1, "maxLength": 10_000},
                "payload": {"type": "object", "default": {}},
            },
            "required": ["summary"],
            "additionalProperties": False,
        },
    ),
    _finish,
    is_own_text=True,
)


async def _not_ours(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    raise ToolBroke(f"{scope.call.tool!r} is a built-in tool of agents; Podium does not perform it")


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
