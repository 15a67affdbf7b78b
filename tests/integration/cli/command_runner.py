"""A project with a user's home, and the command line tried on it."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import pytest

from podium.app.app import Podium, open_podium
from podium.cli.error_report import run
from podium.config.configuration import load_configuration
from podium.core.decisions import Approval, Tier
from podium.core.work import Run, RunStatus
from podium.platform.system_clock import SystemIds

T = TypeVar("T")

AS_OS_USER = {"PODIUM_USER": ""}
"""Environment of a process that answers as whoever runs the tests."""


@dataclass
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandRunner:
    """Runs commands, in this process or in one of their own, and puts things into the store."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str] | None = None) -> None:
        """Without `capsys` it can only `spawn`."""
        self.project = folder / "project"
        self.home = folder / "home"
        self.project.mkdir()
        self.ids = SystemIds()
        self._capsys = capsys

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
        return {**kept, "HOME": str(self.home), "PODIUM_HOME": str(self.home), "PODIUM_USER": "ann"}

    @property
    def hears(self) -> bool:
        """Return whether a command can be run in this process."""
        return self._capsys is not None

    def says(self, text: str) -> None:
        (self.project / "podium.yaml").write_text(text)

    def choose_pack(self, name: str) -> None:
        """Let the user's own settings name the pack for `podium ask`."""
        self.home.mkdir(exist_ok=True)
        (self.home / "config.yaml").write_text(f"flows: {{operator: {{pack: {name}}}}}\n")

    def run(
        self, *arguments: str, env: dict[str, str] | None = None, stdin: bytes | None = None
    ) -> CommandResult:
        """In this process; with `env` in the environment that `spawn` gives, with `stdin` piped in."""
        assert self._capsys
        self._capsys.readouterr()
        environ = dict(os.environ) if env is None else {**self.environ, **env}
        piped = sys.stdin if stdin is None else io.TextIOWrapper(io.BytesIO(stdin))
        with patch.dict(os.environ, environ, clear=True), patch.object(sys, "stdin", piped):
            code = run(["--project", str(self.project), *arguments])
        output = self._capsys.readouterr()
        return CommandResult(code, output.out, output.err)

    def command(self, *arguments: str) -> list[str]:
        program = Path(sys.executable).with_name("podium")
        return [str(program), *arguments]

    def spawn(self, *arguments: str, env: dict[str, str] | None = None) -> CommandResult:
        """In a process of its own, as people do."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.project,
            env={**self.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def new_token(self, name: str, *roles: str) -> str:
        """A personal token of the project's console."""
        options = [word for role in roles for word in ("--role", role)]
        token: str = self.run("serve", "tokens", "add", name, *options, "--json").json["token"]
        return token

    def sign_in(self, name: str) -> None:
        """As `podium login` does, with a fresh token of an approver."""
        vault = (self.project / ".podium" / "project-id").read_text().strip()
        file = self.home / "credentials.json"
        token = self.new_token(name, "approver")
        file.write_text(json.dumps({vault: token}))
        file.chmod(0o600)

    def within(self, work: Callable[[Podium], Awaitable[T]]) -> T:
        """Do something with an open Podium of this project."""

        async def inside() -> T:
            configuration = load_configuration(self.environ, project=self.project)
            async with open_podium(configuration, self.environ) as podium:
                return await work(podium)

        return asyncio.run(inside())

    def add_run(
        self, *, run_id: str = "", task: str = "tidy up", status: RunStatus = RunStatus.WAITING
    ) -> Run:
        made = Run(
            id=run_id or self.ids.new("run"),
            flow="demo-of-the-test",
            task=task,
            status=status,
            created_at=datetime.now(UTC),
        )

        async def work(podium: Podium) -> Run:
            store = await podium.store()
            return await store.write(lambda tx: tx.add_run(made))

        return self.within(work)

    def add_approval(self, run: Run, *, seconds: float = 600.0, summary: str = "write") -> Approval:
        now = datetime.now(UTC)
        made = Approval(
            id=self.ids.new("apr"),
            run_id=run.id,
            call_key=f"{run.id}:act:0",
            digest="sha256:x",
            tool="write_file",
            summary=summary,
            tier=Tier.T2,
            requested_at=now,
            deadline=now + timedelta(seconds=seconds),
        )

        async def work(podium: Podium) -> Approval:
            store = await podium.store()
            await store.write(lambda tx: tx.save_approval(made))
            return made

        return self.within(work)
