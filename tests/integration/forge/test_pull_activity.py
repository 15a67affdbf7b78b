"""A pull request's checks and comments are read whole, and each comment is answered once."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.errors import ForgeUnavailable, NotPossibleNow, RateLimited
from podium.core.forge import CommentAnswer, PullComment, PullQuery
from podium.git.forge import github as github_module
from podium.git.forge.github import AnswerCache, ApiResponse, GitHub
from podium.git.forge.pull_requests import log_excerpt, post_answer, pull_status, with_excerpts
from podium.git.forge.remotes import read_address
from podium.testing import FixedClock
from tests.integration.forge import description
from tests.integration.forge.github_server import (
    BAD_TOKEN,
    NO_PERMISSION,
    NOT_FOUND,
    SPENT,
    TOKEN,
    GitHubResponse,
    GitHubServer,
    trouble,
)

COMMIT = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
MARKER = "<!-- podium-answer 5ec4e7 -->"
UNKNOWN_STATE = (
    b'{"state": "gone", "head": {"ref": "a", "sha": "b"}, "base": {"ref": "c", "sha": "d"}}'
)


class Pull:
    """An open pull request, as Podium sees it."""

    def __init__(self, server: GitHubServer) -> None:
        self.server = server
        self.number = server.opened("octo", "task/greet", "main")["number"]
        server.full_pulls[self.number]["head"]["sha"] = COMMIT
        project = read_address("git@github.com:octo/hello.git")
        cache = AnswerCache()
        self.github = GitHub(server.url, TOKEN, project, FixedClock(), seconds=20, cache=cache)

    def query(self, **more: Any) -> PullQuery:
        return PullQuery(repository="/r", base="main", number=self.number, **more)

    async def comments(self, **more: Any) -> list[str]:
        status = await pull_status(self.github, self.query(**more))
        return [comment.body for comment in status.comments]

    async def comment(self, **more: Any) -> PullComment:
        return (await pull_status(self.github, self.query(**more))).comments[-1]

    def answer(self, comment: PullComment) -> CommentAnswer:
        return CommentAnswer(
            repository="/r", base="main", number=self.number, comment=comment, marker=MARKER,
            body=f"{MARKER}\nDone.",
        )  # fmt: skip


@pytest.fixture
def pull(github: GitHubServer) -> Pull:
    return Pull(github)


async def test_more_than_a_page_of_checks_and_comments_is_read(pull: Pull) -> None:
    for number in range(130):
        pull.server.check_run(COMMIT, f"check {number}", "failure" if number > 125 else "success")
        pull.server.review_comment(pull.number, f"line {number}")
    pull.server.check_run(COMMIT, "slow", None)
    pull.server.status(COMMIT, "ci/old", "error", "Broken")
    known = tuple(f"line:{item['id']}" for item in pull.server.review_comments[pull.number][:128])
    status = await pull_status(pull.github, pull.query(known_comments=known))
    names = [check.name for check in status.failed]
    assert names == ["check 126", "check 127", "check 128", "check 129", "ci/old"]
    assert status.pending == 1
    assert [comment.body for comment in status.comments] == ["line 128", "line 129"]


async def test_a_comment_counts_by_its_own_author(pull: Pull) -> None:
    server, number = pull.server, pull.number
    first = server.review_comment(number, "Of uma")
    server.review_comment(
        number,
        "Of eve in the thread of uma",
        author="eve",
        association="NONE",
        reply_to=first["id"],
    )
    server.review_comment(number, "Of a bot", author="tidy[bot]", association="MEMBER", bot=True)
    server.comment(number, "Of a contributor", author="cy", association="CONTRIBUTOR")
    server.review(number, "Please change", state="CHANGES_REQUESTED")
    server.review(number, "Well done", state="APPROVED")
    assert await pull.comments() == ["Please change", "Of uma"]
    named = await pull.comments(authors=("TIDY[bot]", "eve"))
    assert named == ["Of eve in the thread of uma", "Of a bot"]


async def test_an_answer_goes_into_the_thread_and_is_posted_once(pull: Pull) -> None:
    first = pull.server.review_comment(pull.number, "Why?", author="eve", association="NONE")
    pull.server.review_comment(pull.number, "Please mend", reply_to=first["id"])
    answer = pull.answer(await pull.comment())
    posted = await post_answer(pull.github, answer)
    assert pull.server.review_comments[pull.number][-1]["in_reply_to_id"] == first["id"]
    again = await post_answer(pull.github, answer)
    assert (again.id, again.existed, posted.existed) == (posted.id, True, False)


async def test_a_quoted_or_repeated_marker_is_no_answer(pull: Pull) -> None:
    pull.server.comment(pull.number, f"> {MARKER}\n> Done.\n\nIt is not done.")
    pull.server.comment(pull.number, f"It said {MARKER}\nDone.")
    answer = pull.answer(await pull.comment())
    posted = await post_answer(pull.github, answer)
    assert not posted.existed
    assert pull.server.issue_comments[pull.number][-1]["id"] == posted.id


async def test_a_comment_that_is_gone_or_says_something_else_is_not_answered(pull: Pull) -> None:
    comments = pull.server.issue_comments
    comment = pull.server.comment(pull.number, "Mend a")
    answer = pull.answer(await pull.comment())
    comment["body"] = "Mend b"
    assert (await post_answer(pull.github, answer)).unanswered == "edited"
    comments[pull.number].clear()
    assert (await post_answer(pull.github, answer)).unanswered == "gone"
    assert comments[pull.number] == []


async def test_a_check_that_fails_on_the_base_too_is_marked(pull: Pull) -> None:
    base = "0123456789abcdef0123456789abcdef01234567"
    pull.server.full_pulls[pull.number]["base"]["sha"] = base
    for commit in (base, COMMIT):
        pull.server.check_run(commit, "flaky", "failure")
    pull.server.check_run(COMMIT, "lint", "timed_out")
    status = await pull_status(pull.github, pull.query())
    assert [(c.name, c.red_before) for c in status.failed] == [("flaky", True), ("lint", False)]


async def test_a_log_is_read_from_another_host_without_the_token(pull: Pull) -> None:
    log = "\n".join(["2026-01-01T00:00:00.1Z \x1b[31merror: early\x1b[0m", *["fill"] * 5000, "END"])
    pull.server.check_run(COMMIT, "ci", "failure", summary="1 test failed", log=log)
    failed = (await pull_status(pull.github, pull.query())).failed
    [check] = await with_excerpts(pull.github, failed, COMMIT)
    assert "1 test failed" in check.excerpt
    assert "\nerror: early\n…\n" in check.excerpt
    assert check.excerpt.endswith("END")
    assert len(check.excerpt) <= 5_000
    [headers] = pull.server.log_requests
    assert TOKEN not in str(headers)


def test_an_excerpt_is_bounded_whatever_the_log_holds() -> None:
    for log in ("", "x" * 100_000, "error\n" * 100_000, "\n" * 9):
        assert len(log_excerpt(log, 900)) <= 900


async def test_the_end_of_a_pull_request_is_seen(pull: Pull) -> None:
    pull.server.close(pull.number)
    assert (await pull_status(pull.github, pull.query())).state == "closed"
    pull.server.reopen(pull.number)
    assert (await pull_status(pull.github, pull.query())).state == "open"
    pull.server.close(pull.number, merged_as=COMMIT)
    status = await pull_status(pull.github, pull.query())
    assert (status.state, status.merge_commit) == ("merged", COMMIT)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (BAD_TOKEN, NotPossibleNow, "does not accept the token"),
        (NO_PERMISSION, NotPossibleNow, "cannot follow pull requests .* read access to checks"),
        (NOT_FOUND, NotPossibleNow, "no pull request 100 .* deleted, moved or made private"),
        (SPENT, RateLimited, "rate limit"),
        (trouble(502, "Bad gateway"), ForgeUnavailable, "answered 502"),
        (GitHubResponse(200, raw=b"<html>"), ForgeUnavailable, "did not answer like the GitHub"),
        (
            GitHubResponse(200, raw=UNKNOWN_STATE),
            ForgeUnavailable,
            "did not answer like the GitHub",
        ),
    ],
)
async def test_trouble_says_who_has_to_act(
    pull: Pull, answer: GitHubResponse, error: type[Exception], words: str
) -> None:
    pull.server.everything = answer
    with pytest.raises(error, match=words):
        await pull_status(pull.github, pull.query())


@pytest.mark.parametrize(
    ("address", "log"),
    [
        ("http://example.org", "error"),
        ("https://127.0.0.1:9", "error"),
        ("", "x" * 1_000 + "\n"),
    ],
    ids=["without https", "host is down", "too long"],
)
async def test_a_log_that_cannot_be_had_is_left_out(
    pull: Pull, address: str, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_module, "_MAX_DOWNLOAD_BYTES", 900)  # nobody has 64 MB to send
    pull.server.log_address = address
    pull.server.check_run(COMMIT, "ci", "failure", summary="1 test failed", log=log)
    failed = (await pull_status(pull.github, pull.query())).failed
    [check] = await with_excerpts(pull.github, failed, COMMIT)
    assert check.excerpt.strip() == "ci\n1 test failed"


async def test_a_rate_limit_at_a_log_is_waited_for(pull: Pull) -> None:
    pull.server.check_run(COMMIT, "ci", "failure", log="error")
    failed = (await pull_status(pull.github, pull.query())).failed
    pull.server.after = lambda asked: SPENT if asked.target.endswith("/logs") else None
    with pytest.raises(RateLimited):
        await with_excerpts(pull.github, failed, COMMIT)


@pytest.mark.parametrize("when", ["soon", "Fri, 01 Jan 99999999999 00:00:00 GMT", "-5", "\u0663"])
async def test_a_limit_with_an_unreadable_time_is_still_a_limit(pull: Pull, when: str) -> None:
    pull.server.everything = trouble(429, "Slow down", retry_after=when.encode().decode("latin-1"))
    with pytest.raises(RateLimited):
        await pull_status(pull.github, pull.query())


async def test_an_answer_that_is_dropped_while_it_is_asked_for_again_is_still_known() -> None:
    cache = AnswerCache(most_bytes=10)
    first = ApiResponse(200, {"etag": "1"}, b"[1, 2]")
    cache.settled("a", None, first)
    known = cache.known("a")
    cache.settled("b", None, ApiResponse(200, {"etag": "2"}, b"[3, 4, 5]"))
    assert cache.known("a") is None
    assert cache.settled("a", known, ApiResponse(304, {}, b"")) is first


async def test_half_a_character_can_be_stored(pull: Pull) -> None:
    pull.server.comment(pull.number, "Mend \ud83d it \U0001f600")
    comment = await pull.comment()
    assert comment.body == "Mend \ufffd it \U0001f600"
    assert comment.model_dump_json()


async def test_long_comments_of_strangers_hide_no_other(pull: Pull) -> None:
    """GitHub allows 65,536 signs, which have up to twelve bytes each in its answers."""
    for _ in range(12):
        pull.server.comment(pull.number, "\U0001f600" * 65_536, author="eve", association="NONE")
    pull.server.comment(pull.number, "Mend it")
    assert await pull.comments() == ["Mend it"]
    asked = len(pull.server.asked)
    pull.server.comment(pull.number, "And that")
    assert await pull.comments() == ["Mend it", "And that"]
    sizes = [request.query.get("per_page") for request in pull.server.asked[asked:]]
    assert sizes.count("5") == 3


async def test_of_thousands_of_annotations_the_first_are_read(pull: Pull) -> None:
    run = pull.server.check_run(COMMIT, "lint", "failure")
    note = description.example("check-annotation-items")[0]
    notes = [{**note, "message": f"note {number}"} for number in range(5_200)]
    pull.server.annotations[run["id"]] = notes
    run["output"]["annotations_count"] = len(notes)
    failed = (await pull_status(pull.github, pull.query())).failed
    asked = len(pull.server.asked)
    [check] = await with_excerpts(pull.github, failed, COMMIT)
    assert "note 0" in check.excerpt
    assert [request.target for request in pull.server.asked[asked:]][-1].endswith("page=1")
