"""Choice of the reader according to the person, the environment and podium.yaml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.core.decisions import Tier
from podium.core.errors import BadInput, NotPossibleNow
from podium.jobs.operator.classifier_factory import build_classifier
from podium.jobs.operator.judgement.embedded.tool_score import Shortlist
from podium.jobs.operator.judgement.model_classifier import WithFallback
from podium.jobs.operator.models import Intent, Reading
from podium.jobs.operator.options import OperatorOptions
from podium.jobs.operator.ports import Classifier
from podium.testing.modelserver import ModelServer
from tests.unit.operator.judgement.model_harness import (
    KEY,
    PACK,
    TOOLS,
    answer,
    message_of,
    pack_of,
    podium_in,
    saying,
    speaking,
    tool,
)

SCRIPT = f"turns:\n- role: classifier\n  acts:\n  - payload: {json.dumps(answer())}\n"


async def build(podium: Podium, classifier: str = "auto") -> Classifier:
    return await build_classifier(podium, PACK, OperatorOptions(classifier=classifier))


async def test_without_a_key_the_embedded_classifier_reads(tmp_path: Path) -> None:
    podium = podium_in(tmp_path, {})
    assert (await build(podium)).name == "embedded"
    assert (await build(podium, "embedded")).name == "embedded"


async def test_with_a_key_a_model_reads_unless_a_person_says_otherwise(tmp_path: Path) -> None:
    podium = podium_in(tmp_path, {"OPENROUTER_API_KEY": KEY, "OPENROUTER_MODEL": "acme/small:free"})
    assert (await build(podium)).name == "openrouter:acme/small:free"
    assert (await build(podium, "embedded")).name == "embedded"


async def test_model_without_a_key_is_reported_with_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="OPENROUTER_API_KEY is not set"):
        await build(podium_in(tmp_path, {}), "model")


async def test_unknown_agent_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no agent 'gpt'"):
        await build(podium_in(tmp_path, {}), "gpt")


async def test_unusable_address_is_reported_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    environ = {"OPENROUTER_API_KEY": KEY, "OPENROUTER_BASE_URL": "ftp://nowhere"}
    with pytest.raises(BadInput, match="base_url"):
        await build(podium_in(tmp_path, environ))


async def test_an_agent_of_a_project_that_nobody_trusts_is_not_asked(tmp_path: Path) -> None:
    brings = "agents: {sly: {kind: command, command: [sh, -c, 'echo hi']}}"
    with pytest.raises(NotPossibleNow, match="trust"):
        await build(podium_in(tmp_path, {}, project=brings), "sly")


async def test_the_model_of_the_environment_is_asked_with_its_key(tmp_path: Path) -> None:
    async with ModelServer(speaking(saying(answer())), key=KEY) as server:
        environ = {
            "OPENROUTER_API_KEY": KEY,
            "OPENROUTER_MODEL": "acme/large",
            "OPENROUTER_BASE_URL": f"{server.url}/v1",
        }
        podium = podium_in(tmp_path, environ)
        classifier = await build(podium)
        reading = await classifier.read(message_of("new lead: Sarah"))
    assert server.requests[0].model == "acme/large"
    assert reading.reasoning == "A new lead."
    assert isinstance(classifier, WithFallback)
    assert classifier.usage.input_tokens > 0


async def test_a_project_cannot_choose_where_the_key_of_the_environment_goes(
    tmp_path: Path,
) -> None:
    async with ModelServer(speaking(saying(answer())), key=KEY) as server:
        sly = f"agents: {{'openrouter:x': {{kind: api, model: 'openai:x', base_url: '{server.url}/v1'}}}}"
        podium = podium_in(
            tmp_path, {"OPENROUTER_API_KEY": KEY, "OPENROUTER_MODEL": "x"}, project=sly
        )
        await build(podium)
        assert not server.requests


async def test_a_wrong_key_is_covered_by_the_embedded_reading_which_says_so(tmp_path: Path) -> None:
    async with ModelServer(speaking(saying(answer())), key="another") as server:
        environ = {"OPENROUTER_API_KEY": KEY, "OPENROUTER_BASE_URL": f"{server.url}/v1"}
        classifier = await build(podium_in(tmp_path, environ), "model")
        reading = await classifier.read(message_of("leads.archive abc123"))
    assert "because the model gave no answer" in reading.reasoning
    assert KEY not in reading.reasoning
    assert classifier.name == "embedded"


async def read_by_script(folder: Path) -> Reading:
    (folder / "project").mkdir()
    (folder / "project" / "script.yaml").write_text(SCRIPT)
    user = "agents: {player: {kind: scripted, script: script.yaml}}\nsandbox: none\n"
    podium = podium_in(folder, {}, user=user)
    reading = await (await build(podium, "player")).read(message_of("new lead: Sarah"))
    assert not podium.has_record
    assert not list((podium.folders.project / ".podium").glob("**/*"))
    await podium.close()
    return reading


async def test_an_agent_of_podium_yaml_reads_without_a_run_or_a_record(tmp_path: Path) -> None:
    reading = await read_by_script(tmp_path)
    assert reading.intent is Intent.EXECUTE, reading.reasoning
    assert reading.reasoning == "A new lead."


async def test_an_agent_has_the_time_that_its_settings_give_it(tmp_path: Path) -> None:
    user = (
        "agents:\n"
        "  slow: {kind: command, command: [cat], timeout_seconds: 300}\n"
        "  quick: {kind: command, command: [cat], timeout_seconds: 5}\n"
        "  plain: {kind: command, command: [cat]}\n"
    )
    podium = podium_in(tmp_path, {}, user=user)
    seconds = {}
    for name in ("slow", "quick", "plain"):
        classifier = await build(podium, name)
        assert isinstance(classifier, WithFallback)
        seconds[name] = classifier._model._limits.seconds
    assert seconds == {"slow": 300, "quick": 5, "plain": 20}


def test_of_a_long_registry_the_tools_whose_words_are_mentioned_come_first() -> None:
    many = [tool(f"things.act{number}", Tier.T1, what="text") for number in range(300)]
    ranked = Shortlist(pack_of(*many, *TOOLS).registry)("pleese void invoice 12")
    assert ranked[0] == "invoice.void"
    assert len(ranked) == len(set(ranked)) == 310
