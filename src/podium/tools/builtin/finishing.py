"""`finish`: an agent ends its work, and says with what."""

from __future__ import annotations

from podium.domain.gating import Tier, ToolSpec
from podium.domain.model import Json
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope


async def _finish(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return {"summary": arguments["summary"], "payload": arguments["payload"]}


FINISH = Tool(
    ToolSpec(
        name="finish",
        description=(
            "End the work: a summary for people of what is done, or of what cannot be done and why; "
            "if asked for, a payload."
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
    is_own_words=True,
)
