"""`podium sense scaffold`, `install`, `uninstall` and `status`, with programs that stand in for the machine's."""

from __future__ import annotations

import json
import plistlib
import sys
from pathlib import Path

import pytest

from tests.integration.cli.desk import Desk

LABEL = "com.02luka.gmx-clc-orchestrator"
SAMPLES = [
    f"g/tools/samples/gmx_plan_{name}.json" for name in ("idle", "multi_task", "single_task")
]


@pytest.fixture
def root(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a user whose machine has none of the schedulers' programs."""
    (tmp_path / "programs").mkdir()
    desk.home.mkdir()
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return desk.project.resolve()


def program(tmp_path: Path, name: str, script: str) -> None:
    file = tmp_path / "programs" / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_root_is_scaffolded_with_the_samples_of_the_flow(desk: Desk, root: Path) -> None:
    said = desk.run("sense", "scaffold", "--json")
    assert said.code == 0, said.err
    assert said.json["root"] == str(root)
    assert [path for path in said.json["made"] if "samples" in path] == SAMPLES
    assert said.json["refused"] == {}
    assert not (root / ".podium").exists()
    agent = plistlib.loads((root / f"LaunchAgents/{LABEL}.plist").read_bytes())
    assert agent["EnvironmentVariables"]["GMX_ORCH_MODE"] == "sensing"
    again = desk.run("sense", "scaffold", "--json").json
    assert again["made"] == []
    assert set(again["kept"]) == set(said.json["made"])


def test_scaffolding_says_a_line_for_each_thing(desk: Desk, root: Path) -> None:
    (root / "logs").mkdir()
    lines = desk.run("sense", "scaffold").out.splitlines()
    assert "kept     logs/" in lines
    assert "made     g/tools/gmx_clc_orchestrator.zsh" in lines
    (root / "g/tools/gmx_clc_orchestrator.zsh").write_text("mine")
    lines = desk.run("sense", "scaffold", "--force").out.splitlines()
    assert "replaced g/tools/gmx_clc_orchestrator.zsh" in lines
    assert "backup   g/tools/gmx_clc_orchestrator.zsh.bak" in lines


def test_a_root_that_is_not_there_is_made_and_one_without_a_place_is_not(
    desk: Desk, root: Path
) -> None:
    assert desk.run("sense", "scaffold", "--root", str(root / "new one")).code == 0
    assert (root / "new one/bridge/inbox/CLC").is_dir()
    said = desk.run("sense", "scaffold", "--root", str(root / "no/where"))
    assert (said.code, "does not exist; create it first" in said.err) == (2, True)
    (root / "file").touch()
    assert desk.run("sense", "scaffold", "--root", str(root / "file")).code == 2
    said = desk.run("sense", "scaffold", "--root", f"{root}/a\nb")
    assert (said.code, "rename the folder" in said.err) == (2, True)


def test_what_cannot_be_written_ends_with_one_and_is_named(desk: Desk, root: Path) -> None:
    (root / "g").symlink_to("/etc")
    said = desk.run("sense", "scaffold")
    assert said.code == 1
    assert "'g/tools" in said.err
    assert "link" in said.err


def test_printing_writes_nothing_and_nothing_else_is_on_stdout(desk: Desk, root: Path) -> None:
    said = desk.run("sense", "install", "launchd", "--print", "--every", "60", "--mode", "dry-run")
    assert said.code == 0, said.err
    agent = plistlib.loads(said.out.encode())
    assert agent["StartInterval"] == 60
    assert agent["EnvironmentVariables"]["GMX_ORCH_MODE"] == "dry-run"
    said = desk.run("sense", "install", "cron", "--print")
    assert said.out.startswith("*/5 * * * * cd ")
    assert said.out.count("\n") == 1
    files = desk.run("sense", "install", "systemd", "--print", "--json").json["files"]
    assert [Path(name).suffix for name in files] == [".service", ".timer"]
    assert all(name.startswith(str(desk.home / ".config/systemd/user")) for name in files)
    assert list(root.iterdir()) == []
    assert list(desk.home.iterdir()) == []


def test_a_planner_outside_the_usual_folders_is_found_by_scheduled_ticks(
    desk: Desk, root: Path, tmp_path: Path
) -> None:
    program(tmp_path, "gemini", "exit 0")
    agent = plistlib.loads(desk.run("sense", "install", "launchd", "--print").out.encode())
    path = agent["EnvironmentVariables"]["PATH"].split(":")
    assert path[0] == f"{root}/.venv/bin"
    assert str(Path(sys.executable).parent) in path
    assert path[-1] == str(tmp_path / "programs")


def test_an_installed_timer_is_seen_and_taken_back(
    desk: Desk, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "systemctl", "echo ActiveState=active")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    said = desk.run("sense", "install", "systemd")
    assert said.code == 0, said.err
    assert "ticks run every 300 s in mode sensing" in said.out
    assert said.err == ""
    assert len(list((tmp_path / "config/systemd/user").iterdir())) == 2
    standing = {each["scheduler"]: each for each in _standings(desk)}
    assert standing["systemd"]["installed"]
    assert standing["systemd"]["loaded"]
    assert not standing["launchd"]["installed"]
    assert "yes" in desk.run("sense", "status").out
    said = desk.run("sense", "uninstall", "--json")
    removed = {change["scheduler"]: len(change["removed"]) for change in said.json["changes"]}
    assert (removed["systemd"], removed["cron"]) == (2, 0)
    assert list((tmp_path / "config/systemd/user").iterdir()) == []
    assert "nothing is installed for this root" in desk.run("sense", "uninstall", "systemd").out
    assert not (root / ".podium").exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="there the agent is no part of the layout")
