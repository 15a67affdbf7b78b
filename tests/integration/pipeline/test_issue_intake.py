"""Issues become runs: claimed once, worked on as pinned, and answered once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.core.work import RunStatus
from tests.integration.forge import description
from tests.integration.forge.github_server import GitHubServer, serving
from tests.integration.pipeline.issue_project import IssueProject, issue_of
from tests.integration.pipeline.pipeline_harness import smooth

SETTINGS: dict[str, Any] = {"flows": {"pipeline": {"intake": {"mode": "quick"}}}}


@pytest.fixture(scope="module", autouse=True)
def _described() -> None:
    description.load()


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, github: GitHubServer) -> IssueProject:
    return IssueProject(tmp_path / "one", github).build(smooth(), settings=SETTINGS)


def bodies(github: GitHubServer, number: int) -> list[str]:
    return [comment["body"] for comment in github.issue_comments.get(number, [])]


async def test_issue_becomes_a_claimed_run_a_pull_request_and_one_comment(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    items = await project.look()
    assert [(item.number, item.action) for item in items] == [(7, "queued")]
    assert "podium:claimed" in github.issues.labels_of(7)
    (run,) = await project.work()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert issue_of(run) == 7
    (pull,) = github.pulls
    assert pull["body"].rstrip().endswith("Closes #7")
    claim, result = bodies(github, 7)
    assert claim.startswith('<!-- podium:claim {"run":')
    assert '"state":"done"' in claim
    assert "opened https://github.com/octo/hello/pull/100 for this issue" in result
    assert github.issues.labels_of(7) == []
    assert [item.action for item in await project.look()] == []
    assert len(bodies(github, 7)) == 2
