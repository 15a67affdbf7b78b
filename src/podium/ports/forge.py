"""The forge: asking about the remote, pushing one branch, opening a pull request."""

from __future__ import annotations

from typing import Protocol

from podium.domain.forging import Preflight, PullRequest, PullRequestWish


class Forge(Protocol):
    """A repository's remote, or what stands in for it."""

    async def preflight(self, repository: str, base: str) -> Preflight:
        """Look whether the remote's base branch is protected. Never raises for what is found out there."""
        ...

    async def deliver(self, wish: PullRequestWish) -> PullRequest:
        """Push the one branch and open a pull request, or write the local equivalent.

        May be asked again after a crash: what is there already is found, not made twice. Raises
        `NotPossibleNow` when the remote refuses, `RateLimited`, or `Passing` errors that a later try may not meet.
        """
        ...
