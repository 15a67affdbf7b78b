"""`podium sense scaffold`, `install`, `uninstall` and `status`, with programs that stand in for the machine's."""

from __future__ import annotations

import json
import plistlib
import sys
from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandRunner

LABEL = "com.02luka.gmx-clc-orchestrator"
SAMPLES = [
    f"g/tools/samples/gmx_plan_{name}.json" for name in ("idle", "multi_task", "single_task")
]


@pytest.fixture
def root(cli: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a user whose machine has none of the schedulers' programs."""
    (tmp_path / "programs").mkdir()
    cli.home.mkdir()
    monkeypatch.setenv("HOME", str(cli.home))
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return cli.project.resolve()


def program(tmp_path: Path, name: str, script: str) -> None:
    file = tmp_path / "programs" / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_root_is_scaffolded_with_the_samples_of_the_flow(cli: CommandRunner, root: Path) -> None:
    result = cli.run("sense", "scaffold", "--json")
    assert result.code == 0, result.err
    assert result.json["root"] == str(root)
    assert [path for path in result.json["made"] if "samples" in path] == SAMPLES
    assert result.json["refused"] == {}
    assert not (root / ".podium").exists()
    agent = plistlib.loads((root / f"LaunchAgents/{LABEL}.plist").read_bytes())
    assert agent["EnvironmentVariables"]["GMX_ORCH_MODE"] == "sensing"
    again = cli.run("sense", "scaffold", "--json").json
    assert again["made"] == []
    assert set(again["kept"]) == set(result.json["made"])


def test_scaffolding_prints_a_line_per_item(cli: CommandRunner, root: Path) -> None:
    (root / "logs").mkdir()
    lines = cli.run("sense", "scaffold").out.splitlines()
    assert "kept     logs/" in lines
    assert "made     g/tools/gmx_clc_orchestrator.zsh" in lines
    (root / "g/tools/gmx_clc_orchestrator.zsh").write_text("mine")
    lines = cli.run("sense", "scaffold", "--force").out.splitlines()
    assert "replaced g/tools/gmx_clc_orchestrator.zsh" in lines
    assert "backup   g/tools/gmx_clc_orchestrator.zsh.bak" in lines


def test_a_root_that_is_not_there_is_made_and_one_without_a_place_is_not(
    cli: CommandRunner, root: Path
) -> None:
    assert cli.run("sense", "scaffold", "--root", str(root / "new one")).code == 0
    assert (root / "new one/bridge/inbox/CLC").is_dir()
    result = cli.run("sense", "scaffold", "--root", str(root / "no/where"))
    assert (result.code, "does not exist; create it first" in result.err) == (2, True)
    (root / "file").touch()
    assert cli.run("sense", "scaffold", "--root", str(root / "file")).code == 2
    result = cli.run("sense", "scaffold", "--root", f"{root}/a\nb")
    assert (result.code, "rename the folder" in result.err) == (2, True)


def test_what_cannot_be_written_ends_with_one_and_is_named(cli: CommandRunner, root: Path) -> None:
    (root / "g").symlink_to("/etc")
    result = cli.run("sense", "scaffold")
    assert result.code == 1
    assert "'g/tools" in result.err
    assert "link" in result.err


def test_printing_writes_nothing_and_nothing_else_is_on_stdout(
    cli: CommandRunner, root: Path
) -> None:
    result = cli.run("sense", "install", "launchd", "--print", "--every", "60", "--mode", "dry-run")
    assert result.code == 0, result.err
    agent = plistlib.loads(result.out.encode())
    assert agent["StartInterval"] == 60
    assert agent["EnvironmentVariables"]["GMX_ORCH_MODE"] == "dry-run"
    result = cli.run("sense", "install", "cron", "--print")
    assert result.out.startswith("*/5 * * * * cd ")
    assert result.out.count("\n") == 1
    files = cli.run("sense", "install", "systemd", "--print", "--json").json["files"]
    assert [Path(name).suffix for name in files] == [".service", ".timer"]
    assert all(name.startswith(str(cli.home / ".config/systemd/user")) for name in files)
    assert list(root.iterdir()) == []
    assert list(cli.home.iterdir()) == []


def test_a_planner_outside_the_usual_folders_is_found_by_scheduled_ticks(
    cli: CommandRunner, root: Path, tmp_path: Path
) -> None:
    program(tmp_path, "gemini", "exit 0")
    agent = plistlib.loads(cli.run("sense", "install", "launchd", "--print").out.encode())
    path = agent["EnvironmentVariables"]["PATH"].split(":")
    assert path[0] == f"{root}/.venv/bin"
    assert str(Path(sys.executable).parent) in path
    assert path[-1] == str(tmp_path / "programs")


def test_an_installed_timer_is_seen_and_taken_back(
    cli: CommandRunner, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "systemctl", "echo ActiveState=active")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    result = cli.run("sense", "install", "systemd")
    assert result.code == 0, result.err
    assert "ticks run every 300 s in mode sensing" in result.out
    assert result.err == ""
    assert len(list((tmp_path / "config/systemd/user").iterdir())) == 2
    status = {item["scheduler"]: item for item in _standings(cli)}
    assert status["systemd"]["installed"]
    assert status["systemd"]["loaded"]
    assert not status["launchd"]["installed"]
    assert "yes" in cli.run("sense", "status").out
    result = cli.run("sense", "uninstall", "--json")
    removed = {change["scheduler"]: len(change["removed"]) for change in result.json["changes"]}
    assert (removed["systemd"], removed["cron"]) == (2, 0)
    assert list((tmp_path / "config/systemd/user").iterdir()) == []
    assert "nothing is installed for this root" in cli.run("sense", "uninstall", "systemd").out
    assert not (root / ".podium").exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="there the agent is no part of the layout")
