"""A duet of two programs that nobody but themselves has started: they join the bus of the project."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from podium.agents.bus import endpoint_of
from podium.app.local_sockets import local_socket
from podium.config.configuration import load_configuration
from tests.integration.cli.command_runner import CommandRunner

BRAIN = Path(__file__).with_name("bus_brain.py")


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandRunner]:
    with TemporaryDirectory(prefix="p") as short:  # a socket's path must be short
        cli = CommandRunner(tmp_path, capsys)
        for name in os.environ:
            monkeypatch.delenv(name)
        for name, value in {**cli.environ, "XDG_RUNTIME_DIR": short}.items():
            monkeypatch.setenv(name, value)
        cli.home.mkdir(exist_ok=True)
        sides = {"ann": "PLANNER", "bob": "EXECUTER"}
        agents = {name: {"kind": "bus", "options": {"side": side}} for name, side in sides.items()}
        flow = {"planner": "ann", "executer": "bob", "transport": "headless"}
        settings = {"agents": agents, "flows": {"duet": flow}, "sandbox": {"kind": "none"}}
        (cli.home / "config.yaml").write_text(yaml.safe_dump(settings))
        yield cli


@contextmanager
def brains(cli: CommandRunner) -> Iterator[None]:
    configuration = load_configuration(os.environ, project=cli.project)
    endpoint = endpoint_of(local_socket(configuration.folders.project, os.environ, "bus"))
    started = [
        subprocess.Popen([sys.executable, str(BRAIN), endpoint, side], cwd=BRAIN.parents[3])
        for side in ("PLANNER", "EXECUTER")
    ]
    try:
        yield
    finally:
        for item in started:
            item.kill()
            item.wait()


def test_a_task_goes_round_between_two_programs_on_the_bus_and_another_after_it(
    cli: CommandRunner,
) -> None:
    assert cli.run("duet", "up", "--grant").code == 0
    with brains(cli):
        for task in ("tidy up", "tidy up again"):
            result = cli.run("duet", "send", task)
            assert result.code == 0, result.err
            assert result.out.splitlines() == ["It is all done.", "DONE: True"]
            assert "making a plan" in result.err
