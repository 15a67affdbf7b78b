"""A project whose pair are fake TUIs on a real tmux server, and the command line on it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from podium.testing.fake_tuis import ScriptedAnswers, happened, tui_command
from podium.testing.fake_tuis.answers import Happened
from tests.integration.cli.command_runner import CommandResult, CommandRunner

SCRIPTS = Path(__file__).parents[3] / "examples" / "politerm"


class Terminals:
    """Runs `podium duet`. The programs are not confined, so that their records can be read."""

    def __init__(self, cli: CommandRunner, short: Path) -> None:
        self.cli = cli
        self.short = short
        cli.home.mkdir(exist_ok=True)
        (cli.home / "config.yaml").write_text("sandbox: {kind: none}\n")
        self.variables = {
            "TMUX_TMPDIR": str(short),
            "TMPDIR": str(short),
            "PODIUM": cli.command()[0],
        }
        self.cast()

    def cast(
        self, kind: str = "composer", executer: ScriptedAnswers | None = None, **planner: Any
    ) -> None:
        """Set the programs of both sides, and their answers."""
        sides = {"PLANNER": ScriptedAnswers(**planner), "EXECUTER": executer or ScriptedAnswers()}
        for side, answers in sides.items():
            kept = answers.write_to(self.short / f"{side}.answers.json")
            self.variables[f"{side}_CMD"] = shlex.join(tui_command(kind, self.record(side), kept))

    def record(self, side: str) -> Path:
        return self.short / f"{side}.record"

    def happened(self, side: str, what: str) -> list[Happened]:
        return [event for event in happened(self.record(side)) if event.what == what]

    def duet(self, *arguments: str) -> CommandResult:
        """In this process where the desk hears it: starting Podium costs more than most commands."""
        if not self.cli.hears:
            return self.spawned(*arguments)
        environ = {**self.cli.environ, **self.variables}
        with (
            patch.dict(os.environ, environ, clear=True),
            patch.object(tempfile, "tempdir", environ["TMPDIR"]),  # read from there but once
            chdir(self.cli.project),
        ):
            return self.cli.run("duet", *arguments)

    def spawned(self, *arguments: str) -> CommandResult:
        """In a process of its own, as people do, and from beside an event loop."""
        return self.cli.spawn("duet", *arguments, env=self.variables)

    def pids(self) -> list[str]:
        """Processes in the panes, as tmux itself tells them."""
        socket = self.short / f"tmux-{os.getuid()}" / "poli"
        asked = ["tmux", "-S", str(socket), "list-panes", "-s", "-t", "main", "-F", "#{pane_pid}"]
        result = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
        return result.stdout.split()

    def script(self, name: str, *arguments: str) -> CommandResult:
        """One of the shims, as a person starts it."""
        interpreter = [sys.executable] if name.endswith(".py") else []
        done = subprocess.run(
            [*interpreter, str(SCRIPTS / name), *arguments],
            cwd=self.cli.project,
            env={**self.cli.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start("duet", *arguments)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Any command, which goes on beside the test."""
        return subprocess.Popen(
            self.cli.command(*arguments),
            cwd=self.cli.project,
            env={**self.cli.environ, **self.variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.duet("status", "--json").out)
        return found


@contextmanager
def duet_terminals(cli: CommandRunner) -> Iterator[Terminals]:
    """A theatre that is empty when it is left."""
    # A socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="pd", dir="/tmp") as short:
        stage = Terminals(cli, Path(short))
        try:
            yield stage
        finally:
            left = stage.duet("down", "--force")
        assert left.code == 0, left.err
