"""The generated reference: every setting, command and event is in it, and the schema fits what Podium reads."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from podium.cli.app import all_commands
from podium.config.located_yaml import parse_located
from podium.config.schema import settings_schema
from podium.config.settings import SettingsFile
from podium.core.errors import BadInput
from podium.core.events import event_union
from scripts.reference_pages import commands_page, events_page, settings_page
from tests.integration.docs.test_examples import ROOT, Block, blocks, is_settings

SETTINGS = [b for b in blocks("yaml") if is_settings(b) and "turns:" not in b.text.splitlines()]


@cache
def validator() -> Draft202012Validator:
    schema = settings_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("block", SETTINGS, ids=str)
def test_schema_accepts_the_settings_of_the_docs(block: Block) -> None:
    data = parse_located(block.text.encode(), str(block)).data
    assert [error.message for error in validator().iter_errors(data)] == []


@pytest.mark.parametrize(
    "text",
    [
        "agnets: {}",
        "mode: fast",
        "budgets: {run: {usd: a lot}}",
        "flows: {pipeline: {rounds: 0}}",
        "policy: {rules: [{name: a, tool: b, decision: perhaps}]}",
        "policy: {zones: {a: {paths: [b], write_tier: T9}}}",
    ],
)
def test_schema_rejects_what_cannot_be_right(text: str) -> None:
    assert list(validator().iter_errors(parse_located(text.encode(), "podium.yaml").data))


@pytest.mark.parametrize("text", ["sandbox: none", "sandbox: {network: listed, hosts: [a]}"])
def test_schema_and_settings_accept_the_same_short_forms(text: str) -> None:
    located = parse_located(text.encode(), "podium.yaml")
    located.validated(SettingsFile)
    assert list(validator().iter_errors(located.data)) == []
    with pytest.raises(BadInput):
        parse_located(b"sandbox: [none]", "podium.yaml").validated(SettingsFile)


def test_every_key_of_the_settings_has_a_meaning() -> None:
    schema: Any = validator().schema
    page = settings_page(schema)
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 150
    assert [key for key, meaning in rows if not meaning] == []


def test_every_command_and_option_is_on_the_page() -> None:
    page = commands_page()
    assert set(re.findall(r"^## podium (\w+)$", page, re.MULTILINE)) == set(all_commands())
    assert "### podium serve tokens" in page
    assert "`--older-than" in page


def test_every_event_is_on_the_page() -> None:
    types = set(event_union().json_schema()["discriminator"]["mapping"])
    assert set(re.findall(r"^## `(\w+)`$", events_page(), re.MULTILINE)) == types


def test_messages_on_the_troubleshooting_page_are_those_of_the_code() -> None:
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text()
    code = "\n".join(file.read_text() for file in (ROOT / "src/podium").rglob("*.py"))
    code = re.sub(r'"\s*f?"', "", re.sub(r"\{[^{}]*\}", "…", code))
    headings = re.findall(r"^\*\*(.*)\*\*$", page, re.MULTILINE)
    messages = [m for heading in headings for m in re.findall(r"`([^`]+)`", heading)]
    parts = [p.strip(" ;:") for m in messages for p in re.split(r"…|'\w+'|\[T2\]|\b\d+\b", m)]
    assert len(parts) > 25
    assert [part for part in parts if part and part not in code] == []
