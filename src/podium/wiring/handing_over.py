"""`hand_over`: pushing a branch and opening its pull request, as a call that the gate judges and a receipt proves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.forging import PullRequestWish
from podium.domain.gating import Tier, ToolSpec
from podium.domain.model import Json
from podium.ports import Forge

if TYPE_CHECKING:
    from podium.tools import Tool
    from podium.tools.scope import ToolScope

NAME = "hand_over"


def hand_over_tool(forge: Forge) -> Tool:
    """No agent is offered it: it stands in the supervisor's own registry."""
    from podium.tools import Tool

    async def hand_over(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        request = await forge.deliver(PullRequestWish.model_validate(arguments))
        return {
            **request.model_dump(mode="json"),
            "branch": arguments["branch"],
            "commit": arguments["commit"],
        }

    spec = ToolSpec(
        name=NAME,
        description="Push one branch and open its pull request, or write the file that stands for one.",
        input_schema=PullRequestWish.model_json_schema(),
        tier=Tier.T1,
        receipt_fields=("branch", "commit", "pushed", "url", "number", "file"),
        # It finds what is there already: a crash in between leaves no doubt.
        idempotent=True,
        timeout_seconds=900.0,
    )
    return Tool(spec, hand_over)
