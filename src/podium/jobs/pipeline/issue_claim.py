"""Work of one run on its issue at the forge: the claim that it keeps, and the comments about it.

GitHub has no compare-and-swap. Whoever wants an issue writes a comment; the oldest one that stands decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from podium.core.errors import NotPossibleNow, Passing, PodiumError
from podium.core.forge import Issue
from podium.jobs.pipeline.issue import (
    ClaimComment,
    IssueClaim,
    Outcome,
    PinnedIssue,
    Trust,
    claims_in,
    own_login,
    result_marker,
    valid_claim,
)
from podium.jobs.pipeline.spec import IntakeOptions
from podium.ports import Clock, IssueTracker

_FRESH = timedelta(minutes=1)
_WAITING_LEASE = timedelta(days=7)
"""Lease of a run that waits for a person, whose process may be gone meanwhile."""


class IssueWorkFactory(Protocol):
    """Gives the work of a run on an issue. Raises `NotPossibleNow` where the project has no issues to read."""

    def __call__(
        self, repository: str, base: str, number: int, run_id: str, login: str
    ) -> Awaitable[IssueWork]: ...


@dataclass(frozen=True)
class IssueWork:
    """One run's work on one issue."""

    tracker: IssueTracker
    number: int
    run_id: str
    worker: str
    options: IntakeOptions
    clock: Clock
    login: str = ""
    """Account that wrote the claim, once that is known."""

    @property
    def trust(self) -> Trust:
        return Trust(associations=self.options.authors, users=self.options.users)

    async def claims(self) -> list[ClaimComment]:
        return claims_in(await self.tracker.comments(self.number))

    def _claim(self, lease: timedelta) -> IssueClaim:
        return IssueClaim(run=self.run_id, worker=self.worker, until=self.clock.now() + lease)

    @property
    def _lease(self) -> timedelta:
        return timedelta(minutes=self.options.lease_minutes)

    async def post(self) -> ClaimComment:
        """Write a claim. Whether it is the one that counts is to be looked up afterwards."""
        claim = self._claim(self._lease)
        comment = await self.tracker.comment(self.number, claim.comment)
        return ClaimComment(
            id=comment.id, author=comment.author, association=comment.association, claim=claim
        )

    def own(self, claims: list[ClaimComment], login: str = "") -> ClaimComment | None:
        """The newest claim of this run that Podium's own account wrote. Anybody can copy it, once it is published."""
        own = [claim for claim in claims if claim.claim.run == self.run_id]
        known = login or self.login
        if known not in {claim.author for claim in own}:
            known = own_login(own, {self.run_id})
        return next((claim for claim in reversed(own) if claim.author == known), None)

    async def renew(self, *, waits: bool = False) -> str:
        """Keep the claim. Gives the reason why this run must not go on; empty: it may.

        A claim whose lease has ended is never prolonged: another worker may have seen that already. A new one is
        written, which then has to be the oldest.
        """
        claims = await self.claims()
        mine, now = self.own(claims), self.clock.now()
        trust = self.trust.model_copy(update={"own": mine.author if mine else ""})
        other = valid_claim(claims, trust, now, besides={self.run_id})
        if mine is not None and mine.claim.state == "done":
            return ""
        if mine is None or mine.claim.until <= now:
            if other is not None:
                return _taken(other)
            return await self._claim_anew(mine)
        if other is not None and other.id < mine.id:
            return _taken(other)
        lease = _WAITING_LEASE if waits else self._lease
        if mine.claim.until - now < lease * 2 / 3:
            await self.tracker.edit_comment(mine.id, self._claim(lease).comment)
        return ""

    async def _claim_anew(self, ended: ClaimComment | None) -> str:
        posted = await self.post()
        claims = await self.claims()
        trust = self.trust.model_copy(update={"own": posted.author})
        winner = valid_claim(claims, trust, self.clock.now())
        if winner is not None and winner.claim.run != self.run_id:
            await self.tracker.delete_comment(posted.id)
            return _taken(winner)
        if ended is not None:
            await self.tracker.delete_comment(ended.id)
        return ""

    async def report(
        self, issue: PinnedIssue, text: str, outcome: Outcome, detail: str = ""
    ) -> bool:
        """Write a comment once, however often this is asked. False: it was there already."""
        marker = result_marker(issue, self.run_id, outcome, detail)
        comments = await self.tracker.comments(self.number)
        if any(comment.body.startswith(marker) for comment in comments):
            return False
        await self.tracker.comment(self.number, f"{marker}\n{text}")
        return True

    async def release(self, issue: Issue) -> None:
        """End the claim for good, and take the labels off. The claimed label goes last: until then this is done again."""
        mine = self.own(await self.claims())
        if mine is not None and mine.claim.state != "done":
            done = mine.claim.model_copy(update={"state": "done", "until": self.clock.now()})
            await self.tracker.edit_comment(mine.id, done.comment)
        options = self.options
        for label in (options.label, options.stop_label, options.claimed_label):
            if issue.has_label(label):
                await self.tracker.remove_label(self.number, label)

    async def finish(self, issue: PinnedIssue, text: str, outcome: Outcome) -> None:
        """Report the end and release the issue. May be asked again after a crash."""
        await self.report(issue, text, outcome)
        if issue.is_claimed:
            current = await self.tracker.issue(self.number)
            await self.release(current)


