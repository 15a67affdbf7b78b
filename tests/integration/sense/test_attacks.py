"""A list of attacks on zones and plan fields: nothing gets through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.core.model import Json
from podium.jobs.sense.orders.work_order import MAX_OPS, WorkOrder, order_text
from podium.jobs.sense.planning.plan_parser import parse_plan
from tests.integration.sense.attack_harness import Ground, Hands

ATTACKS = yaml.safe_load((Path(__file__).parent / "attacks.yaml").read_text())
GOOD: dict[str, Any] = {
    "type": "clc_task",
    "priority": "high",
    "target": "opal_api",
    "action": "create_wo",
    "wo_suggestion": {"wo_id_hint": "FIX-OPAL", "title": "Mend it", "summary": "s", "tasks": ["t"]},
}


def named(cases: list[dict[str, Json]]) -> list[Any]:
    return [pytest.param(case, id=str(case["name"])) for case in cases]


def test_list_is_long_and_names_every_attack_once() -> None:
    names = [case["name"] for part in ATTACKS.values() for case in part]

    assert len(ATTACKS["operations"]) >= 100
    assert len(names) == len(set(names))


@pytest.mark.sample(80)
@pytest.mark.parametrize("case", named(ATTACKS["operations"]))
async def test_an_order_reaches_nothing_outside_of_the_safe_zones(
    tmp_path: Path, case: dict[str, Json]
) -> None:
    ground = Ground(tmp_path)
    ground.prepare(case.get("given", []))
    hands = Hands(ground)
    before, shared = ground.guarded(), ground.shared()

    ends = [
        await hands.do(number, ground.filled(op))
        for number, op in enumerate(case.get("ops") or [case["op"]], start=1)
    ]

    must = case.get("must", "refused")
    assert ends[-1].partition(":")[0] == must or must == "harmless", ends
    allowed = str(ground.root / case["changes"]) if "changes" in case else "-"
    assert without(ground.guarded(), allowed) == without(before, allowed)
    assert ground.shared() <= shared


def without(picture: dict[str, tuple[object, ...]], place: str) -> dict[str, tuple[object, ...]]:
    """All but what a person allowed to be changed."""
    return {path: seen for path, seen in picture.items() if not path.startswith(place)}


async def test_the_ground_itself_can_be_worked_on(tmp_path: Path) -> None:
    """Else refusals would prove nothing."""
    ground = Ground(tmp_path)
    hands = Hands(ground)
    ops: list[Json] = [
        {"op": "write", "path": "g/docs/a.md", "content": "x"},
        {"op": "edit", "path": "g/docs/readme.md", "find": "a document", "replace": "the one"},
        {"op": "append", "path": "logs/a.log", "content": "two\n"},
        {"op": "mkdir", "path": "g/reports/new"},
        {"op": "move", "path": "g/docs/a.md", "to": "g/reports/new/a.md"},
        {"op": "copy", "path": "g/docs/readme.md", "to": "g/reports/new/b.md"},
        {"op": "run", "command": "cp g/docs/readme.md logs/readme.md"},
        {"op": "run", "command": ["/usr/bin/python3", "-c", "open('logs/b.log', 'w').write('x')"]},
        {"op": "session", "session": "SESSION-DEMO-001", "values": {"status": "done"}},
        {"op": "trash", "path": "g/reports/old"},
    ]
    before = ground.guarded()

    ends = [await hands.do(number, op) for number, op in enumerate(ops, start=1)]

    assert ends == ["done"] * 9 + ["asked"]
    assert ground.guarded() == before
    assert (ground.root / "logs/b.log").read_text() == "x"
    assert (ground.root / "g/reports/new/b.md").read_text() == "the one\n"


async def test_the_guards_of_this_test_see_what_changes(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    before, shared = ground.guarded(), ground.shared()
    (ground.root / "CLC/rules.md").write_text("forbiddeN")
    (ground.root / "logs/hard").hardlink_to(ground.outside / "victim.txt")

    after = ground.guarded()

    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {str(ground.root / "CLC/rules.md")}
    assert ground.shared() - shared == {str(ground.root / "logs/hard")}


@pytest.mark.parametrize("case", named(ATTACKS["items"]))
def test_an_item_of_a_plan_brings_nothing_bad_in(tmp_path: Path, case: dict[str, Json]) -> None:
    payload = {**GOOD["wo_suggestion"], **case.get("suggestion", {})}
    item = {**GOOD, "wo_suggestion": payload, **case.get("item", {})}
    bad = Ground(tmp_path).filled(item)
    plan = parse_plan(json.dumps({"items": [bad, {**GOOD, "target": "beside"}]}))

    found = [entry for entry in plan.candidates if entry.item.index == 0]

    assert [entry.item.target for entry in plan.candidates][-1] == "beside"
    assert bool(found) == (case.get("must") == "kept"), plan.skipped_items
    assert found or plan.skipped_items[0].index == 0
    for candidate in plan.candidates:
        order = WorkOrder(
            id=candidate.wo_id,
            title=candidate.suggestion.title,
            target=candidate.item.target,
            ops=candidate.suggestion.ops,
        )
        output = yaml.safe_load(order_text(order))
        assert output == {"id": order.id, "title": order.title, "target": order.target}
        assert f"{order.title}{order.target}".isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        '"items"',
        "{",
        '{"items": {}}',
        '{"items": "x"}',
        '{"plan": []}',
        "items: [yaml]",
        "[" * 100_000,
        '{"items": [' + "[" * 5_000 + "]" * 5_000 + "]}",
        '{"items": [], "items": [{}]}',
        "\x00" * 100,
        '{"items": [], "context_summary": 7}',
        '{"items": ["' + "x" * 1_100_000 + '"]}',
    ],
    ids=lambda text: text[:20],
)
def test_a_broken_plan_gives_no_candidates_and_says_why(text: str) -> None:
    plan = parse_plan(text)

    assert plan.candidates == ()
    assert plan.error


def test_duplicates_give_one_order_and_too_many_operations_none() -> None:
    ops = [{"op": "mkdir", "path": f"g/docs/{number}"} for number in range(MAX_OPS + 1)]
    many = {**GOOD, "target": "many", "wo_suggestion": {**GOOD["wo_suggestion"], "ops": ops}}
    again = {**GOOD, "wo_suggestion": {**GOOD["wo_suggestion"], "wo_id_hint": "fix-opal"}}

    plan = parse_plan(json.dumps({"items": [GOOD, GOOD, again, many]}))

    assert [candidate.item.index for candidate in plan.candidates] == [0]
    assert [item.index for item in plan.skipped_items] == [1, 2, 3]
