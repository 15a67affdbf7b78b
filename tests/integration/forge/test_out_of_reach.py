"""A forge that is out of reach is waited for; a person is asked for what only a person can mend."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from podium.core.errors import ForgeUnavailable, RateLimited
from podium.core.work import RunStatus
from podium.jobs.pipeline import handover
from podium.jobs.pipeline.handover import (
    FIRST_PAUSE,
    MAX_PAUSE,
    PATIENCE,
    ForgeOutage,
    outage_after,
)
from podium.testing import retry_until
from tests.integration.forge.github_server import BAD_TOKEN, TOKEN, GitHubResponse, GitHubServer
from tests.integration.pipeline.pipeline_harness import Project, smooth
from tests.integration.workspaces.workspace_harness import git

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
IN_TROUBLE = GitHubResponse(503, raw=b"one moment")


class Published(Project):
    """A project whose remote is GitHub's by its address, and a bare repository in truth."""

    def publish(self, github: GitHubServer) -> Published:
        bare = self.folder.parent / "remote.git"
        bare.mkdir()
        git(bare, "init", "-q", "-b", "main", "--bare")
        self.git("remote", "add", "origin", "git@github.com:octo/hello.git")
        self.lead_ssh(f"exec git receive-pack {bare}")
        self.git("config", "ssh.variant", "simple")
        self.environ |= {"GITHUB_TOKEN": TOKEN, "no_proxy": "127.0.0.1"}
        self.home.mkdir()
        own = {"forge": {"api_url": github.url}}
        (self.home / "config.yaml").write_text(yaml.safe_dump(own))
        return self

    def lead_ssh(self, words: str) -> None:
        script = self.folder.parent / "ssh-to-here"
        script.write_text(f"#!/bin/sh\n{words}\n")
        script.chmod(0o755)
        self.git("config", "core.sshCommand", str(script))

    async def messages(self, run_id: str) -> list[str]:
        events = await self.events(run_id)
        return [event["text"] for event in events if event["type"] == "note_taken"]


@pytest.fixture
def published(tmp_path: Path, github: GitHubServer) -> Published:
    project = Published(tmp_path / "work")
    project.build(smooth())
    return project.publish(github)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses that a test can wait for."""
    monkeypatch.setattr(handover, "FIRST_PAUSE", timedelta(milliseconds=50))
    monkeypatch.setattr(handover, "MAX_PAUSE", timedelta(milliseconds=200))


@pytest.mark.soak
async def test_a_server_in_trouble_is_asked_again_until_it_answers(
    published: Published, github: GitHubServer, quick: None
) -> None:
    github.creating = IN_TROUBLE
    working = asyncio.create_task(published.run())

    def tried_twice() -> bool:
        return sum(item.method == "POST" for item in github.asked) >= 2 or working.done()

    await retry_until(tried_twice, seconds=120)
    github.creating = None
    run = await working
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert run.result["pull_request"]["number"] == 100
    assert len(github.pulls) == 1
    assert "next attempt at" in "".join(await published.messages(run.id))


@pytest.mark.soak
async def test_a_remote_out_of_reach_is_pushed_to_when_it_can_and_a_refused_token_is_a_persons_matter(
    published: Published, github: GitHubServer, quick: None
) -> None:
    bare = published.folder.parent / "remote.git"
    seen = published.folder.parent / "tried"
    # The base is looked at three times before, and each time that the branch is to go out.
    published.lead_ssh(
        f"echo x >> {seen}; if [ $(wc -l < {seen}) -gt 5 ]; then\n"
        f'case "$*" in *upload-pack*) exec git upload-pack {bare};; esac; exec git receive-pack {bare}; fi\n'
        "echo 'ssh: connect to host github.com port 22: Connection timed out' >&2; exit 255"
    )
    github.creating = BAD_TOKEN
    run = await published.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN, (run.failure, run.waiting_for)
    waited = [text for text in await published.messages(run.id) if "not delivered yet" in text]
    assert len(waited) == 2, "it waits for the remote, and asks a person at once about the token"
    assert git(bare, "branch", "--list", "task/*")
    github.creating = None
    run = await published.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)


@pytest.mark.soak  # how long that is, is told by the pauses below
async def test_a_person_is_asked_when_it_lasts_for_hours(
    published: Published,
    github: GitHubServer,
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handover, "PATIENCE", timedelta(milliseconds=10))
    github.creating = IN_TROUBLE
    run = await published.run()
    assert run.status is RunStatus.NEEDS_HUMAN, (run.failure, run.waiting_for)
    assert sum(item.method == "POST" for item in github.asked) == 2


def test_pauses_grow_up_to_a_bound_and_end_after_hours() -> None:
    trouble: ForgeOutage | None = None
    now, pauses = NOW, []
    while True:
        trouble = outage_after(ForgeUnavailable("no answer"), trouble, now)
        if trouble.again_at is None:
            break
        pauses.append(trouble.again_at - now)
        now = trouble.again_at
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (FIRST_PAUSE, MAX_PAUSE)
    assert PATIENCE <= now - NOW < PATIENCE + MAX_PAUSE


@pytest.mark.parametrize(
    ("says", "waits"),
    [
        (timedelta(minutes=10), timedelta(minutes=10)),
        (timedelta(minutes=-5), FIRST_PAUSE),
        (timedelta(days=30_000), MAX_PAUSE),
    ],
)
def test_a_rate_limit_is_waited_out_as_the_forge_says_but_never_for_long(
    says: timedelta, waits: timedelta
) -> None:
    error = RateLimited("too many", NOW + says)
    assert outage_after(error, None, NOW).again_at == NOW + waits
