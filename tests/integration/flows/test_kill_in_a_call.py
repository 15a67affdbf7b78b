"""`kill -9` while a call is being performed: nobody can know, so a person is asked."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.cli.error_report import run
from podium.testing import retry_until_blocking
from tests.soaking import in_soak

SLOW_TEST = """
import fcntl, os, pathlib, time, unittest

class Slow(unittest.TestCase):
    def test_slow(self):
        with open("alive", "w") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX)
            with open("effects.txt", "a") as file:
                file.write(f"{os.getpid()}\\n")
            while not pathlib.Path("go-on.txt").exists():
                time.sleep(0.05)
"""


class Project:
    """A project whose agent runs one slow command, driven through the real command line."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self._capsys = capsys
        self._env = {**os.environ, "PODIUM_HOME": str(folder / "home")}
        scene = {"name": "act", "role": "tester", "prompt": "go"}
        self._write("slow.py", SLOW_TEST)
        self._write(
            "podium.yaml",
            yaml.safe_dump(
                {
                    "agents": {"player": {"kind": "scripted", "script": "script.yaml"}},
                    "roles": {"tester": {"agent": "player"}},
                    "flows": {"rehearsal": {"scenes": [scene]}},
                }
            ),
        )
        call = {"call": "run_command", "with": {"command": "python3 -m unittest -q slow"}}
        script = {"turns": [{"role": "tester", "acts": [call], "reply": "done"}]}
        self._write("script.yaml", yaml.safe_dump(script))

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command(*arguments),
            env=self._env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def podium(self, *arguments: str) -> tuple[int, Any]:
        """A command in this process: its exit code and what it says."""
        self._capsys.readouterr()
        code = run([*arguments, "--json", "--project", str(self.root)])
        return code, json.loads(self._capsys.readouterr().out)

    def effects(self) -> list[int]:
        path = self.root / "effects.txt"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def command_is_alive(self) -> bool:
        """Return whether it still holds its lock: the process id that it sees itself means nothing outside."""
        with (self.root / "alive").open() as alive:
            try:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "podium", *arguments, "--project", str(self.root)]

    def _write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)


@pytest.fixture
def killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    """The project, after its supervisor was killed in the middle of the command."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    project = Project(tmp_path, capsys)
    supervisor = project.start("rehearse")
    retry_until_blocking(lambda: project.effects())
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    return project


@pytest.mark.soak
@pytest.mark.parametrize(("answer", "times"), [in_soak("--happened", 1), ("--not-happened", 2)])
def test_the_command_dies_too_and_its_call_is_in_doubt_until_a_person_says_what_became_of_it(
    killed: Project, answer: str, times: int
) -> None:
    retry_until_blocking(lambda: not killed.command_is_alive())
    run = killed.podium("runs")[1]["runs"][0]["id"]
    code, result = killed.podium("resume", run)
    assert code == 3
    assert result["run"]["status"] == "needs_human"
    assert "is not known" in result["run"]["failure"]["message"]
    assert len(killed.effects()) == 1, "a call in doubt was repeated"

    shown = killed.podium("show", run)[1]
    [call] = [item for item in shown["calls"] if item["status"] == "in_doubt"]
    assert killed.podium("resolve", call["key"], answer)[0] == 0

    (killed.root / "go-on.txt").touch()
    code, result = killed.podium("resume", run)
    assert (code, result["run"]["status"]) == (0, "succeeded")
    assert len(killed.effects()) == times
    assert killed.podium("receipts", "verify")[0] == 0