def test_the_agents_file_of_the_layout_goes_only_when_it_is_named(desk: Desk, root: Path) -> None:
    desk.run("sense", "scaffold")
    file = root / f"LaunchAgents/{LABEL}.plist"
    assert not next(each for each in _standings(desk) if each["scheduler"] == "launchd")[
        "installed"
    ]
    assert desk.run("sense", "uninstall").code == 0
    assert file.exists()
    assert desk.run("sense", "uninstall", "launchd").code == 0
    assert not file.exists()


def _standings(desk: Desk) -> list[dict[str, object]]:
    found: list[dict[str, object]] = desk.run("sense", "status", "--json").json["schedulers"]
    return found


def test_where_cron_is_missing_the_line_is_shown_alone_on_its_line(desk: Desk, root: Path) -> None:
    said = desk.run("sense", "install", "cron")
    assert said.code == 1
    assert said.out.splitlines()[-1].startswith("*/5 * * * * cd ")
    said = desk.run("sense", "install", "cron", "--every", "90")
    assert (said.code, "systemd" in said.err) == (2, True)


def test_an_unknown_scheduler_or_mode_is_a_usage_error(desk: Desk, root: Path) -> None:
    assert desk.run("sense", "install", "upstart").code == 2
    assert desk.run("sense", "install", "cron", "--mode", "yolo").code == 2
    said = desk.run("sense", "install", "cron", "--every", "0")
    assert (said.code, "--every" in said.err) == (2, True)
    assert desk.run("sense", "install", "cron", "--root", str(root / "none")).code == 2


def test_the_status_tells_the_last_tick(desk: Desk, root: Path) -> None:
    assert "no tick yet" in desk.run("sense", "status").out
    (root / ".podium").mkdir(mode=0o700)
    (root / ".podium/sense").mkdir()
    memory = {"ticks": 3, "idle_ticks": 2, "status": "OK", "notices": ["[high] disk: it is full"]}
    (root / ".podium/sense/memory.json").write_text(json.dumps(memory))
    said = desk.run("sense", "status").out
    assert "(3 ticks, 2 idle; planner OK)\nnotice: [high] disk: it is full\n" in said
    assert desk.run("sense", "status", "--json").json["last_tick"]["ticks"] == 3


def test_installing_says_that_scheduled_ticks_stay_below_the_mode_that_is_set(
    desk: Desk, root: Path, tmp_path: Path
) -> None:
    program(tmp_path, "systemctl", "echo ActiveState=active")
    desk.says("flows: {sense: {mode: supervised}}\n")
    said = desk.run("sense", "install", "systemd")
    assert "these ticks are limited to sensing" in said.err
    assert "--mode supervised" in said.err
    assert "no further" not in desk.run("sense", "install", "systemd", "--mode", "supervised").err
    lines = desk.run("sense", "uninstall", "systemd").out.splitlines()
    assert [line.partition(" /")[0] for line in lines[:2]] == ["systemd: removed"] * 2
