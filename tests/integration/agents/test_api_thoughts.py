"""Return of a model's reasoning to the model as its provider requires: in place, with its signature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.testing.modelserver import ModelServer
from tests.integration.agents.api_harness import (
    KEY,
    NOTE,
    ApiHarness,
    allowed,
    note,
    script,
    waiting,
)

SIGNATURE = "c2NyaXB0ZWQ="
THOUGHT = "milk, they said"
STEPS = [{**note("milk"), "thinking": THOUGHT}, {**note("tea"), "thinking": THOUGHT}, "Noted."]


def _google_answers(body: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [content["parts"] for content in body["contents"] if content["role"] == "model"]


def _is_signed_google(parts: list[dict[str, Any]]) -> bool:
    """The signature stands on the call, and nowhere else."""
    signed = [part for part in parts if "thoughtSignature" in part]
    return [part["thoughtSignature"] for part in signed] == [SIGNATURE] and all(
        "functionCall" in part for part in signed
    )


def _anthropic_answers(body: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [message["content"] for message in body["messages"] if message["role"] == "assistant"]


def _is_signed_anthropic(parts: list[dict[str, Any]]) -> bool:
    """The thought comes first, whole and signed."""
    return parts[0] == {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE} and (
        parts[-1]["type"] == "tool_use"
    )


READING = {
    "google": (_google_answers, _is_signed_google),
    "anthropic": (_anthropic_answers, _is_signed_anthropic),
}
every_signing_provider = pytest.mark.parametrize("provider", list(READING))


@every_signing_provider
async def test_thoughts_go_back_signed_within_a_turn(provider: str, tmp_path: Path) -> None:
    answers, is_signed = READING[provider]
    async with ModelServer(script(x=STEPS), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, [allowed("kept")] * 2, [NOTE])
        await harness.agent.ask(harness.turn("SCRIPT:x"))
        sent = answers(server.requests[-1].body)
    assert len(sent) == 2
    assert all(map(is_signed, sent))


@every_signing_provider
async def test_thoughts_go_back_signed_after_an_approval_in_another_process(
    provider: str, tmp_path: Path
) -> None:
    answers, is_signed = READING[provider]
    async with ModelServer(script(x=STEPS), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, [waiting("ap_1")], [NOTE])
        first = await harness.agent.ask(harness.turn("SCRIPT:x"))
        harness.doors.door.answers.extend([allowed("kept")] * 2)
        harness.doors.door.waiting_approvals = ()
        turn = harness.turn("SCRIPT:x", session=first.session)
        reply = await harness.new_agent().ask(turn)
        sent = answers(server.requests[-1].body)
    assert reply.text == "Noted."
    assert len(sent) == 2
    assert all(map(is_signed, sent))


@every_signing_provider
async def test_thoughts_go_back_signed_after_a_crash(provider: str, tmp_path: Path) -> None:
    answers, is_signed = READING[provider]
    async with ModelServer(script(x=STEPS), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, [allowed("kept")] * 4, [NOTE])
        await harness.agent.ask(harness.turn("SCRIPT:x"))
        del harness.doors.door.remembered[2]
        await harness.new_agent().ask(harness.turn("SCRIPT:x"))
        assert len(server.requests) == 4
        before, after = (answers(server.requests[at].body) for at in (2, 3))
    assert all(map(is_signed, after))
    assert after == before
