"""A branch is pushed and a pull request opened, once, whatever happened before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.core.errors import ForgeUnavailable, NotPossibleNow, RateLimited
from podium.testing import FixedClock
from tests.integration.forge.github_server import (
    BAD_TOKEN,
    NO_PERMISSION,
    NOT_FOUND,
    SPENT,
    GitHubResponse,
    GitHubServer,
    trouble,
)
from tests.integration.forge.remote_project import BRANCH, RemoteProject


async def test_the_branch_is_pushed_and_a_pull_request_opened(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    made = await remote_project.forge(github.url).deliver(remote_project.draft())
    assert made.model_dump(exclude_defaults=True) == {
        "url": "https://github.com/octo/hello/pull/100",
        "number": 100,
        "pushed": True,
    }
    assert remote_project.there() == {"main": remote_project.base, BRANCH: remote_project.tip}
    assert github.asked[-1].body == {
        "title": "Greet the world",
        "head": f"octo:{BRANCH}",
        "base": "main",
        "body": "All checks passed.",
    }
    assert remote_project.user("rev-parse", f"refs/remotes/origin/{BRANCH}") == remote_project.tip


async def test_asked_again_it_finds_what_is_there(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    first = await remote_project.forge(github.url).deliver(remote_project.draft())
    again = await remote_project.forge(github.url).deliver(remote_project.draft())
    assert (again.url, again.existed, first.existed) == (first.url, True, False)
    assert len(github.pulls) == 1


async def test_one_that_is_opened_in_between_is_found(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.opened("octo", BRANCH, "main")
    github.hidden_lists = 1
    made = await remote_project.forge(github.url).deliver(remote_project.draft())
    assert (made.number, made.existed) == (100, True)
    assert [asked.method for asked in github.asked] == ["GET", "POST", "GET"]


async def test_pull_requests_of_others_are_not_taken_for_ours(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.opened("mallory", BRANCH, "main")
    github.opened("octo", BRANCH, "develop")
    everything = list(github.pulls)
    github._filtered = lambda query: everything if "state" in query else []  # type: ignore[method-assign]
    made = await remote_project.forge(github.url).deliver(remote_project.draft())
    assert (made.number, made.existed) == (102, False)


async def test_work_in_a_fork_asks_upstream(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    remote_project.user("remote", "set-url", "origin", "git@github.com:uma/hello.git")
    remote_project.user("remote", "add", "upstream", "git@github.com:octo/hello.git")
    remote_project.user("config", "branch.main.remote", "upstream")
    made = await remote_project.forge(github.url).deliver(remote_project.draft())
    assert made.url == "https://github.com/octo/hello/pull/100"
    assert github.asked[-1].target == "/repos/octo/hello/pulls"
    assert github.asked[-1].body["head"] == f"uma:{BRANCH}"


async def test_more_than_github_takes_is_cut(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    await remote_project.forge(github.url).deliver(
        remote_project.draft(title="t" * 300, body="b" * 70_000)
    )
    sent = github.asked[-1].body
    assert (len(sent["title"]), len(sent["body"])) == (256, 65_536)
    assert sent["body"].endswith("*The rest was too long for a pull request.*")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (BAD_TOKEN, "does not accept the token"),
        (NO_PERMISSION, "write access to contents and pull requests"),
        (NOT_FOUND, "octo/hello on github.com does not exist, or the token cannot access it"),
    ],
    ids=["401", "403", "404"],
)
async def test_what_only_a_person_can_change_is_reported_in_words(
    remote_project: RemoteProject, github: GitHubServer, answer: GitHubResponse, words: str
) -> None:
    github.everything = answer
    with pytest.raises(NotPossibleNow, match=words):
        await remote_project.forge(github.url).deliver(remote_project.draft())
    assert remote_project.there()[BRANCH] == remote_project.tip


async def test_githubs_own_reason_is_quoted(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    text = "No commits between main and task/greet\x1b[31m"
    error = {"resource": "PullRequest", "code": "custom", "message": text}
    github.creating = GitHubResponse(
        422, {"message": "Validation Failed", "errors": [error], "documentation_url": ""}
    )
    with pytest.raises(NotPossibleNow) as failed:
        await remote_project.forge(github.url).deliver(remote_project.draft())
    assert "Validation Failed: No commits between main and task/greet" in str(failed.value)
    assert "\x1b" not in str(failed.value)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (SPENT, timedelta(minutes=30)),
        (trouble(429, "Too many requests", retry_after="120"), timedelta(minutes=2)),
        (trouble(403, "You have exceeded a secondary rate limit."), timedelta(minutes=1)),
        (trouble(429, "Slow", retry_after="Thu, 01 Jan 2026 13:00:00 GMT"), timedelta(hours=1)),
        (trouble(429, "Slow", retry_after="9" * 400), timedelta(days=1)),
        (trouble(429, "Slow", retry_after="soon", x_ratelimit_reset="-1"), timedelta(minutes=1)),
    ],
)
async def test_a_limit_says_when_to_try_again(
    remote_project: RemoteProject, github: GitHubServer, answer: GitHubResponse, wait: timedelta
) -> None:
    github.everything = answer
    with pytest.raises(RateLimited) as limited:
        await remote_project.forge(github.url).deliver(remote_project.draft())
    assert limited.value.retry_at == FixedClock().now() + wait
    assert limited.value.retry_at.astimezone(UTC) > datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_server_in_trouble_may_be_asked_again_later(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.creating = trouble(502, "Bad gateway")
    with pytest.raises(ForgeUnavailable, match="answered 502"):
        await remote_project.forge(github.url).deliver(remote_project.draft())
    github.creating = None
    assert (await remote_project.forge(github.url).deliver(remote_project.draft())).number == 100


async def test_without_a_forge_a_file_replaces_the_pull_request(
    tmp_path: Path, github: GitHubServer
) -> None:
    remote_project = RemoteProject(tmp_path, remote=str(tmp_path / "remote.git"))
    made = await remote_project.forge(github.url).deliver(remote_project.draft())
    assert made.model_dump(exclude_defaults=True) == {
        "pushed": True,
        "file": str(remote_project.pulls / "run_1.md"),
        "merge_command": f"git merge --no-ff {BRANCH}",
        "why_local": f"the remote '{remote_project.bare}' is not on github.com",
    }
    assert remote_project.there()[BRANCH] == remote_project.tip
    assert github.asked == []
