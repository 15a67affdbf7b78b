"""Comments of an issue or pull request are read whole, and an unchanged list costs no quota."""

from __future__ import annotations

from podium.git.forge.github import AnswerCache, GitHub, GitHubRefusal, IssueComment
from podium.git.forge.remotes import read_address
from podium.testing import FixedClock
from tests.integration.forge.github_server import TOKEN, GitHubServer


def client(server: GitHubServer, cache: AnswerCache | None = None) -> GitHub:
    project = read_address("git@github.com:octo/hello.git")
    return GitHub(server.url, TOKEN, project, FixedClock(), seconds=20, cache=cache)


async def test_all_pages_of_comments_are_read(github: GitHubServer) -> None:
    for number in range(205):
        github.comment(7, f"comment {number}", author="uma", association="NONE")
    comments = await client(github).issue_comments(7)
    assert isinstance(comments, list)
    assert [comment.body for comment in comments] == [f"comment {n}" for n in range(205)]
    assert [asked.query["page"] for asked in github.asked] == ["1", "2", "3"]


async def test_an_unchanged_list_is_answered_with_304_and_a_new_comment_is_seen(
    github: GitHubServer,
) -> None:
    cache = AnswerCache()
    for number in range(100):
        github.comment(7, f"comment {number}")
    first = await client(github, cache).issue_comments(7)
    assert await client(github, cache).issue_comments(7) == first
    assert github.unchanged == 1
    made = await client(github, cache).create_issue_comment(7, "one more")
    assert isinstance(made, IssueComment)
    later = await client(github, cache).issue_comments(7)
    assert isinstance(later, list)
    assert later[-1] == made
    assert len(later) == 101


async def test_a_list_that_is_not_there_is_a_refusal(github: GitHubServer) -> None:
    answer = await client(github).get_all("/pulls/9/comments", IssueComment)
    assert answer == GitHubRefusal(404, "Not Found")
