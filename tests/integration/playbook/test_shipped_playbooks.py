"""The playbooks that come with Podium work, with their scripts and with a model that speaks as Gemini does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.agents import GeminiAgent
from podium.core.errors import BadInput
from podium.core.events import Event
from podium.jobs.playbook.samples import INPUTS, lay_out, sample_names, shipped_playbooks
from podium.library import load_profile, run_playbook
from podium.testing.modelserver import ModelServer
from tests.integration.cli.command_runner import CommandRunner
from tests.soaking import in_soak

KEY = "AIza-loopback-0123456789"
SAMPLES = ("bump-compatibility", "fix-failing-test", "migrate-deprecated-api")
ONE_OF_THEM = [SAMPLES[0], *map(in_soak, SAMPLES[1:])]


def acts_of(sample: str) -> list[dict[str, Any]]:
    script = yaml.safe_load((shipped_playbooks() / sample / "script.yaml").read_text())
    return [*script["turns"][0]["acts"], {"reply": script["turns"][0].get("reply", "")}]


def answers(sample: str) -> list[Any]:
    """The script as a model would say it: a call in each answer, then the last words."""
    steps: list[Any] = []
    for act in acts_of(sample):
        match act:
            case {"call": tool, "with": arguments}:
                steps.append({"tools": [{"name": tool, "arguments": arguments}]})
            case {"reply": words} if words:
                steps.append(words)
    return steps


def test_three_samples_are_shipped() -> None:
    assert tuple(sample_names()) == SAMPLES


@pytest.mark.soak
@pytest.mark.parametrize("sample", ONE_OF_THEM)
def test_a_sample_fails_its_own_criteria_until_its_playbook_is_followed(
    sample: str, cli: CommandRunner
) -> None:
    made = lay_out(sample, cli.project)
    (cli.project / ".sample" / "script.yaml").write_text(
        yaml.safe_dump({"turns": [{"role": "playbook", "reply": "Done!"}]})
    )
    lazy = cli.run(*made.command.split()[1:])
    assert lazy.code == 1
    assert "NOT MET" in lazy.out


@pytest.mark.sample(1)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_script_of_a_sample_meets_every_criterion(sample: str, cli: CommandRunner) -> None:
    made = lay_out(sample, cli.project)
    result = cli.run(*made.command.split()[1:])
    assert result.code == 0, result.err
    assert "NOT MET" not in result.out
    assert "met" in result.out


@pytest.mark.parametrize("sample", ONE_OF_THEM)
async def test_a_model_that_speaks_as_gemini_does_follows_a_sample(
    sample: str, tmp_path: Path
) -> None:
    lay_out(sample, tmp_path / "plugin")
    seen: list[Event] = []
    async with ModelServer({"default": {"steps": answers(sample)}}, key=KEY) as server:
        result = await run_playbook(
            tmp_path / "plugin" / "playbook.md",
            load_profile(tmp_path / "plugin"),
            root=tmp_path / "plugin",
            agent=lambda deps: GeminiAgent(deps, lambda name: KEY, base_url=server.url),
            inputs=INPUTS.get(sample),
            on_event=seen.append,
            environ={**os.environ, "PODIUM_HOME": str(tmp_path / "home")},
        )
    assert result.met, result
    types = [event.body.type for event in seen]
    assert types.count("model_answered") == len(answers(sample))
    calls = sum("call" in act for act in acts_of(sample))
    assert types.count("tool_completed") >= calls
    assert KEY not in str([event.line() for event in seen])


def test_a_sample_is_not_laid_over_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        lay_out("fix-failing-test", tmp_path)
    with pytest.raises(BadInput, match="samples: bump-compatibility, fix-failing-test"):
        lay_out("no-such", tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt"]
