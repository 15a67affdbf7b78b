"""Payloads by a provider's own schema: JSON is read as strictly there as anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.testing.modelserver import ModelServer
from tests.integration.agents.api_harness import KEY, ApiHarness, Verdict, script


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [
        '{"verdict": "fail", "score": 7, "verdict": "pass"}',
        '{"verdict": "pass", "score": NaN}',
        '[{"verdict": "pass", "score": 7}]',
        '{"verdict": ' + "[" * 100_000,
    ],
)
async def test_what_two_readers_could_read_differently_is_no_native_payload(
    text: str, tmp_path: Path
) -> None:
    async with ModelServer(script(native=[text]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "openai")
        reply = await harness.agent.ask(harness.turn("SCRIPT:native", contract=Verdict))
    assert (reply.found, reply.payload) == ("none", None)
    assert "does not match the schema" in reply.warnings[0]
