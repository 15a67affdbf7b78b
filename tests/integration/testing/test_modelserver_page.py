"""The model server's page says what is there, and its script can be played."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from podium.config.located_yaml import parse_located
from podium.testing.modelserver import ModelServer, Script, ScriptRule, ScriptStep
from podium.testing.modelserver.cassette import CONTEXT_TAGS, VOLATILE_KEYS
from podium.testing.modelserver.script import Fault, ProtocolName
from tests.integration.testing.modelserver_client import ask, text_of

PAGE = (Path(__file__).parents[3] / "docs" / "modelserver.md").read_text()


def script_on_the_page() -> Script:
    (block,) = re.findall(r"```text\n(rules:.*?)```", PAGE, re.DOTALL)
    return parse_located(block.encode(), "page").validated(Script)


async def test_the_script_on_the_page_can_be_played() -> None:
    async with ModelServer(script_on_the_page()) as server:
        response = await ask(server, "chat", "SCRIPT:tidy", tools=["bash"])
        assert text_of("chat", response) == "I look around."
        first = await ask(server, "chat", "the verdict as JSON")
        again = await ask(server, "chat", "the verdict as JSON")
        assert text_of("chat", first) != text_of("chat", again) == '{"verdict": "ok"}'
        limited = await ask(server, "gemini", "hi", model="some-pro")
        assert (limited.status, limited.headers["retry-after"]) == (429, "30")
        assert text_of("gemini", await ask(server, "gemini", "hi")) == "Good day."


def test_every_key_of_a_script_and_every_fault_is_on_the_page() -> None:
    keys = {*ScriptStep.model_fields, *ScriptRule.model_fields} - {"name"}
    names = [*keys, *Script.model_fields, *get_args(Fault), *get_args(ProtocolName)]
    assert [name for name in names if not re.search(rf"\b{name}\b", PAGE)] == []


def test_every_rule_of_what_makes_requests_equal_is_on_the_page() -> None:
    missing = [key for key in VOLATILE_KEYS if f"`{key}`" not in PAGE]
    missing += [tag for tag in CONTEXT_TAGS if f"`<{tag}>`" not in PAGE]
    assert missing == []
