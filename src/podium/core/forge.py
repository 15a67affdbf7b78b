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
