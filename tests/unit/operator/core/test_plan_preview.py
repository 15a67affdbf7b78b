"""Previews of calls: looked up before people are asked, and the call knows since when they were true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podium.app.packs import open_pack
from podium.core.model import Json
from podium.core.packs import PackTool
from podium.core.plan_approval import Outgoing
from podium.jobs.operator import Operator
from podium.jobs.operator.composition import preview_plan
from podium.jobs.operator.models import OperatorAnswer, RunPlan
from podium.jobs.operator.plan_preview import previewed
from podium.jobs.operator.testing import sure
from podium.tools.packs import load_pack
from tests.unit.operator.core.shop import HANDLERS, Shop, cli_for, registry

PREVIEW = """

async def send_dated(arguments, scope):
    shop = _load(scope)
    shop["sent"].append(scope.planned_at.isoformat())
    _keep(scope, shop)
    return {"sent": 1}


async def preview(arguments, scope):
    if arguments["to"] == "nobody@example.com":
        raise ToolBroke("nobody has no address")
    if arguments["to"] == "crash@example.com":
        raise ValueError("token-of-the-shop")
    return {"to": arguments["to"], "amount": "$5", "text": "hello, token-of-the-shop", "attachments": ["a.pdf"]}
"""
MAIL = {
    name: sure(("mail.send", {"to": f"{name}@example.com", "text": "hi"}))
    for name in ("bob", "nobody", "crash")
}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    changed: dict[str, Any] = registry()
    (mail,) = [tool for tool in changed["tools"] if tool["name"] == "mail.send"]
    mail |= {"handler": "handlers:send_dated", "preview": "handlers:preview"}
    changed["settings"] = [{"name": "SHOP_TOKEN", "secret": True, "default": "token-of-the-shop"}]
    shop = Shop(tmp_path)
    (shop.pack_folder / "handlers.py").write_text(HANDLERS + PREVIEW)
    shop.write(changed)
    shop.trust()
    return shop


async def asked(shop: Shop, message: str) -> tuple[OperatorAnswer, RunPlan]:
    """The answer that waits for people, and the plan that was previewed; both approved and performed then."""
    plans: list[RunPlan] = []
    async with shop.podium() as podium:
        pack = open_pack(podium, "shop")

        async def preview(plan: RunPlan) -> RunPlan:
            plans.append(await preview_plan(podium, pack, plan))
            return plans[-1]

        operator = Operator(replace(cli_for(podium, pack, MAIL), preview=preview))
        answer = await operator.process(message, "execute")
        await operator.process(f"APPROVE: {answer.action_id}")
    return answer, plans[-1]


async def test_preview_is_shown_without_secrets_and_its_time_reaches_the_handler(
    shop: Shop,
) -> None:
    answer, plan = await asked(shop, "bob")

    assert answer.status == "awaiting_approval"
    assert answer.plan is not None
    assert answer.plan.steps[0].outgoing == Outgoing(
        to="bob@example.com",
        amount="$5",
        text="hello, [redacted:SHOP_TOKEN]",
        attachments=("a.pdf",),
    )
    assert plan.previewed_at is not None
    assert shop.kept()["sent"] == [plan.previewed_at.isoformat()]


@pytest.mark.parametrize(
    ("message", "problem"),
    [("nobody", "nobody has no address"), ("crash", "its preview failed: ValueError")],
)
async def test_preview_that_fails_is_shown_with_its_reason(
    shop: Shop, message: str, problem: str
) -> None:
    answer, plan = await asked(shop, message)

    assert answer.status == "awaiting_approval"
    assert plan.steps[0].outgoing == Outgoing(problem=problem)
    assert len(shop.kept()["sent"]) == 1


async def test_result_of_an_earlier_call_is_foreseen_where_that_call_has_it_as_an_argument(
    shop: Shop,
) -> None:
    _, plan = await asked(shop, "bob")
    first, pack = plan.steps[0], load_pack(shop.pack_folder)
    foreseen = first.model_copy(
        update={"number": 2, "arguments": {"to": {"$from": [1, "to"]}, "text": "hi"}}
    )
    unknown = first.model_copy(
        update={"number": 3, "arguments": {"to": {"$from": [1, "address"]}, "text": "hi"}}
    )
    longer = plan.model_copy(update={"steps": (first, foreseen, unknown)})

    async def preview(tool: PackTool, arguments: Mapping[str, Json]) -> Outgoing:
        return Outgoing(to=str(arguments["to"]))

    shown = await previewed(longer, pack, preview, datetime(2026, 11, 16, tzinfo=UTC))

    assert [step.outgoing for step in shown.steps[1:]] == [
        Outgoing(to="bob@example.com"),
        Outgoing(problem="to is a result of an earlier call"),
    ]
