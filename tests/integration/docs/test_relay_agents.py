"""Real agents on the relay: they wait through its signs of life and take the answer that comes behind them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import yaml

from podium.app.agent_status import ask_once
from podium.app.app import open_podium
from podium.config.configuration import load_configuration
from podium.testing import retry_until
from podium.testing.modelserver import ModelServer
from podium.testing.modelserver.relay import ExchangeFolder, Relay, RelayExchange
from tests.integration.docs.test_modelserver_agents import PROGRAMS, SELDOM, settings_on_the_page
from tests.soaking import in_soak

AGENTS = [name for name in settings_on_the_page()["agents"] if name != "acp"]


async def answer_all(waiting: asyncio.Queue[RelayExchange]) -> None:
    """First what cannot be sent: the client waits meanwhile, with signs of life every 20 ms."""
    while True:
        exchange = await waiting.get()
        if exchange.state != "waiting":
            continue
        exchange.path("answer.md").write_text("")
        await retry_until(exchange.path("answer.error").exists)
        exchange.write_answer({"text": "OK"})


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", [in_soak(name) if name in SELDOM else name for name in AGENTS])
async def test_an_agent_waits_for_the_answer_of_a_program(name: str, tmp_path: Path) -> None:
    output: asyncio.Queue[RelayExchange] = asyncio.Queue()
    with ExchangeFolder(tmp_path / "trial") as folder:
        relay = Relay(folder, key="any-key", keep_alive_seconds=0.02, watcher=output.put_nowait)
        async with ModelServer.by_hand(relay) as server:
            settings = settings_on_the_page(server.port)
            if name in PROGRAMS:
                settings["agents"][name]["command"] = PROGRAMS[name]()
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
            environ = {
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "PODIUM_HOME": str(tmp_path),
                "MODEL_KEY": "any-key",
            }
            (tmp_path / "project").mkdir()
            configuration = load_configuration(environ, project=tmp_path / "project")
            answering = asyncio.create_task(answer_all(output))
            try:
                async with open_podium(configuration, environ) as podium:
                    reply = await ask_once(podium, name)
            finally:
                answering.cancel()
    assert reply.text.strip() == "OK"
    assert relay.count >= 1
