"""The README's way to the first branch, and its shorter commands, run as printed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from podium.cli.error_report import run as run_command_line
from podium.jobs.pipeline.agent_text import slug_of
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis
from tests.integration.contract.media import CLAUDE, KEY
from tests.integration.docs.command_line import commands
from tests.integration.pipeline.pipeline_harness import FEAT, RIGHT, TEST, WRONG
from tests.integration.pipeline.test_real_clis import SCRIPT

README = (Path(__file__).parents[3] / "README.md").read_text()
LONG = {("make",), ("pipx",), ("podium", "run"), ("podium", "serve"), ("podium", "mcp"), ("podium", "duet")}  # fmt: skip
"""Tried by tests of their own: the demo, the clean environment, the pipeline, the console, MCP, the duet."""


def readme_commands() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [argv for block in blocks for argv in commands(block)]


def short_commands() -> list[list[str]]:
    everything = readme_commands()
    return [argv for argv in everything if not {tuple(argv[:1]), tuple(argv[:2])} & LONG]


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 250


def test_the_readmes_shorter_commands_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    codes = {}
    for argv in short_commands():
        if argv[0] == "cd":
            monkeypatch.chdir(argv[1])
            continue
        assert argv[0] == "podium", argv
        codes[" ".join(argv[1:3])] = run_command_line(argv[1:])
    # Before an agent is named, doctor fails and says so; a refused command leaves with 4.
    expected = {"doctor": 1, "policy check": 4}
    assert codes == {name: expected.get(name, 0) for name in codes}
    assert len(codes) >= 8


@pytest.mark.timeout(400)
async def test_the_readmes_three_commands_end_with_a_branch_by_a_real_agent(tmp_path: Path) -> None:
    (task,) = [argv[2] for argv in readme_commands() if argv[:2] == ["podium", "run"] and len(argv) == 3]  # fmt: skip
    (line,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert yaml.safe_load(line) == {"agents": {"claude": {"kind": "claude"}}}
    repository, home, bin_folder = tmp_path / "repo", tmp_path / "home", tmp_path / "bin"
    for folder in (repository, home, bin_folder):
        folder.mkdir()
    (bin_folder / "claude").symlink_to(clis.claude())
    (repository / "calc.py").write_text(WRONG)
    (repository / "test_calc.py").write_text(TEST)
    (repository / ".gitignore").write_text("__pycache__/\n")
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{bin_folder}:{os.environ['PATH']}",
        "HOME": str(home),
        "PODIUM_HOME": str(home),
        "MODEL_KEY": KEY,
        **{
            f"GIT_{who}_{what}": "ann@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }

    def run(*argv: str) -> str:
        done = subprocess.run(argv, cwd=repository, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("git", "init", "--quiet", "--initial-branch", "main")
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", "A start")
    script = json.loads(json.dumps(SCRIPT).replace(FEAT, slug_of(task)))
    async with ModelServer(script, key=KEY) as server:
        # In place of a login: the address of the model belongs into the user's own file.
        own = {"secrets": ["MODEL_KEY"], "agents": {"claude": CLAUDE.settings(server.url)}}
        (home / "config.yaml").write_text(yaml.safe_dump(own))
        assert "check found in test_calc.py: " in run("podium", "init")
        result = await asyncio.to_thread(run, "podium", "run", task, "--json")
    branch = json.loads(result.splitlines()[-1])["result"]["branch"]
    assert run("git", "show", f"{branch}:calc.py") == RIGHT
    assert run("git", "rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
