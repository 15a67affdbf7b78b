"""The agents on the model server's page really reach it, each with its own way to write the address."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.app.agent_builder import KINDS
from podium.app.agent_status import ask_once
from podium.app.app import open_podium
from podium.config.configuration import load_configuration
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis
from tests.soaking import in_soak

PAGE = (Path(__file__).parents[3] / "docs" / "modelserver.md").read_text()
PROGRAMS = {
    "gemini": lambda: [*clis.gemini()],
    "claude": lambda: [clis.claude()],
    "codex": lambda: [clis.codex()],
    "opencode": lambda: [clis.opencode()],
    "acp": lambda: [*clis.gemini(), "--acp"],
}


def settings_on_the_page(port: int = 8123) -> dict[str, Any]:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return dict(yaml.safe_load(block.replace("8123", str(port))))


def test_every_kind_that_asks_a_model_is_on_the_page() -> None:
    shown = {agent["kind"] for agent in settings_on_the_page()["agents"].values()}
    assert shown == set(KINDS) - {"scripted", "command", "bus"}


SELDOM = ("opencode", "acp")
"""One takes ten seconds for an answer, the other is the Gemini CLI once more; tests/integration/agents asks both each time."""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name", [in_soak(name) if name in SELDOM else name for name in settings_on_the_page()["agents"]]
)
async def test_an_agent_of_the_page_gets_its_answer(name: str, tmp_path: Path) -> None:
    async with ModelServer({"default": {"steps": ["OK"]}}, key="any-key") as server:
        settings = settings_on_the_page(server.port)
        agent = settings["agents"][name]
        if name in PROGRAMS:
            agent["command"] = PROGRAMS[name]()
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PODIUM_HOME": str(tmp_path),
            "MODEL_KEY": "any-key",
        }
        project = tmp_path / "project"
        project.mkdir()
        async with open_podium(load_configuration(environ, project=project), environ) as podium:
            reply = await ask_once(podium, name)
    assert reply.text.strip() == "OK"
