"""Clones of one repository whose remote is the GitHub on loopback, each with a store of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.app.work_request import queues_of
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline.intake import IntakeItem, IssueIntake
from podium.jobs.pipeline.issue import pinned_issue_of
from podium.ports import RunQuery
from tests.integration.forge.github_server import TOKEN, GitHubServer
from tests.integration.pipeline.pipeline_harness import Project


class IssueProject(Project):
    """A project whose pull requests and issues are at the GitHub on loopback."""

    def __init__(self, folder: Path, github: GitHubServer, bare: Path | None = None) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder)
        self.github = github
        self.bare = bare or folder / "origin.git"
        self.environ |= {"GITHUB_TOKEN": TOKEN, "no_proxy": "127.0.0.1"}

    def build(
        self,
        turns: Sequence[dict[str, Any]],
        *,
        settings: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> IssueProject:
        super().build(turns, settings=settings, files=files)
        if not self.bare.exists():
            words = ["git", "clone", "--quiet", "--bare", str(self.folder), str(self.bare)]
            subprocess.run(words, check=True)
        script = self.folder.parent / "ssh-to-here"
        script.write_text(
            f'#!/bin/sh\ncase "$*" in *upload-pack*) exec git upload-pack {self.bare};; '
            f"*) exec git receive-pack {self.bare};; esac\n"
        )
        script.chmod(0o755)
        self.git("remote", "add", "origin", "git@github.com:octo/hello.git")
        self.git("config", "core.sshCommand", str(script))
        self.git("config", "ssh.variant", "simple")
        self.home.mkdir(exist_ok=True)
        (self.home / "config.yaml").write_text(f"forge: {{api_url: '{self.github.url}'}}\n")
        return self

    def head_of(self, branch: str) -> str:
        """Commit of a branch at the remote. Empty: it has none."""
        words = ["git", "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"]
        done = subprocess.run(words, cwd=self.bare, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def refs(self) -> str:
        """Refs of the remote, with their commits."""
        words = ["git", "for-each-ref"]
        done = subprocess.run(words, cwd=self.bare, capture_output=True, text=True, check=True)
        return done.stdout

    async def look(self, **options: Any) -> list[IntakeItem]:
        """One pass of `podium intake`."""
        async with self.podium() as podium:
            intake = await IssueIntake.open(podium, settle_seconds=0, **options)
            return await intake.look()

    async def work(self) -> list[Run]:
        """Let a worker run what is queued, until everything rests."""
        async with self.podium() as podium:
            engine = await podium.hosting_engine()
            async with engine.serve(queues_of(podium.configuration)):
                for run in await self.runs():
                    if not run.status.ended and run.status is not RunStatus.NEEDS_HUMAN:
                        await engine.finish(run.id, stop_when_waiting=True)
        return await self.runs()

    async def runs(self) -> list[Run]:
        async with self.podium() as podium:
            store = await podium.store()
            return await store.read(lambda view: view.runs(RunQuery(limit=1000)))


def issue_of(run: Run) -> int:
    issue = pinned_issue_of(run)
    assert issue is not None
    return issue.number