def test_the_agents_file_of_the_layout_goes_only_when_it_is_named(
    cli: CommandRunner, root: Path
) -> None:
    cli.run("sense", "scaffold")
    file = root / f"LaunchAgents/{LABEL}.plist"
    assert not next(item for item in _standings(cli) if item["scheduler"] == "launchd")["installed"]
    assert cli.run("sense", "uninstall").code == 0
    assert file.exists()
    assert cli.run("sense", "uninstall", "launchd").code == 0
    assert not file.exists()


def _standings(cli: CommandRunner) -> list[dict[str, object]]:
    found: list[dict[str, object]] = cli.run("sense", "status", "--json").json["schedulers"]
    return found


def test_where_cron_is_missing_the_line_is_shown_alone_on_its_line(
    cli: CommandRunner, root: Path
) -> None:
    result = cli.run("sense", "install", "cron")
    assert result.code == 1
    assert result.out.splitlines()[-1].startswith("*/5 * * * * cd ")
    result = cli.run("sense", "install", "cron", "--every", "90")
    assert (result.code, "systemd" in result.err) == (2, True)


def test_an_unknown_scheduler_or_mode_is_a_usage_error(cli: CommandRunner, root: Path) -> None:
    assert cli.run("sense", "install", "upstart").code == 2
    assert cli.run("sense", "install", "cron", "--mode", "yolo").code == 2
    result = cli.run("sense", "install", "cron", "--every", "0")
    assert (result.code, "--every" in result.err) == (2, True)
    assert cli.run("sense", "install", "cron", "--root", str(root / "none")).code == 2


def test_status_reports_the_last_tick(cli: CommandRunner, root: Path) -> None:
    assert "no tick yet" in cli.run("sense", "status").out
    (root / ".podium").mkdir(mode=0o700)
    (root / ".podium/sense").mkdir()
    memory = {"ticks": 3, "idle_ticks": 2, "status": "OK", "notices": ["[high] disk: it is full"]}
    (root / ".podium/sense/memory.json").write_text(json.dumps(memory))
    output = cli.run("sense", "status").out
    assert "(3 ticks, 2 idle; planner OK)\nnotice: [high] disk: it is full\n" in output
    assert cli.run("sense", "status", "--json").json["last_tick"]["ticks"] == 3


def test_installing_says_that_scheduled_ticks_stay_below_the_mode_that_is_set(
    cli: CommandRunner, root: Path, tmp_path: Path
) -> None:
    program(tmp_path, "systemctl", "echo ActiveState=active")
    cli.says("flows: {sense: {mode: supervised}}\n")
    result = cli.run("sense", "install", "systemd")
    assert "these ticks are limited to sensing" in result.err
    assert "--mode supervised" in result.err
    assert "no further" not in cli.run("sense", "install", "systemd", "--mode", "supervised").err
    lines = cli.run("sense", "uninstall", "systemd").out.splitlines()
    assert [line.partition(" /")[0] for line in lines[:2]] == ["systemd: removed"] * 2
