"""The most specific pattern has the say over a tool's domain and its lowest tier."""

from __future__ import annotations

import pytest

from podium.core.packs import PackRegistry, floor_tier, most_specific

REGISTRY = PackRegistry.model_validate(
    {
        "pack": "table",
        "version": "1",
        "description": "Rows.",
        "domains": [
            {"name": "system", "patterns": ["os.*"], "default_tier": "T0"},
            {"name": "task", "patterns": ["os.*_task"], "default_tier": "T1"},
            {
                "name": "devops",
                "patterns": ["os.health_check", "os.*_snapshot"],
                "default_tier": "T2",
            },
            {"name": "calm", "patterns": ["invoice.*"], "default_tier": "T0"},
            {"name": "money", "patterns": ["invoice.?*"], "default_tier": "T3"},
        ],
        "tier_examples": [{"tool": "os.drop_task", "tier": "T4"}],
        "tools": [],
    }
)


@pytest.mark.parametrize(
    ("tool", "domain", "tier", "because"),
    [
        ("os.list_quotes", "system", "T0", "domain system (os.*) is T0 by default"),
        ("os.create_task", "task", "T1", "domain task (os.*_task) is T1 by default"),
        ("os.create_snapshot", "devops", "T2", "domain devops (os.*_snapshot) is T2 by default"),
        ("os.health_check", "devops", "T2", "domain devops (os.health_check) is T2 by default"),
        ("os.drop_task", "task", "T4", "the tier table has os.drop_task as T4"),
    ],
)
def test_the_most_specific_row_decides(tool: str, domain: str, tier: str, because: str) -> None:
    row = most_specific(REGISTRY, tool)

    assert row is not None
    assert row.name == domain
    assert (str(floor_tier(REGISTRY, tool)[0]), floor_tier(REGISTRY, tool)[1]) == (tier, because)


def test_of_rows_that_say_equally_much_the_riskier_is_believed() -> None:
    assert str(floor_tier(REGISTRY, "invoice.void")[0]) == "T3"


def test_a_name_under_no_row_is_taken_for_the_worst() -> None:
    assert most_specific(REGISTRY, "rocket.launch") is None
    assert floor_tier(REGISTRY, "rocket.launch") == (4, "no domain has rocket.launch")
