"""Replay of a run whose agent is a model: it answers from the trace, with no server and no key."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import yaml

from podium.testing import retry_until
from podium.testing.modelserver import ModelServer, Script
from tests.integration.cli.command_runner import AS_OS_USER, CommandResult, CommandRunner
from tests.integration.playbook.playbook_harness import Stage, of_type, trace_of

KEY = "sk-very-secret-0123456789"
LARGE = "a line that is long enough to count\n" * 2_000
"""More than an event keeps of a call's arguments."""


def wants(*calls: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    return {"text": text, "tools": [{"name": name, "arguments": given} for name, given in calls]}


def script(*steps: Any) -> Script:
    return Script.model_validate({"default": {"each_time": True, "steps": list(steps)}})


SCRIPT = script(
    wants(
        ("read_file", {"path": "version.txt"}),
        ("read_file", {"wrong": 1}),
        ("write_file", {"path": "vendor/lib.txt", "content": "mine"}),
        text="I look first.",
    ),
    wants(("write_file", {"path": "large.txt", "content": LARGE})),
    wants(("ask_human", {"question": "Really?"})),
    wants(("write_file", {"path": "version.txt", "content": "2.0\n"})),
    "It is done.",
)
INTERRUPTED = script(
    wants(("read_file", {"path": "version.txt"}), ("read_file", {"path": "vendor/lib.txt"})),
    {"fault": "hang"},
    wants(("write_file", {"path": "version.txt", "content": "2.0\n"})),
    "It is done.",
)


@pytest.fixture
def stage(cli: CommandRunner) -> Stage:
    return Stage(cli)


def configure(stage: Stage, url: str) -> None:
    agent = {
        "kind": "api",
        "model": "gpt-4.1",
        "base_url": f"{url}/v1",
        "env": {"OPENAI_API_KEY": "secret://MODEL_KEY"},
        "options": {"provider": "openai"},
    }
    stage.cli.says("{}\n")
    stage.cli.home.mkdir(exist_ok=True)
    settings = {"agents": {"model": agent}, "secrets": ["MODEL_KEY"]}
    (stage.cli.home / "config.yaml").write_text(yaml.safe_dump(settings))


async def spawned(stage: Stage, *arguments: str, **env: str) -> CommandResult:
    return await asyncio.to_thread(stage.cli.spawn, *arguments, env=env)


@pytest.mark.soak
async def test_answers_of_a_model_happen_again_without_it(stage: Stage) -> None:
    async with ModelServer(SCRIPT, key=KEY) as server:
        configure(stage, server.url)
        result = await spawned(stage, "playbook", "run", "bump.md", "--json", MODEL_KEY=KEY)
        assert result.code == 3, result.err
        run_id = json.loads(result.out.splitlines()[0])["run"]
        (asked,) = of_type(trace_of(stage.root, run_id), "approval_requested")
        answered = await spawned(
            stage, "approve", asked["approval_id"], "--say", "yes", **AS_OS_USER
        )
        assert answered.code == 0, answered.err
        result = await spawned(stage, "resume", run_id, MODEL_KEY=KEY)
        assert result.code == 0, result.err
        asked_models = len(server.requests)
    lines = trace_of(stage.root, run_id)
    assert len(of_type(lines, "model_answered")) == asked_models == 5
    (stage.cli.home / "config.yaml").unlink()
    result = await spawned(stage, "replay", run_id, "--json")
    assert (result.code, result.json["verbatim"]) == (0, True), result.out + result.err


@pytest.mark.soak
async def test_a_model_whose_process_was_killed_goes_on_where_it_was_and_again_in_a_replay(
    stage: Stage,
) -> None:
    async with ModelServer(INTERRUPTED, key=KEY) as server:
        configure(stage, server.url)
        process = await asyncio.create_subprocess_exec(
            *stage.cli.command("playbook", "run", "bump.md"),
            cwd=stage.root,
            env={**stage.cli.environ, "MODEL_KEY": KEY},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await retry_until(lambda: len(server.requests) == 2, seconds=60)
        process.kill()
        await process.wait()
        (run,) = (stage.root / ".podium" / "runs").iterdir()
        result = await spawned(stage, "resume", run.name, MODEL_KEY=KEY)
        assert result.code == 0, result.err
        assert len(server.requests) == 4
    assert len(of_type(trace_of(stage.root, run.name), "run_started")) == 2
    result = await spawned(stage, "replay", run.name, "--json")
    assert (result.code, result.json["verbatim"]) == (0, True), result.out + result.err
