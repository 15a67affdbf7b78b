"""`podium agents`: what is there, what is missing, and whether it answers."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.agents.kinds import ABOUT
from podium.app.agent_builder import KINDS
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis
from tests.integration.cli.command_runner import CommandRunner

KEY = "sk-loopback-5Tz8Kq1Lx0"


def _user_says(cli: CommandRunner, agents: dict[str, Any]) -> None:
    cli.home.mkdir(exist_ok=True)
    settings = {"agents": agents, "secrets": ["MODEL_KEY"]}
    (cli.home / "config.yaml").write_text(yaml.safe_dump(settings))


def _program(folder: Path, version: str) -> str:
    path = folder / "some-cli"
    path.write_text(f"#!/bin/sh\necho 'some-cli {version}'\n")
    path.chmod(0o755)
    return str(path)


def test_every_kind_that_can_be_configured_is_known() -> None:
    assert set(ABOUT) == set(KINDS)


def test_programs_that_podium_yaml_does_not_name_are_listed_as_such(cli: CommandRunner) -> None:
    result = cli.run("agents", "list", "--json")
    assert result.code == 0
    listed = {agent["name"]: agent for agent in result.json["agents"]}
    assert set(listed) == {"gemini", "claude", "codex", "opencode"}
    assert not any(item["configured"] for item in listed.values())


def test_an_agent_is_shown_with_version_login_and_door(cli: CommandRunner, tmp_path: Path) -> None:
    env = {"ANTHROPIC_API_KEY": "secret://MODEL_KEY"}
    program = _program(tmp_path, "2.1.0")
    _user_says(cli, {"brain": {"kind": "claude", "command": [program], "env": env}})
    result = cli.run("agents", "check", "brain", env={"MODEL_KEY": KEY})
    assert result.code == 0, result.err
    assert "installed  yes 2.1.0" in result.out
    assert "yes (ANTHROPIC_API_KEY from secret://MODEL_KEY)" in result.out
    assert "PreToolUse callbacks" in result.out
    assert KEY not in result.out + result.err


def test_unset_key_is_reported_with_what_to_do(cli: CommandRunner, tmp_path: Path) -> None:
    env = {"ANTHROPIC_API_KEY": "secret://MODEL_KEY"}
    program = _program(tmp_path, "2.1.0")
    _user_says(cli, {"brain": {"kind": "claude", "command": [program], "env": env}})
    result = cli.run("agents", "check", "brain", env={})
    assert result.code == 1
    assert "secret 'MODEL_KEY' is not set" in result.out


def test_untried_version_is_reported_as_newer(cli: CommandRunner, tmp_path: Path) -> None:
    program = _program(tmp_path, "99.0.0")
    _user_says(cli, {"brain": {"kind": "codex", "command": [program]}})
    result = cli.run("agents", "list", "--json", env={})
    (brain,) = [agent for agent in result.json["agents"] if agent["name"] == "brain"]
    assert "newer than 0.166.0" in brain["version"]


def test_a_login_of_the_person_is_found_where_its_program_keeps_it(
    cli: CommandRunner, tmp_path: Path
) -> None:
    _user_says(cli, {"brain": {"kind": "codex", "command": [_program(tmp_path, "0.166.0")]}})
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (moved / "auth.json").write_text("{}")
    without = cli.run("agents", "check", "brain", "--json", env={})
    found = cli.run("agents", "check", "brain", "--json", env={"CODEX_HOME": str(moved)})
    assert without.json["agent"]["logged_in"] == "no"
    assert found.json["agent"]["login"] == f"a copy of {moved / 'auth.json'}"


def test_init_names_the_agents_that_are_installed_and_logged_in(
    cli: CommandRunner, tmp_path: Path
) -> None:
    programs, home = tmp_path / "bin", tmp_path / "someone"
    for folder in (programs, home / ".codex"):
        folder.mkdir(parents=True)
    for name in ("codex", "gemini"):  # nobody is logged in to the second
        (programs / name).write_text("#!/bin/sh\necho 'some-cli 0.1.0'\n")
        (programs / name).chmod(0o755)
    (home / ".codex/auth.json").write_text("{}")
    env = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"}
    result = cli.spawn("init", env=env)  # versions are known for the life of a process
    assert result.code == 0, result.err
    assert "agents installed and logged in: codex\n" in result.out
    assert result.out.endswith('then podium run "what should be done"\n')
    settings = yaml.safe_load((cli.project / "podium.yaml").read_text())
    assert settings["agents"] == {"codex": {"kind": "codex"}}
    assert settings["roles"] == {"default": {"agent": "codex"}}


def test_init_names_a_cli_that_is_installed_and_says_how_to_log_in(
    cli: CommandRunner, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\necho '2.1.0 (Claude Code)'\n")
    (programs / "claude").chmod(0o755)
    env = {"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin"}
    response = cli.spawn("init", env=env)
    assert response.code == 0, response.err
    assert "agents installed but not logged in: claude\n" in response.out
    assert "note: claude is not logged in: start `claude` and log in\n" in response.out
    assert "follow the notes" in response.out.splitlines()[-1]
    text = (cli.project / "podium.yaml").read_text()
    assert yaml.safe_load(text)["agents"] == {"claude": {"kind": "claude"}}
    assert "claude: {kind: claude}  # Claude Code, not logged in yet\n" in text
    assert "installed and logged in" not in text
    (cli.project / "podium.yaml").unlink()
    env["ANTHROPIC_API_KEY"] = KEY
    # Roles would else go to the one that cannot be used.
    shutil.copy(programs / "claude", programs / "codex")
    answer = cli.spawn("init", "--json", env=env).json
    assert (answer["agents"], answer["roles"]) == ([], {})
    [note] = [n for n in answer["notes"] if "claude" in n]
    assert KEY not in note
    # What the note says works: the user's own entry is not replaced by one of podium.yaml.
    secrets, agents = note.split("add ")[1].split(" to ")[0].split(" and ")
    assert str(cli.home / "config.yaml") in note
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text(f"{secrets}\n{agents}\n")
    assert cli.spawn("agents", "check", "claude", "--json", env=env).json["agent"]["ready"] is True


def test_init_leaves_agents_to_your_own_settings_and_says_when_there_is_none(
    cli: CommandRunner, tmp_path: Path
) -> None:
    nobody = cli.run("init", env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert "no agent CLI is installed; `podium agents list`" in nobody.out
    (cli.project / "podium.yaml").unlink()
    _user_says(cli, {"brain": {"kind": "claude"}})
    result = cli.run("init", "--json", env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert result.json["agents"] == ["brain"]
    assert "agents" not in yaml.safe_load((cli.project / "podium.yaml").read_text())


def test_a_command_nobody_trusted_is_not_even_asked_for_its_version(
    cli: CommandRunner, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    cli.says(yaml.safe_dump({"agents": {"brain": {"kind": "command", "command": [str(trap)]}}}))
    result = cli.run("agents", "check", "brain", env={})
    assert result.code == 1
    assert "podium trust" in result.out
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("key", ["base_url", "options"])
def test_an_address_or_options_of_a_project_need_trust(cli: CommandRunner, key: str) -> None:
    value: Any = "http://127.0.0.1:9" if key == "base_url" else {"provider": "openai"}
    cli.says(yaml.safe_dump({"agents": {"brain": {"kind": "api", "model": "m", key: value}}}))
    result = cli.run("agents", "check", "brain", env={})
    assert result.code == 1
    assert "podium trust" in result.out
    shown = cli.run("trust", "--show", env={})
    assert "127.0.0.1:9" in shown.out or "openai" in shown.out


def test_an_agent_that_is_not_there_is_refused_with_those_that_are(cli: CommandRunner) -> None:
    result = cli.run("agents", "check", "nobody")
    assert result.code == 2
    assert "gemini" in result.err


def test_a_scripted_agent_is_asked_for_one_word(cli: CommandRunner) -> None:
    script = {"turns": [{"role": "check", "acts": [{"say": "OK"}]}]}
    (cli.project / "script.yaml").write_text(yaml.safe_dump(script))
    _user_says(cli, {"player": {"kind": "scripted", "script": "script.yaml"}})
    result = cli.run("agents", "check", "player", "--ask", env={})
    assert result.code == 0, result.err
    assert "answered   OK" in result.out


async def test_the_real_claude_is_asked_for_one_word_on_loopback(cli: CommandRunner) -> None:
    entry = {
        "kind": "claude",
        "command": [clis.claude()],
        "model": "claude-sonnet-4-5",
        "env": {"ANTHROPIC_API_KEY": "secret://MODEL_KEY"},
    }
    async with ModelServer({"default": {"steps": ["OK"]}}, key=KEY) as server:
        _user_says(cli, {"brain": {**entry, "base_url": server.url}})
        result = await asyncio.to_thread(
            cli.spawn, "agents", "check", "brain", "--ask", "--json", env={"MODEL_KEY": KEY}
        )
    assert result.code == 0, result.err
    agent = json.loads(result.out)["agent"]
    assert agent["reply"]["text"] == "OK"
    assert agent["version"] == clis.versions()["claude"]


def test_the_versions_that_were_tried_are_those_the_suite_installs() -> None:
    tried = {kind: about.tried for kind, about in ABOUT.items() if about.tried}
    assert tried == clis.versions()


def test_a_program_nobody_knows_is_looked_for_and_not_started(
    cli: CommandRunner, tmp_path: Path
) -> None:
    script = tmp_path / "mine"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    script.chmod(0o755)
    _user_says(cli, {"mine": {"kind": "command", "command": [str(script)]}})
    result = cli.run("agents", "list", "--json", env={})
    (mine,) = [agent for agent in result.json["agents"] if agent["name"] == "mine"]
    assert mine["installed"] == "yes"
    assert not (tmp_path / "started").exists()


def test_an_agent_that_does_not_answer_is_still_shown_with_what_is_known(
    cli: CommandRunner,
) -> None:
    _user_says(cli, {"mine": {"kind": "command", "command": ["sh", "-c", "exit 3"]}})
    result = cli.run("agents", "check", "mine", "--ask", env={})
    assert result.code == 1
    assert "kind       command" in result.out
    first, last = result.err.splitlines()
    assert first == "checking 'mine' and asking it for one word; this may take a while"
    assert "podium: agent 'mine' ended without an answer (exit 3)" in last
    assert "fix the problem" not in result.out


def test_in_json_what_is_known_and_the_error_are_one_object(cli: CommandRunner) -> None:
    _user_says(cli, {"mine": {"kind": "command", "command": ["sh", "-c", "exit 3"]}})
    result = cli.run("agents", "check", "mine", "--ask", "--json", env={})
    assert result.code == 1
    assert (result.json["agent"]["kind"], result.json["agent"]["reply"]) == ("command", None)
    assert (result.json["error"]["kind"], result.json["error"]["exit_code"]) == ("AgentLost", 1)


def test_missing_program_is_reported_without_the_whole_path(cli: CommandRunner) -> None:
    _user_says(cli, {"brain": {"kind": "claude", "env": {"ANTHROPIC_API_KEY": "k-1"}}})
    result = cli.run("agents", "check", "brain", env={"PATH": "/nowhere-at-all"})
    assert result.code == 1
    assert "program 'claude' not found on PATH" in result.out
    assert "npm install" in result.out
    assert "`command:` in podium.yaml" in result.out
    assert "/nowhere-at-all" not in result.out + result.err


def test_a_token_in_clear_is_found_by_its_shape_under_any_name(cli: CommandRunner) -> None:
    env = {"FORGE_LOGIN": f"ghp_{'a1B2' * 9}", "COLOUR": "blue"}
    _user_says(cli, {"mine": {"kind": "command", "command": ["sh"], "env": env}})
    result = cli.run("agents", "check", "mine", "--json", env={})
    (warning,) = result.json["agent"]["warnings"]
    assert warning.startswith("FORGE_LOGIN is in the settings as plain text")
    assert "secret://FORGE_LOGIN" in warning


@pytest.mark.parametrize(
    ("down", "words"),
    [
        (False, "the key was ANTHROPIC_API_KEY from secret://MODEL_KEY; set MODEL_KEY in Podium's"),
        (True, "the address was http://127.0.0.1:"),
    ],
)
async def test_real_cli_that_gets_no_answer_is_reported_with_what_it_was_asked(
    cli: CommandRunner, down: bool, words: str
) -> None:
    env = {"ANTHROPIC_API_KEY": "secret://MODEL_KEY"}
    entry = {"kind": "claude", "command": [clis.claude()], "model": "claude-sonnet-4-5", "env": env}
    async with ModelServer({"default": {"steps": ["OK"]}}, key=KEY) as server:
        _user_says(cli, {"brain": {**entry, "base_url": server.url}})
        if down:
            await server.__aexit__(None, None, None)
        result = await asyncio.to_thread(
            cli.spawn, "agents", "check", "brain", "--ask", env={"MODEL_KEY": "sk-wrong-1234567"}
        )
    assert result.code == 1
    assert "kind       claude" in result.out
    assert words in result.err
    assert "sk-wrong-1234567" not in result.out + result.err
