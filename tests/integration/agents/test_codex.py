"""The real codex: replies, payloads, sessions, usage and limits."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from podium.agents.deps import AgentOptions
from podium.agents.headless.codex.agent import TRIED_VERSION, CodexCliAgent
from podium.core.errors import AgentNotLoggedIn, AgentRejected, BadInput, BudgetSpent, ToolMissing
from podium.core.events import AgentProgressed
from podium.core.turns import TurnLimits
from podium.testing import retry_until
from tests.integration.agents import clis
from tests.integration.agents.codex_harness import KEY, MODEL, CodexHarness, codex_harness


class Verdict(BaseModel):
    verdict: Literal["pass", "fail"]
    notes: list[str] = []


async def test_a_plain_reply(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"plain": ["Hello there."]}) as harness:
        reply = await harness.ask("plain")
    assert (reply.text, reply.payload, reply.found) == ("Hello there.", None, "none")
    assert (reply.agent, reply.model, reply.version) == ("codex", MODEL, clis.versions()["codex"])
    assert reply.warnings == ()
    assert reply.transcript == "memory:codex:0"
    assert "Hello there." in harness.transcripts.text


def test_the_version_that_tests_run_is_the_one_that_was_tried() -> None:
    assert clis.versions()["codex"] == TRIED_VERSION


async def test_the_last_message_is_the_reply(tmp_path: Path) -> None:
    steps = {"talks": [{"text": "Let me look.", "run": "ls"}, "Nothing there."]}
    async with codex_harness(tmp_path, steps) as harness:
        reply = await harness.ask("talks")
    assert reply.text == "Nothing there."


async def test_a_payload_by_codexs_own_schema(tmp_path: Path) -> None:
    text = json.dumps({"verdict": "pass", "notes": ["fine"]})
    async with codex_harness(tmp_path, {"payload": [text]}) as harness:
        reply = await harness.ask("payload", contract=Verdict)
        asked = harness.server.requests[0].body["text"]["format"]
    assert (reply.payload, reply.found) == ({"verdict": "pass", "notes": ["fine"]}, "native")
    assert asked["type"] == "json_schema"
    assert asked["schema"]["required"] == ["verdict", "notes"]


async def test_a_reply_that_is_no_json_has_no_payload(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"payload": ["I would rather talk."]}) as harness:
        reply = await harness.ask("payload", contract=Verdict)
    assert (reply.text, reply.found) == ("I would rather talk.", "none")


async def test_a_session_is_continued(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"one": ["First."], "two": ["Second."]}) as harness:
        first = await harness.ask("one")
        second = await harness.ask("two", session=first.session)
        text = json.dumps(harness.server.requests[-1].body["input"])
    assert second.text == "Second."
    assert second.session == first.session
    assert "SCRIPT:one" in text
    assert "First." in text


async def test_a_fresh_session_knows_nothing_of_another(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"one": ["First."], "two": ["Second."]}) as harness:
        first = await harness.ask("one")
        second = await harness.ask("two")
        text = json.dumps(harness.server.requests[-1].body["input"])
    assert second.session != first.session
    assert "SCRIPT:one" not in text


async def test_an_unknown_session_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"one": ["First."]}) as harness:
        with pytest.raises(AgentRejected, match="rejected the turn"):
            await harness.ask("one", session="01a1de0b-1c42-7b40-a966-000000000000")
    assert harness.server.requests == []


async def test_usage_counts_every_exchange_and_costs_money(tmp_path: Path) -> None:
    usage = {"input": 1000, "output": 100, "cached": 400}
    steps = {"works": [{"run": "true", "usage": usage}, {"text": "Done.", "usage": usage}]}
    async with codex_harness(tmp_path, steps) as harness:
        reply = await harness.ask("works")
        again = await harness.ask("works", session=reply.session, step_key="work#1")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (2000, 200)
    assert reply.usage.turns == 2
    assert reply.usage.usd > 0
    assert reply.usage.complete
    assert again.usage.input_tokens == 2000


async def test_a_model_without_a_price_leaves_the_usage_incomplete(tmp_path: Path) -> None:
    async with codex_harness(
        tmp_path, {"one": ["Yes."]}, options={"model": "home-made"}
    ) as harness:
        reply = await harness.ask("one")
    assert reply.usage.output_tokens > 0
    assert not reply.usage.complete
    assert any("home-made" in warning for warning in reply.warnings)


@pytest.mark.parametrize(
    ("limits", "measure"),
    [(TurnLimits(turns=2), "turns"), (TurnLimits(tokens=2500), "tokens")],
)
async def test_a_turn_that_goes_on_beyond_its_limit_is_ended(
    tmp_path: Path, limits: TurnLimits, measure: str
) -> None:
    work = [{"run": f"touch {name}", "usage": {"input": 1000, "output": 400}} for name in "abcdef"]
    async with codex_harness(tmp_path, {"works": [*work, "Done."]}) as harness:
        with pytest.raises(BudgetSpent) as raised:
            await harness.ask("works", limits=limits)
    assert (raised.value.scope, raised.value.measure) == ("step", measure)
    assert raised.value.usage is not None
    assert raised.value.usage.input_tokens == 2000
    assert not (harness.workspace / "c").exists()


async def test_a_turn_that_ends_at_its_limit_is_a_reply(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"works": [{"run": "true"}, "Done."]}) as harness:
        reply = await harness.ask("works", limits=TurnLimits(turns=2))
    assert reply.text == "Done."


async def test_progress_is_reported_while_it_works(tmp_path: Path) -> None:
    steps = {"works": [{"thinking": "Hm.", "run": "true"}, "All is well."]}
    async with codex_harness(tmp_path, steps) as harness:
        await harness.ask("works")
        output = await retry_until(partial(_reported, harness, "text", "All is well."))
        assert await _reported(harness, "tool", "true")
        assert await _reported(harness, "thinking", "Hm.")
    assert output


async def _reported(harness: CodexHarness, kind: str, words: str) -> bool:
    progress = [e for e in await harness.events() if isinstance(e, AgentProgressed)]
    return any(event.kind == kind and words in event.text for event in progress)


async def test_a_newer_version_warns_and_goes_on(tmp_path: Path) -> None:
    program = tmp_path / "codex-of-tomorrow"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "codex-cli 9.0.0" && exit\nexec {clis.codex()} "$@"\n'
    )
    program.chmod(0o755)
    options = {"command": (str(program),)}
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=options) as harness:
        reply = await harness.ask("one")
    assert reply.version == "9.0.0"
    assert any("9.0.0" in warning for warning in reply.warnings)


async def test_a_codex_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    options = {"command": ("codex-that-is-nowhere",)}
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=options) as harness:
        with pytest.raises(ToolMissing, match="npm install --global @openai/codex"):
            await harness.ask("one")


async def test_without_a_key_or_a_login_it_is_not_asked(tmp_path: Path) -> None:
    async with codex_harness(
        tmp_path, {"one": ["Yes."]}, options={"base_url": "", "env": {}}
    ) as harness:
        with pytest.raises(AgentNotLoggedIn, match="codex login"):
            await harness.ask("one")


async def test_the_persons_own_provider_is_used_when_none_is_named(tmp_path: Path) -> None:
    async with codex_harness(
        tmp_path, {"one": ["Yes."]}, options={"base_url": "", "env": {}}
    ) as harness:
        home = harness.deps.user_home / ".codex"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(
            f'model_provider = "mine"\nsandbox_mode = "danger-full-access"\n'
            f'[model_providers.mine]\nname = "mine"\nbase_url = "{harness.server.url}/v1"\n'
            f'wire_api = "responses"\nexperimental_bearer_token = "{KEY}"\n'
        )
        reply = await harness.ask("one")
    assert reply.text == "Yes."
    assert '"danger-full-access"' not in harness.transcripts.text


async def test_the_persons_own_login_is_copied_for_the_turn_alone(tmp_path: Path) -> None:
    async with codex_harness(
        tmp_path, {"one": ["Yes."]}, options={"base_url": "", "env": {}}
    ) as harness:
        home = harness.deps.user_home / ".codex"
        home.mkdir(parents=True)
        (home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": KEY}))
        (home / "config.toml").write_text(
            f'model_provider = "mine"\n[model_providers.mine]\nname = "mine"\n'
            f'base_url = "{harness.server.url}/v1"\nrequires_openai_auth = true\n'
        )
        reply = await harness.ask("one")
    assert reply.text == "Yes."
    assert list(harness.deps.homes.rglob("auth.json")) == []
    assert KEY not in harness.transcripts.text


@pytest.mark.parametrize(
    ("granted", "offers"),
    [
        ("web_search", "'type': 'web_search'"),
        ("google_web_search", "'type': 'web_search'"),
        ("subagents", "spawn_agent"),
        ("codebase_investigator", "spawn_agent"),
    ],
)
async def test_a_tool_of_its_own_is_off_unless_the_role_has_it(
    tmp_path: Path, granted: str, offers: str
) -> None:
    async with codex_harness(tmp_path, {"one": ["Yes."]}) as harness:
        await harness.ask("one")
        reply = await harness.ask("one", own_tools=(granted,), step_key="work#1")
        without, with_it = (repr(seen.body["tools"]) for seen in harness.server.requests)
    assert offers not in without
    assert offers in with_it
    assert reply.warnings == ()


async def test_tools_it_lacks_and_limits_it_cannot_keep_are_reported(tmp_path: Path) -> None:
    given = {"own_tools": ("web_fetch", "run_without_sandbox"), "limits": TurnLimits(usd=0.5)}
    async with codex_harness(
        tmp_path, {"one": ["Yes."]}, options={"model": "home-made"}
    ) as harness:
        reply = await harness.ask("one", **given)
    assert "agent 'codex' has no tool 'web_fetch' of its own; it is not available" in reply.warnings
    assert "the turn's limit of 0.5 usd cannot be enforced for agent 'codex'" in reply.warnings
    assert not any("run_without_sandbox" in warning for warning in reply.warnings)


async def test_transcript_is_json_and_has_no_fragments_of_what_is_reported_whole(
    tmp_path: Path,
) -> None:
    async with codex_harness(tmp_path, {"talks": ["Word after word after word."]}) as harness:
        await harness.ask("talks")
        lines = [json.loads(line) for line in harness.transcripts.transcripts[0].lines]
    sent = [line["sent"]["method"] for line in lines if "sent" in line and "method" in line["sent"]]
    messages = [line["method"] for line in lines if "method" in line]
    assert sent[:2] == ["initialize", "initialized"]
    assert "turn/completed" in messages
    assert not any(method.lower().endswith("delta") for method in messages)
    assert "Word after word after word." in harness.transcripts.text


async def test_options_that_codex_does_not_have_are_named(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"one": ["Yes."]}) as harness:
        with pytest.raises(BadInput, match="'codex': sandbocks"):
            CodexCliAgent(AgentOptions(name="codex", options={"sandbocks": "none"}), harness.deps)
