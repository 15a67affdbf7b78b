"""A project whose remote is a bare repository, and whose pull requests are on the loopback GitHub."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from podium.app.app import Podium
from podium.core.work import Run
from podium.jobs.pipeline.composition import pipeline_job
from tests.integration.forge.github_server import TOKEN, GitHubServer
from tests.integration.pipeline.pipeline_harness import (
    RIGHT,
    TASK,
    VERIFICATION_PATH,
    Project,
    audits,
    smooth,
    turn,
    writes,
)

NUMBER = 100
"""Number of the first pull request of the loopback GitHub."""
FIXED = RIGHT + "# reviewed\n"


def run_git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


def repairs(number: int, content: str) -> list[dict[str, Any]]:
    """Turns of a later round: the developer changes the file again, and the auditor agrees."""
    return [
        turn(
            "developer",
            writes("calc.py", content),
            writes(VERIFICATION_PATH, f"# Verified\n\n- [x] round {number}\n"),
            {"commit": f"Resolve the findings of round {number}"},
            {"payload": {"commit_hash": "HEAD", "status": "success"}},
            when=f"Stage: develop, round {number}\\.",
        ),
        audits(number=number),
    ]


class FollowedProject:
    """A project with a bare remote that git takes for GitHub, and a colleague's clone."""

    def __init__(
        self,
        folder: Path,
        github: GitHubServer,
        turns: list[dict[str, Any]] | None = None,
        **follow_up: Any,
    ) -> None:
        self.github = github
        options = {"enabled": True, "interval": 600.0, **follow_up}
        settings = {
            "flows": {"pipeline": {"follow_up": options}},
        }
        self.project = Project(folder).build([*(turns or []), *smooth()], settings=settings)
        self.project.environ |= {"GITHUB_TOKEN": TOKEN, "no_proxy": "127.0.0.1,localhost"}
        self.project.home.mkdir(exist_ok=True)
        own = {"forge": {"api_url": github.url}}
        (self.project.home / "config.yaml").write_text(yaml.safe_dump(own))
        self.bare = folder / "origin.git"
        self.colleague = folder / "colleague"
        run_git(folder, "clone", "--quiet", "--bare", str(self.project.folder), str(self.bare))
        run_git(folder, "clone", "--quiet", str(self.bare), str(self.colleague))
        script = folder / "ssh-to-here"
        script.write_text(
            f'#!/bin/sh\nfor last; do :; done\nset -- $last\nexec git "${{1#git-}}" {self.bare}\n'
        )
        script.chmod(0o755)
        for words in (
            ("remote", "add", "origin", "git@github.com:octo/hello.git"),
            ("config", "core.sshCommand", str(script)),
            ("config", "ssh.variant", "simple"),
            ("update-ref", "refs/remotes/origin/main", "main"),
        ):
            self.project.git(*words)
        github.head_of = self.head_of

    def head_of(self, branch: str) -> str:
        words = ["git", "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"]
        done = subprocess.run(words, cwd=self.bare, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    @property
    def branch(self) -> str:
        ref = self.github.full_pulls[NUMBER]["head"]["ref"]
        assert isinstance(ref, str)
        return ref

    @property
    def head(self) -> str:
        return self.head_of(self.branch)

    def merge(self) -> str:
        """Merge the pull request, as a person does on its page."""
        branch = self.branch
        run_git(self.colleague, "fetch", "--quiet", "origin")
        run_git(self.colleague, "switch", "--quiet", "main")
        run_git(self.colleague, "merge", "--quiet", "--ff-only", "origin/main")
        who = ("-c", "user.name=Bo", "-c", "user.email=bo@example.org")
        run_git(self.colleague, *who, "merge", "--quiet", "--no-ff", "-m", "Merge it", f"origin/{branch}")  # fmt: skip
        run_git(self.colleague, "push", "--quiet", "origin", "main")
        commit = run_git(self.colleague, "rev-parse", "HEAD")
        self.github.close(NUMBER, merged_as=commit)
        return commit

    def push(self, path: str, text: str, *, branch: str = "") -> str:
        """Commit a file as a colleague and push it to a branch, without a name to that of the pull request."""
        branch = branch or self.branch
        run_git(self.colleague, "fetch", "--quiet", "origin")
        run_git(self.colleague, "switch", "--quiet", "--force-create", branch, f"origin/{branch}")
        (self.colleague / path).write_text(text)
        run_git(self.colleague, "add", path)
        who = ("-c", "user.name=Bo", "-c", "user.email=bo@example.org")
        run_git(self.colleague, *who, "commit", "--quiet", "-m", f"Of a colleague: {path}")
        run_git(self.colleague, "push", "--quiet", "origin", branch)
        return run_git(self.colleague, "rev-parse", "HEAD")

    def answers(self) -> list[str]:
        """Bodies of the comments that were posted on the pull request through the API."""
        posts = [asked for asked in self.github.asked if asked.method == "POST"]
        return [asked.body["body"] for asked in posts if f"/{NUMBER}/" in asked.target]

    @asynccontextmanager
    async def hosted(self, run_id: str = "") -> AsyncIterator[RunHosted]:
        """Keep one process that hosts the run, as `podium worker` does. With an id, one that was begun before."""
        async with self.project.podium() as podium:
            yield RunHosted(podium, run_id)


class RunHosted:
    """A run and the process that hosts it."""

    def __init__(self, podium: Podium, run_id: str = "") -> None:
        self.podium = podium
        self.run_id = run_id

    async def start(self) -> Run:
        job = await pipeline_job(self.podium, TASK, mode="quick")
        engine = await self.podium.hosting_engine()
        run = await engine.start("pipeline", job.model_dump(mode="json"), task=TASK)
        self.run_id = run.id
        return await engine.finish(run.id, stop_when_waiting=True)

    async def wake(self, signal: str = f"pull_request:{NUMBER}") -> Run:
        """Wake the run and stay with it until it waits for news again, needs a person, or ended."""
        engine = await self.podium.hosting_engine()
        await engine.signal(self.run_id, signal)
        return await engine.finish(self.run_id, stop_when_waiting=True)

    async def end(self) -> Run:
        """Stay with the run until it ended."""
        return await (await self.podium.hosting_engine()).finish(self.run_id)

    async def resume(self) -> Run:
        engine = await self.podium.hosting_engine()
        await engine.resume(self.run_id, by="Ann")
        return await engine.finish(self.run_id, stop_when_waiting=True)

    async def prompts(self) -> str:
        """All prompts that the run sent, as they were recorded."""
        store = await self.podium.store()
        steps = await store.read(lambda view: view.steps(self.run_id))
        return "\n".join(json.dumps(step.output) for step in steps if step.key.startswith("brief"))
