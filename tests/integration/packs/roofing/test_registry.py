"""The shipped registry: every tool, domain and tier that was promised, and nothing that contradicts."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from podium.core.decisions import Tier
from podium.core.packs import PackTool, floor_tier, most_specific
from tests.integration.packs.roofing.office import roofing
from tests.unit.packs.roofing.roofing_harness import FOLDER

PAGE = (FOLDER.parents[1] / "docs" / "roofing.md").read_text()
TOOLS = roofing().registry.tools
WRITING = [tool for tool in TOOLS if tool.undo or tool.tier >= Tier.T2]
READING = ("leads.get", "leads.find", "leads.list_by_stage", "media.verify_asset")

DOMAINS = {
    "lead": ("leads.*", "T1"),
    "inspection": ("inspection.* media.*", "T1"),
    "quote": ("quote.*", "T2"),
    "task": ("os.*_task", "T0"),
    "note": ("os.*_note", "T0"),
    "job": ("job.*", "T2"),
    "invoice": ("invoice.*", "T3"),
    "comms": ("comms.* sms.* email.*", "T3"),
    "devops": ("os.health_check os.*_snapshot", "T0"),
    "system": ("os.*", "T0"),
}
TIERS = {
    "T0": "os.health_check leads.list_by_stage os.search_notes",
    "T1": "os.create_task os.create_note leads.create",
    "T2": "quote.finalize inspection.submit",
    "T3": "sms.send email.send_quote",
    "T4": "invoice.void job.cancel",
}


def named(tool: PackTool) -> str:
    return tool.name


def test_the_domains_are_those_of_the_table() -> None:
    rows = roofing().registry.domains
    found = {row.name: (" ".join(row.patterns), str(row.default_tier)) for row in rows}
    assert found == DOMAINS


@pytest.mark.parametrize(("tier", "names"), TIERS.items())
def test_every_example_of_the_tier_table_has_its_tier(tier: str, names: str) -> None:
    registry = roofing().registry
    for name in names.split():
        tool = roofing().tool(name)
        assert tool is not None
        assert (str(tool.tier), str(floor_tier(registry, name)[0])) == (tier, tier)


@pytest.mark.parametrize("tool", TOOLS, ids=named)
def test_no_tool_is_below_its_floor(tool: PackTool) -> None:
    assert tool.tier >= floor_tier(roofing().registry, tool.name)[0]


@pytest.mark.parametrize("tool", TOOLS, ids=named)
def test_every_tool_can_be_asked_for_in_at_least_four_ways(tool: PackTool) -> None:
    assert len({utterance.say for utterance in tool.examples}) >= 4
    assert len(tool.synonyms) >= 3
    assert tool.receipt_fields


@pytest.mark.parametrize("tool", TOOLS, ids=named)
def test_every_required_argument_has_a_question(tool: PackTool) -> None:
    silent = [name for name in tool.required if not tool.properties[name].get("x-ask")]
    assert silent == []


@pytest.mark.parametrize("tool", WRITING, ids=named)
def test_every_tool_that_writes_is_proved_by_a_row(tool: PackTool) -> None:
    assert tool.verify


def test_only_reading_sending_and_forgetting_tools_cannot_be_undone() -> None:
    final = {tool.name for tool in TOOLS if tool.tier >= Tier.T1 and tool.undo is None}
    assert final - set(READING) == {
        "inspection.generate_scope_summary",
        "quote.reopen",
        "os.reopen_task",
        "job.reopen",
        "os.remove_snapshot",
        *(tool.name for tool in TOOLS if _domain(tool) == "comms"),
    }


def test_everything_irreversible_in_the_table_declares_its_inverse() -> None:
    assert all(tool.undo for tool in TOOLS if tool.tier == Tier.T4)


def test_two_groups_approve_what_ends_a_job_or_an_invoice() -> None:
    chains = {tool.name: tool.approvals for tool in TOOLS if tool.approvals}
    assert chains == {"job.cancel": ("ops", "owner"), "invoice.void": ("ops", "owner")}


def test_sending_is_not_repeated_and_all_else_may_be() -> None:
    once = {tool.name for tool in TOOLS if tool.idempotency_key == "none"}
    assert once == {tool.name for tool in TOOLS if _domain(tool) == "comms"}


def test_there_is_a_tool_for_every_domain_and_more_than_sixty_in_all() -> None:
    counted = Counter(_domain(tool) for tool in TOOLS)
    assert set(counted) == set(DOMAINS)
    assert counted.total() == len({tool.name for tool in TOOLS}) >= 60


def test_the_words_of_no_two_tools_are_the_same() -> None:
    output = Counter(utterance.say.casefold() for tool in TOOLS for utterance in tool.examples)
    assert [words for words, times in output.items() if times > 1] == []


def test_suburbs_are_known_by_name_once_only() -> None:
    suburbs = (FOLDER / "suburbs.txt").read_text().splitlines()
    assert len(suburbs) == len(set(suburbs)) >= 300
    assert {"Clayton", "Mulgrave", "Glen Waverley", "Dandenong North"} <= set(suburbs)
    assert suburbs == sorted(suburbs)


def test_secrets_are_marked_as_such() -> None:
    marked = {setting.name for setting in roofing().registry.settings if setting.secret}
    assert marked == {
        "SUPABASE_SERVICE_ROLE_KEY",
        "ROOFING_DATABASE_URL",
        "ROOFING_SMTP_PASSWORD",
        "ROOFING_SMS_TOKEN",
    }


def test_the_registry_is_readable_json_that_names_its_schema() -> None:
    text = (FOLDER / "tools.registry.json").read_text()
    assert json.loads(text)["$schema"] == "../tools.registry.schema.json"
    assert max(map(len, text.splitlines())) <= 400


def test_the_page_lists_every_tool_with_its_tier_and_inverse() -> None:
    rows = re.findall(
        r"^\| (\w+) \| `([\w.]+)` \| (T\d) \| .* \| (?:`([\w.]+)`|\w*)\s*\|$", PAGE, re.MULTILINE
    )
    listed = {(domain, name, tier, undo) for domain, name, tier, undo in rows}
    assert listed == {(_domain(tool), tool.name, str(tool.tier), tool.undo or "") for tool in TOOLS}


def test_the_page_explains_every_setting_and_names_every_skill() -> None:
    registry = roofing().registry
    assert re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE) == [
        setting.name for setting in registry.settings
    ]
    assert [skill.name for skill in registry.skills if f"`{skill.name}`" not in PAGE] == []


def _domain(tool: PackTool) -> str:
    row = most_specific(roofing().registry, tool.name)
    return tool.domain or (row.name if row else "")
