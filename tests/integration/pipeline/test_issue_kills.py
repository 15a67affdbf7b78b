"""`kill -9` of real processes between two requests to GitHub: no issue is lost, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.core.work import RunStatus
from tests.integration.forge import description
from tests.integration.forge.github_server import Asked, GitHubServer, serving
from tests.integration.pipeline.issue_project import IssueProject, issue_of
from tests.integration.pipeline.pipeline_harness import smooth
from tests.soaking import in_soak

SETTINGS: dict[str, Any] = {"flows": {"pipeline": {"intake": {"mode": "quick"}}}}


@pytest.fixture(scope="module", autouse=True)
def _described() -> None:
    description.load()


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


def killed_after_write(
    project: IssueProject, github: GitHubServer, number: int, *argv: str
) -> subprocess.Popen[bytes]:
    """A process that is killed when GitHub has done its write of this number, and before it hears of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "podium", *argv],
        cwd=project.folder,
        env=project.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    writes = 0

    def kill(asked: Asked) -> None:
        nonlocal writes
        writes += asked.method != "GET"
        if asked.method != "GET" and writes == number:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()

    github.after = kill
    process.wait()
    github.after = lambda asked: None
    return process


@pytest.mark.parametrize("number", [1, in_soak(2), in_soak(3), in_soak(4)])
async def test_killed_intake_claims_and_queues_no_issue_twice(
    tmp_path: Path, github: GitHubServer, number: int
) -> None:
    project = IssueProject(tmp_path / "one", github).build([], settings=SETTINGS)
    github.issues.add(7)
    github.issues.add(8)
    process = killed_after_write(project, github, number, "intake")
    assert process.returncode == -signal.SIGKILL
    await project.look()
    await project.look()
    assert sorted(issue_of(run) for run in await project.runs()) == [7, 8]
    for issue in (7, 8):
        (claim,) = github.issue_comments[issue]
        assert '"state":"active"' in claim["body"]
        assert sorted(github.issues.labels_of(issue)) == ["podium", "podium:claimed"]


@pytest.mark.soak
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
async def test_run_that_is_killed_while_it_reports_opens_and_reports_once(
    tmp_path: Path, github: GitHubServer, number: int
) -> None:
    project = IssueProject(tmp_path / "one", github).build(smooth(), settings=SETTINGS)
    github.issues.add(7)
    await project.look()
    process = killed_after_write(project, github, number, "worker", "--once")
    assert process.returncode == -signal.SIGKILL
    (run,) = await project.work()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    await project.look()
    claim, result = [comment["body"] for comment in github.issue_comments[7]]
    assert '"state":"done"' in claim
    assert "opened https://github.com/octo/hello/pull/100" in result
    assert len(github.pulls) == 1
    assert github.issues.labels_of(7) == []
