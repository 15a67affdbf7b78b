"""The policy on the page is real, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from podium.core.decisions import Access, BuiltInRule, Effect, Tier
from podium.policy import CommandKind, RuleGate
from tests.unit.gate.gate_harness import decide, gate_of, path, run, tool_call

PAGE = (Path(__file__).parents[3] / "docs" / "gate.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def the_pages_gate() -> RuleGate:
    return gate_of(default=True, user=yaml.safe_dump(yaml.safe_load(block("yaml"))["policy"]))


def test_the_policy_on_the_page_does_what_the_page_says() -> None:
    gate = the_pages_gate()
    live = tool_call("write_file", paths=(path("config/live.yaml", Access.WRITE),))

    decision = decide(gate, live, Tier.T1)
    assert (decision.rule, decision.approvers) == ("settings-need-a-person", ("ops", "owner"))
    drafted = path("config/drafts/a.yaml", Access.WRITE)
    draft = tool_call("write_file", paths=(drafted,), arguments={"path": "config/drafts/a.yaml"})
    assert decide(gate, draft, Tier.T1).rule == "drafts-are-free"
    assert run(gate, "./build.sh --fast").rule == "our-build"
    assert run(gate, "cat secrets/a").effect is Effect.DENY
    paying = tool_call("pay_invoice", arguments={"amount": 20, "currency": "EUR"})
    assert decide(gate, paying, Tier.T3).rule == "small-payments-only"
    assert gate.approval_seconds == 14400


def test_the_page_leads_through_every_file_of_the_room() -> None:
    files = (Path(__file__).parents[3] / "src/podium/policy").glob("[a-z]*")
    assert [file.name for file in files if file.is_file() and f"`{file.name}`" not in PAGE] == []


def test_the_page_names_every_kind_and_every_built_in_check() -> None:
    assert [kind for kind in CommandKind if f"`{kind}`" not in PAGE] == []
    assert [rule for rule in BuiltInRule if f"`{rule}`" not in PAGE] == []
