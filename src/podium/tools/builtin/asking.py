"""`ask_human`: a question that only a person can answer.

The gate asks a person before every call of it, as it does before anything risky, and the words that
they approve it with are the answer. So a question waits for days, survives a crash and is answered
wherever approvals are.
"""

from __future__ import annotations

from podium.domain.errors import ToolBroke
from podium.domain.gating import Tier, ToolSpec
from podium.domain.model import Json
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope


async def _ask_human(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    if not scope.said:
        raise ToolBroke(
            "nobody answered: the policy lets ask_human pass without asking a person. Say in your "
            "answer what you need to know; a person must make the rule for ask_human `ask`"
        )
    return {"answer": scope.said}


ASK_HUMAN = Tool(
    ToolSpec(
        name="ask_human",
        description=(
            "Ask a person something that you cannot find out. The answer is the result; when you are told "
            "to wait, end your turn: it is brought to you."
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
    is_own_words=True,
)
