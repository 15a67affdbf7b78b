"""The skill for coding agents: its front matter, its inline commands, the codes and states it names, and a reader."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path

import yaml

from podium.core import errors
from podium.core.work import RunStatus
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis
from tests.integration.docs.command_line import commands, usage_problem

SKILL = Path(__file__).parents[3] / ".agents" / "skills" / "using-podium" / "SKILL.md"
TEXT = SKILL.read_text()


def first_column(heading: str) -> list[str]:
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert table
    return [row.split("|")[1].strip() for row in table[1].splitlines()]


def test_front_matter_follows_the_convention_of_skills() -> None:
    front = yaml.safe_load(TEXT.split("---")[1])
    assert set(front) == {"name", "description"}
    assert front["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", front["name"])
    assert 1 <= len(front["description"]) <= 1024


def test_every_command_in_the_text_is_read_by_the_command_line() -> None:
    """Those in blocks are tried by test_examples.py, as those of every page."""
    inline = re.findall(r"`(podium [^`]+)`", TEXT)
    assert len(inline) >= 8
    problems = {code: usage_problem(argv[1:]) for code in inline for argv in commands(code)}
    assert {code: problem for code, problem in problems.items() if problem} == {}


def test_every_state_of_a_run_is_explained() -> None:
    named = {name for cell in first_column("status") for name in re.findall(r"`(\w+)`", cell)}
    assert named == {status.value for status in RunStatus} | {"interrupted"}


def test_every_exit_code_is_explained() -> None:
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type)]
    codes = {cls.exit_code for cls in classes if issubclass(cls, errors.PodiumError)}
    assert codes | {0} == {int(cell) for cell in first_column("code")}


async def test_a_real_agent_is_offered_the_skill_and_reads_it(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    shutil.copytree(SKILL.parents[2], project / ".agents")
    home.mkdir()
    path = SKILL.relative_to(SKILL.parents[3])
    script = {"rules": [{"when": "Fix it", "steps": [{"run": f"cat {path}"}, {"text": "Done."}]}]}
    async with ModelServer(script) as server:
        provider = f'{{name="p", base_url="{server.url}/v1", env_key="KEY", wire_api="responses"}}'
        settings = (
            "--sandbox",
            "danger-full-access",
            "-c",
            "model_provider=p",
            "-c",
            f"model_providers.p={provider}",
        )
        agent = await asyncio.create_subprocess_exec(
            clis.codex(), "exec", "--skip-git-repo-check", *settings, "Fix it with Podium",
            cwd=project,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "KEY": "any"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, err = await agent.communicate()
        assert agent.returncode == 0, err.decode()
        first, *_, last = [json.dumps(request.body) for request in server.requests]
    assert "using-podium: Hand a coding task to Podium" in first
    assert "Approvals are for people" in last
