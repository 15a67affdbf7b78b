"""Forge models: remotes, pushed branches, pull requests, and results of a project's checks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime

Finding = Literal[
    "protected",
    "unprotected",
    "partly_protected",
    "no_remote",
    "other_forge",
    "no_token",
    "bad_token",
    "no_permission",
    "not_found",
    "rate_limited",
    "unreachable",
]
"""State of the remote's base branch, or why it is not known."""


class Preflight(FrozenModel):
    """True if the remote keeps the base branch safe."""

    finding: Finding
    sentence: NonEmpty
    """In plain words, one line."""
    remote: str = ""
    """Its address, without credentials. Empty: there is none."""
    base: str = ""
    missing: tuple[str, ...] = ()
    """Of a partly protected branch: what is not required, such as `block force pushes`."""


class RemoteBase(FrozenModel):
    """Position of the base branch at the remote. Its commits are in the user's repository then."""

    commit: str = ""
    """Empty: there is no remote, or it could not be asked."""
    name: str = ""
    """Remote and branch, such as `origin/main`."""
    why_not: str = ""
    """The reason why it was not fetched. Empty also where there is no remote."""
    web: str = ""
    """Address of the repository's pages. Empty: not known."""


class PullRequestDraft(FrozenModel):
    """A branch that somebody should look at and merge."""

    repository: NonEmpty
    """The user's checkout."""
    branch: NonEmpty
    """Short name of the branch to be merged."""
    base: NonEmpty
    """Short name of the branch it is to be merged into."""
    commit: NonEmpty
    """The commit of the branch. Nothing else is ever pushed."""
    title: NonEmpty
    body: str
    run_id: str = ""
    number: int | None = None
    """Number of the pull request that was opened for this branch before. It only gets the new commits."""


class PullRequest(FrozenModel):
    """A pull request, or what stands for one where there is no forge."""

    url: str = ""
    """Empty: none was opened."""
    number: int | None = None
    existed: bool = False
    """It was there already."""
    pushed: bool = False
    file: str = ""
    """The local equivalent."""
    merge_command: str = ""
    why_local: str = ""
    """The reason why there is a file and no pull request."""
    moved_base: str = ""
    """The remote's base branch is at this commit, which the branch does not contain: nothing was pushed or made."""
    moved_branch: str = ""
    """The remote's branch is at this commit of somebody else, which the branch does not contain: nothing was pushed."""
    closed: bool = False
    """The pull request is not open any more: nothing was pushed."""


class PullComment(FrozenModel):
    """Comment on a pull request, by an author who may ask for changes."""

    kind: Literal["conversation", "review", "line"]
    """Conversation of the pull request, summary of a review, or a line of the change."""
    id: int
    author: str
    body: str
    """Its beginning, where `characters` says that it is longer."""
    characters: int = 0
    digest: str = ""
    """Of the whole body: tells whether it was edited."""
    path: str = ""
    line: int | None = None
    hunk: str = ""
    """End of the part of the change that it is about."""
    thread: int = 0
    """First comment of its thread, to which an answer goes."""
    url: str = ""

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.id}"


class FailedCheck(FrozenModel):
    """Check run or commit status that failed on the commit of a pull request."""

    kind: Literal["run", "status"]
    id: int
    name: str
    result: str
    """Such as `failure` or `timed_out`."""
    excerpt: str = ""
    """Of what it reported; empty until it is asked for."""
    url: str = ""
    red_before: bool = False
    """The check of this name fails on the base too."""

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.id}"


class PullQuery(FrozenModel):
    """Pull request to look at, and what is known of it."""

    repository: NonEmpty
    base: NonEmpty
    number: int
    authors: tuple[str, ...] = ()
    """Accounts whose comments count. Empty: people with write access, as GitHub states it for each comment."""
    known_comments: tuple[str, ...] = ()
    """Keys of comments that need no further look."""
    known_checks: tuple[str, ...] = ()


class PullStatus(FrozenModel):
    """A pull request as the forge shows it."""

    state: Literal["open", "merged", "closed"]
    head: str
    """Commit of its branch at the remote."""
    base: str
    """Branch that it merges into."""
    merge_commit: str = ""
    merged_by: str = ""
    conflicts: bool = False
    """It cannot be merged into the base as that is now."""
    pending: int = 0
    """Checks that have not ended."""
    failed: tuple[FailedCheck, ...] = ()
    """Failed checks that are not known yet."""
    comments: tuple[PullComment, ...] = ()
    """Comments that are not known yet, the oldest first."""


class CommentAnswer(FrozenModel):
    """Answer to one comment of a pull request."""

    repository: NonEmpty
    base: NonEmpty
    number: int
    comment: PullComment
    marker: NonEmpty
    """First line of the text: by it an answer that was posted before is found."""
    body: NonEmpty


class PostedAnswer(FrozenModel):
    """Location of an answer, or the reason why there is none."""

    id: int = 0
    url: str = ""
    existed: bool = False
    """An earlier try had posted it."""
    unanswered: Literal["", "gone", "edited"] = ""
    """The comment is not there any more, or says something else than what was worked on."""


def is_same_label(one: str, other: str) -> bool:
    """Compare names of labels as GitHub does: without regard to case."""
    return one.casefold() == other.casefold()


class Issue(FrozenModel):
    """An issue as the forge has it now. Title and body are text of strangers."""

    number: int
    title: str
    body: str = ""
    author: str = ""
    """Login. Empty: the account was deleted."""
    association: str = "NONE"
    """Relation of the author to the repository, such as `OWNER` or `CONTRIBUTOR`."""
    labels: tuple[str, ...] = ()
    is_open: bool = True
    is_locked: bool = False
    updated_at: UtcDatetime

    def has_label(self, name: str) -> bool:
        return any(is_same_label(label, name) for label in self.labels)

    @property
    def digest(self) -> str:
        """SHA-256 of title and body. Comments and labels do not change it."""
        text = f"{self.title}\0{self.body}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()


class TrackerComment(FrozenModel):
    """A comment on an issue. The body is text of strangers."""

    id: int
    author: str = ""
    association: str = "NONE"
    body: str = ""
    updated_at: UtcDatetime | None = None
    """By the forge's clock."""


class LabelEvent(FrozenModel):
    """Account that put a label on an issue, and the time of it."""

    actor: str = ""
    """Login. Empty: the account was deleted."""
    at: UtcDatetime


def check_passed(result: Mapping[str, Json]) -> bool:
    """True for exit code 0, unless it was a test run without a single test: that proves nothing."""
    return result.get("exit_code") == 0 and not result.get("ran_no_tests")


def check_ending(result: Mapping[str, Json]) -> str:
    """Describe a check's end in a few words: `exit 0`, `exit 0, ran 0 tests`, `exit 1 (before this work: exit 1)`."""
    before = f" (before this work: {result['before']})" if result.get("before") else ""
    return f"{_ending(result)}{before}"


def _ending(result: Mapping[str, Json]) -> str:
    if result.get("timed_out"):
        return "timed out"
    code = result.get("exit_code")
    if code is None:
        return "was killed"
    return f"exit {code}, ran 0 tests" if result.get("ran_no_tests") else f"exit {code}"
