"""Pull requests after they were opened: state, checks and comments, and one answer to each comment."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal, TypeVar

from pydantic import Field

from podium.core.errors import ForgeUnavailable, NotPossibleNow
from podium.core.forge import (
    CommentAnswer,
    FailedCheck,
    PostedAnswer,
    PullComment,
    PullQuery,
    PullStatus,
)
from podium.git.forge.github import (
    GitHub,
    GitHubModel,
    GitHubRefusal,
    GitHubUser,
    IssueComment,
)
from podium.git.forge.remotes import plain

WRITERS = ("OWNER", "MEMBER", "COLLABORATOR")
"""What GitHub calls authors with access to the repository."""
_FAILED_RUNS = ("failure", "timed_out", "startup_failure")
_FAILED_STATUSES = ("failure", "error")
_MAX_COMMENTS = 60
"""Comments that are given at once; later ones follow when these are known."""
_MAX_BODY = 6_000
_MAX_HUNK = 1_500
_MAX_CHECKS = 30
_MAX_EXCERPT = 5_000
_LOG_BYTES = 400_000
_MAX_ERROR_LINES = 40
_ERROR_LINE = re.compile(r"error|fail|assert|exception|traceback|panic|fatal", re.IGNORECASE)
_LOG_TIME = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z ")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class _Branch(GitHubModel):
    ref: str
    sha: str


class _Pull(GitHubModel):
    state: Literal["open", "closed"]
    """Anything else is no answer: a run must not end by it."""
    merged: bool = False
    merge_commit_sha: str | None = None
    merged_by: GitHubUser | None = None
    mergeable: bool | None = None
    """None: GitHub has not computed it yet."""
    head: _Branch
    base: _Branch


class _Review(GitHubModel):
    id: int
    body: str | None = None
    state: str
    user: GitHubUser | None = None
    author_association: str = "NONE"
    html_url: str = ""


class _LineComment(IssueComment):
    path: str = ""
    line: int | None = None
    original_line: int | None = None
    diff_hunk: str = ""
    in_reply_to_id: int | None = None


class _Output(GitHubModel):
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations_count: int = 0


class _App(GitHubModel):
    slug: str = ""


class _CheckRun(GitHubModel):
    id: int
    name: str
    status: str
    conclusion: str | None = None
    html_url: str | None = None
    output: _Output = Field(default_factory=_Output)
    app: _App | None = None


class _Status(GitHubModel):
    id: int
    context: str
    state: str
    description: str | None = None
    target_url: str | None = None


class _Annotation(GitHubModel):
    path: str = ""
    start_line: int | None = None
    annotation_level: str | None = None
    message: str | None = None


_T = TypeVar("_T")


async def pull_status(github: GitHub, query: PullQuery) -> PullStatus:
    """Look at a pull request. Raises `NotPossibleNow` when only a person can help, and as `GitHub` does."""
    pull = await _pull(github, query.number)
    status = PullStatus(
        state="merged" if pull.merged else "open" if pull.state == "open" else "closed",
        head=pull.head.sha,
        base=pull.base.ref,
        merge_commit=(pull.merge_commit_sha or "") if pull.merged else "",
        merged_by=pull.merged_by.login if pull.merged_by else "",
        conflicts=pull.mergeable is False,
    )
    if status.state != "open":
        return status
    runs, statuses = await _checks(github, pull.head.sha)
    pending = sum(run.status != "completed" for run in runs)
    pending += sum(item.state == "pending" for item in statuses)
    failed = [check for check in _failed(runs, statuses) if check.key not in query.known_checks]
    if failed:
        red = {check.name for check in _failed(*await _checks(github, pull.base.sha))}
        failed = [check.model_copy(update={"red_before": check.name in red}) for check in failed]
    comments = [
        comment
        async for comment in _comments(github, query)
        if comment.key not in query.known_comments
    ]
    return status.model_copy(
        update={
            "pending": pending,
            "failed": tuple(failed[:_MAX_CHECKS]),
            "comments": tuple(comments[:_MAX_COMMENTS]),
        }
    )


async def is_open(github: GitHub, number: int) -> bool:
    return (await _pull(github, number)).state == "open"


async def with_excerpts(
    github: GitHub, checks: Sequence[FailedCheck], head: str
) -> tuple[FailedCheck, ...]:
    """Add to each check what it reported: its own text, annotations, and of GitHub Actions the log."""
    runs, statuses = await _checks(github, head)
    by_id = {run.id: run for run in runs}
    texts = {item.id: item.description or "" for item in statuses}
    complete = []
    for check in checks:
        if check.kind == "status":
            excerpt = texts.get(check.id, "")
        else:
            excerpt = await _excerpt(github, by_id[check.id]) if check.id in by_id else ""
        complete.append(check.model_copy(update={"excerpt": excerpt[:_MAX_EXCERPT]}))
    return tuple(complete)


async def post_answer(github: GitHub, answer: CommentAnswer) -> PostedAnswer:
    """Post an answer once: one that an earlier try posted is found by its first line."""
    comment, number = answer.comment, answer.number
    lines = _listed(github, await github.get_all(f"/pulls/{number}/comments", _LineComment))
    conversation = _listed(github, await github.issue_comments(number))
    where: Sequence[IssueComment] = lines if comment.kind == "line" else conversation
    for item in where:
        if (item.body or "").startswith(f"{answer.marker}\n"):
            return PostedAnswer(id=item.id, url=item.html_url, existed=True)
    match comment.kind:
        case "line":
            bodies = {item.id: item.body for item in lines}
        case "conversation":
            bodies = {item.id: item.body for item in conversation}
        case "review":
            reviews = _listed(github, await github.get_all(f"/pulls/{number}/reviews", _Review))
            bodies = {item.id: item.body for item in reviews}
    if comment.id not in bodies:
        return PostedAnswer(unanswered="gone")
    if _digest(bodies[comment.id] or "") != comment.digest:
        return PostedAnswer(unanswered="edited")
    if comment.kind == "line":
        path = f"/pulls/{number}/comments/{comment.thread}/replies"
        posted: IssueComment | GitHubRefusal = await github.create(
            path, {"body": answer.body}, _LineComment
        )
        if isinstance(posted, GitHubRefusal) and posted.status == 404:
            return PostedAnswer(unanswered="gone")
    else:
        posted = await github.create_issue_comment(number, answer.body)
    if isinstance(posted, GitHubRefusal):
        raise NotPossibleNow(_sentence(github, posted))
    return PostedAnswer(id=posted.id, url=posted.html_url)


async def _pull(github: GitHub, number: int) -> _Pull:
    pull = await github.get(f"/pulls/{number}", _Pull)
    if isinstance(pull, GitHubRefusal):
        raise NotPossibleNow(_sentence(github, pull, number))
    return pull


def _sentence(github: GitHub, refused: GitHubRefusal, number: int | None = None) -> str:
    where = f"{github.project.project} on {github.project.host}"
    detail = f" ({refused.message})" if refused.message else ""
    match refused.status:
        case 403:
            return (
                f"the token cannot follow pull requests in {where}{detail}; give it read access to checks, commit "
                "statuses and Actions, and write access to contents, issues and pull requests"
            )
        case 404 | 410 if number is not None:
            return (
                f"there is no pull request {number} in {where} any more, or the token cannot access it: the "
                "pull request or the repository was deleted, moved or made private"
            )
        case 401 | 404:
            return github.sentence(refused)
        case _:
            return f"{where} refused a request about a pull request{detail or f' (status {refused.status})'}"


def _listed(github: GitHub, answer: list[_T] | GitHubRefusal) -> list[_T]:
    if isinstance(answer, GitHubRefusal):
        raise NotPossibleNow(_sentence(github, answer))
    return answer


async def _checks(github: GitHub, commit: str) -> tuple[list[_CheckRun], list[_Status]]:
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        raise ForgeUnavailable(f"{github.project.host} named a commit that is not valid")
    path = f"/commits/{commit}"
    runs = await github.get_all(
        f"{path}/check-runs", _CheckRun, {"filter": "latest"}, key="check_runs"
    )
    if isinstance(runs, GitHubRefusal) and runs.status == 403:
        # Fine-grained tokens of people cannot be given access to checks; statuses are still there.
        runs = []
    statuses = await github.get_all(f"{path}/status", _Status, key="statuses")
    return _listed(github, runs), _listed(github, statuses)


def _failed(runs: Sequence[_CheckRun], statuses: Sequence[_Status]) -> Iterator[FailedCheck]:
    for run in runs:
        if run.status == "completed" and run.conclusion in _FAILED_RUNS:
            yield FailedCheck(
                kind="run", id=run.id, name=plain(run.name, 200), result=run.conclusion, url=run.html_url or ""
            )  # fmt: skip
    for status in statuses:
        if status.state in _FAILED_STATUSES:
            yield FailedCheck(
                kind="status", id=status.id, name=plain(status.context, 200), result=status.state,
                url=status.target_url or "",
            )  # fmt: skip


async def _comments(github: GitHub, query: PullQuery) -> AsyncIterator[PullComment]:
    """Comments of authors that count: of each comment its own author, whoever began the thread."""
    number = query.number
    for review in _listed(github, await github.get_all(f"/pulls/{number}/reviews", _Review)):
        asks = review.state in ("CHANGES_REQUESTED", "COMMENTED") and (review.body or "").strip()
        if asks and _counts(review.user, review.author_association, query.authors):
            yield _comment("review", review.id, review.user, review.body, review.html_url)
    lines = await github.get_all(f"/pulls/{number}/comments", _LineComment)
    for line in _listed(github, lines):
        if (line.body or "").strip() and _counts(line.user, line.author_association, query.authors):
            yield _comment("line", line.id, line.user, line.body, line.html_url).model_copy(
                update={
                    "path": plain(line.path, 300),
                    "line": line.line or line.original_line,
                    "hunk": line.diff_hunk[-_MAX_HUNK:],
                    "thread": line.in_reply_to_id or line.id,
                }
            )
    for item in _listed(github, await github.issue_comments(number)):
        if (item.body or "").strip() and _counts(item.user, item.author_association, query.authors):
            yield _comment("conversation", item.id, item.user, item.body, item.html_url)


def _counts(user: GitHubUser | None, association: str, authors: Sequence[str]) -> bool:
    """Tell whether changes may be asked for by this author. A list of names decides alone, and may name bots."""
    if user is None:
        return False
    if authors:
        return user.login.casefold() in {name.casefold() for name in authors}
    return association in WRITERS and user.type == "User"


def _comment(
    kind: str, number: int, user: GitHubUser | None, body: str | None, url: str
) -> PullComment:
    text = body or ""
    return PullComment.model_validate(
        {
            "kind": kind,
            "id": number,
            "author": user.login if user else "",
            "body": text[:_MAX_BODY],
            "characters": len(text),
            "digest": _digest(text),
            "thread": number,
            "url": plain(url, 300),
        }
    )


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode(errors="replace")).hexdigest()


async def _excerpt(github: GitHub, run: _CheckRun) -> str:
    parts = [part for part in (run.output.title, run.output.summary, run.output.text) if part]
    if run.output.annotations_count:
        notes = await github.first(f"/check-runs/{run.id}/annotations", _Annotation)
        for note in notes if not isinstance(notes, GitHubRefusal) else ():
            parts.append(f"{note.path}:{note.start_line}: {note.message or ''}"[:400])
    text = "\n".join(parts)[: _MAX_EXCERPT // 2]
    if run.app is not None and run.app.slug == "github-actions":
        log = log_excerpt(await github.job_log(run.id, _LOG_BYTES), _MAX_EXCERPT - len(text) - 2)
        text = f"{text}\n\n{log}" if text else log
    return text


def log_excerpt(log: str, most: int) -> str:
    """The end of a log, and before it lines further up that tell of errors."""
    lines = [_ESCAPES.sub("", _LOG_TIME.sub("", line)).rstrip()[:300] for line in log.splitlines()]
    tail: list[str] = []
    room = most * 2 // 3
    while lines and room > len(lines[-1]):
        tail.insert(0, lines.pop())
        room -= len(tail[0]) + 1
    errors = [line for line in lines if _ERROR_LINE.search(line)][-_MAX_ERROR_LINES:]
    head = "\n".join(errors)[-(most // 3 - 10) :]
    return f"{head}\n…\n" * bool(head) + "\n".join(tail)
