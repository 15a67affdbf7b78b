"""Repositories whose remote is GitHub's by its address and a bare repository in truth.

The user's `core.sshCommand` is what leads there, as one that goes through a jump host would.
"""

from __future__ import annotations

from pathlib import Path

from podium.core.forge import PullRequestDraft
from podium.core.processes import ProcessExit, ProcessSpec
from podium.git.forge import ForgeSettings, RepositoryForge
from podium.ports.launcher import Process
from podium.sandbox import ProcessLauncher
from podium.testing import FixedClock
from tests.integration.forge.github_server import TOKEN
from tests.integration.workspaces.workspace_harness import commit, git

BRANCH = "task/greet"


class RecordingLauncher:
    """The real one, which remembers what it started."""

    def __init__(self) -> None:
        self._inner = ProcessLauncher()
        self.spawns: list[ProcessSpec] = []

    async def start(self, spawn: ProcessSpec) -> Process:
        self.spawns.append(spawn)
        return await self._inner.start(spawn)

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        self.spawns.append(spawn)
        return await self._inner.run(spawn)

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        return await self._inner.on_terminal(spawn)


class RemoteProject:
    """A user's repository with a task's branch, and the bare one behind its remote."""

    def __init__(
        self, folder: Path, *, remote: str | None = "git@github.com:octo/hello.git"
    ) -> None:
        self.folder = folder
        self.launcher = RecordingLauncher()
        self.bare = folder / "remote.git"
        self.repository = folder / "repo"
        self.pulls = folder / "pulls"
        for place, words in ((self.bare, ("--bare",)), (self.repository, ())):
            place.mkdir()
            git(place, "init", "-q", "-b", "main", *words)
        self.base = commit(self.repository, "first", README="hello\n")
        self.user("push", "-q", str(self.bare), "main")
        self.user("switch", "-q", "-c", BRANCH)
        self.tip = commit(self.repository, "greet", README="hello, world\n")
        self.user("switch", "-q", "main")
        if remote is not None:
            self.user("remote", "add", "origin", remote)
            self._lead_ssh_here()

    def _lead_ssh_here(self) -> None:
        script = self.folder / "ssh-to-here"
        script.write_text(f"#!/bin/sh\nexec git receive-pack {self.bare}\n")
        script.chmod(0o755)
        self.user("config", "core.sshCommand", str(script))
        self.user("config", "ssh.variant", "simple")

    def user(self, *words: str) -> str:
        return git(self.repository, *words)

    def forge(
        self, api_url: str = "", *, token: str = TOKEN, **settings: object
    ) -> RepositoryForge:
        chosen = ForgeSettings.model_validate({"api_url": api_url, "ask_seconds": 20, **settings})
        return RepositoryForge(self.launcher, FixedClock(), self.pulls, chosen, token=token)

    def draft(self, **fields: str) -> PullRequestDraft:
        payload = {"title": "Greet the world", "body": "All checks passed.", "run_id": "run_1"}
        named = {"branch": BRANCH, "base": "main", "commit": self.tip}
        return PullRequestDraft.model_validate(
            {"repository": str(self.repository), **named, **payload, **fields}
        )

    def there(self) -> dict[str, str]:
        """The remote's branches."""
        rows = git(
            self.bare, "for-each-ref", "--format=%(refname:short) %(objectname)"
        ).splitlines()
        return dict(row.split() for row in rows)
