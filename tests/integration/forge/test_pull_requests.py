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
    GitHubServer,
    Told,
    trouble,
)
from tests.integration.forge.rig import BRANCH, Yard


async def test_the_branch_is_pushed_and_a_pull_request_opened(
    yard: Yard, github: GitHubServer
) -> None:
    made = await yard.forge(github.url).deliver(yard.wish())
    assert made.model_dump(exclude_defaults=True) == {
        "url": "https://github.com/octo/hello/pull/100",
        "number": 100,
        "pushed": True,
    }
    assert yard.there() == {"main": yard.base, BRANCH: yard.tip}
    assert github.asked[-1].body == {
        "title": "Greet the world",
        "head": f"octo:{BRANCH}",
        "base": "main",
        "body": "All checks passed.",
    }
    assert yard.user("rev-parse", f"refs/remotes/origin/{BRANCH}") == yard.tip


async def test_asked_again_it_finds_what_is_there(yard: Yard, github: GitHubServer) -> None:
    first = await yard.forge(github.url).deliver(yard.wish())
    again = await yard.forge(github.url).deliver(yard.wish())
    assert (again.url, again.existed, first.existed) == (first.url, True, False)
    assert len(github.pulls) == 1


async def test_one_that_is_opened_in_between_is_found(yard: Yard, github: GitHubServer) -> None:
    github.opened("octo", BRANCH, "main")
    github.hidden_lists = 1
    made = await yard.forge(github.url).deliver(yard.wish())
    assert (made.number, made.existed) == (100, True)
    assert [asked.method for asked in github.asked] == ["GET", "POST", "GET"]


async def test_pull_requests_of_others_are_not_taken_for_ours(
    yard: Yard, github: GitHubServer
) -> None:
    github.opened("mallory", BRANCH, "main")
    github.opened("octo", BRANCH, "develop")
    everything = list(github.pulls)
    github._filtered = lambda query: everything if "state" in query else []  # type: ignore[method-assign]
    made = await yard.forge(github.url).deliver(yard.wish())
    assert (made.number, made.existed) == (102, False)


async def test_work_in_a_fork_asks_upstream(yard: Yard, github: GitHubServer) -> None:
    yard.user("remote", "set-url", "origin", "git@github.com:uma/hello.git")
    yard.user("remote", "add", "upstream", "git@github.com:octo/hello.git")
    yard.user("config", "branch.main.remote", "upstream")
    made = await yard.forge(github.url).deliver(yard.wish())
    assert made.url == "https://github.com/octo/hello/pull/100"
    assert github.asked[-1].target == "/repos/octo/hello/pulls"
    assert github.asked[-1].body["head"] == f"uma:{BRANCH}"


async def test_more_than_github_takes_is_cut(yard: Yard, github: GitHubServer) -> None:
    await yard.forge(github.url).deliver(yard.wish(title="t" * 300, body="b" * 70_000))
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
async def test_what_only_a_person_can_change_is_said_in_words(
    yard: Yard, github: GitHubServer, answer: Told, words: str
) -> None:
    github.everything = answer
    with pytest.raises(NotPossibleNow, match=words):
        await yard.forge(github.url).deliver(yard.wish())
    assert yard.there()[BRANCH] == yard.tip


async def test_githubs_own_reason_is_quoted(yard: Yard, github: GitHubServer) -> None:
    told = "No commits between main and task/greet\x1b[31m"
    error = {"resource": "PullRequest", "code": "custom", "message": told}
    github.creating = Told(
        422, {"message": "Validation Failed", "errors": [error], "documentation_url": ""}
    )
    with pytest.raises(NotPossibleNow) as failed:
        await yard.forge(github.url).deliver(yard.wish())
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
    yard: Yard, github: GitHubServer, answer: Told, wait: timedelta
) -> None:
    github.everything = answer
    with pytest.raises(RateLimited) as limited:
        await yard.forge(github.url).deliver(yard.wish())
    assert limited.value.retry_at == FixedClock().now() + wait
    assert limited.value.retry_at.astimezone(UTC) > datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_server_in_trouble_may_be_asked_again_later(
    yard: Yard, github: GitHubServer
) -> None:
    github.creating = trouble(502, "Bad gateway")
    with pytest.raises(ForgeUnavailable, match="answered 502"):
        await yard.forge(github.url).deliver(yard.wish())
    github.creating = None
    assert (await yard.forge(github.url).deliver(yard.wish())).number == 100


async def test_without_a_forge_a_file_stands_for_the_pull_request(
    tmp_path: Path, github: GitHubServer
) -> None:
    yard = Yard(tmp_path, remote=str(tmp_path / "remote.git"))
    made = await yard.forge(github.url).deliver(yard.wish())
    assert made.model_dump(exclude_defaults=True) == {
        "pushed": True,
        "file": str(yard.pulls / "run_1.md"),
        "merge_command": f"git merge --no-ff {BRANCH}",
        "why_local": f"the remote '{yard.bare}' is not on github.com",
    }
    assert yard.there()[BRANCH] == yard.tip
    assert github.asked == []
