"""The forge: asking about the remote, pushing one branch, opening a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.forging import Preflight, PullRequest, PullRequestWish, RemoteBase


class Forge(Protocol):
    """A repository's remote, or what stands in for it."""

    async def preflight(self, repository: str, base: str) -> Preflight:
        """Look whether the remote's base branch is protected. Never raises for what is found out there."""
        ...

    async def fetch_base(self, repository: str, base: str) -> RemoteBase:
        """Bring the commits of the remote's base branch into the repository; no branch and no checkout is moved.

        Never raises for a remote that cannot be asked: `why_not` says so.
        """
        ...

    async def deliver(self, wish: PullRequestWish) -> PullRequest:
        """Push the one branch and open a pull request, or write the local equivalent.

        Looks at the remote's base branch right before the push. One with commits that the branch does not contain
        is answered by `moved_base`, and nothing is pushed.

        May be asked again after a crash: what is there already is found, not made twice. Raises
        `NotPossibleNow` when the remote refuses, `RateLimited`, or `Passing` errors that a later try may not meet.
        """
        ...