def _taken(claim: ClaimComment) -> str:
    return f"worker {claim.claim.worker!r} works on the issue now, in run {claim.claim.run!r}"


def is_edited(issue: PinnedIssue, current: Issue) -> bool:
    return issue.digest != current.digest


class ClaimKeeper:
    """Keeps the claim of a run while its flow runs in this process."""

    def __init__(self, work: IssueWork | None) -> None:
        """None: there is nothing to keep."""
        self._work = work
        self._lost = ""
        self._looked_at: datetime | None = None

    async def look(self) -> None:
        """Renew the claim where the forge answers; an outage alone ends no run."""
        if self._work is not None and not self._lost:
            self._looked_at = self._work.clock.now()
            with suppress(Passing):
                self._lost = await self._work.renew()

    async def confirm(self) -> None:
        """Look again after a minute: the machine may have slept. Raises `NotPossibleNow` where another worker has the issue."""
        if self._work is not None and (
            self._looked_at is None or self._work.clock.now() - self._looked_at > _FRESH
        ):
            await self.look()
        if self._lost:
            raise NotPossibleNow(
                f"this run lost its issue: {self._lost}; see `podium intake --dry-run`"
            )

    def end(self) -> None:
        """Keep nothing from here on: the branch is delivered, and its report has ended the claim."""
        self._work = None

    async def keep(self, pause_seconds: float) -> None:
        while True:
            await asyncio.sleep(pause_seconds)
            with suppress(PodiumError):
                await self.look()


@asynccontextmanager
async def kept_claim(work: IssueWork | None) -> AsyncIterator[ClaimKeeper]:
    """Confirm the claim, and renew it in the background until the block ends. Raises `NotPossibleNow` where it is lost."""
    keeper = ClaimKeeper(work)
    if work is None:
        yield keeper
        return
    await keeper.confirm()
    pause_seconds = work.options.lease_minutes * 60 / 3
    task = asyncio.create_task(
        keeper.keep(pause_seconds), name="podium pipeline: claim on an issue"
    )
    try:
        yield keeper
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def pinned(tracker: IssueTracker, issue: Issue, *, nonce: str, claimed_by: str = "") -> PinnedIssue:
    """The issue as it is now. With the account that claimed it, the run has to keep the claim."""
    return PinnedIssue(
        host=tracker.host,
        repository=tracker.repository,
        number=issue.number,
        url=tracker.issue_url(issue.number),
        author=issue.author,
        association=issue.association,
        updated_at=issue.updated_at,
        digest=issue.digest,
        nonce=nonce,
        is_claimed=bool(claimed_by),
        claimed_by=claimed_by,
    )
