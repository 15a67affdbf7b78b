"""Forge of tasks of a batch: what is meant for an integration branch stays in the user's repository."""

from __future__ import annotations

from collections.abc import Sequence

from podium.core.forge import (
    CommentAnswer,
    FailedCheck,
    PostedAnswer,
    Preflight,
    PullQuery,
    PullRequest,
    PullRequestDraft,
    PullStatus,
    RemoteBase,
)
from podium.ports import Forge, IssueTracker

BATCH_BRANCHES = "podium/batch/"
"""Branches that finished tasks are merged into. They are local: no remote is asked about them."""


class BatchForge:
    """Asks the forge about all branches but those that a batch merges its tasks into."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge

    async def preflight(self, repository: str, base: str) -> Preflight:
        if not _is_local(base):
            return await self._forge.preflight(repository, base)
        return Preflight(
            finding="no_remote",
            sentence=f"The branch is merged into {base!r} when it is done.",
            base=base,
        )

    async def fetch_base(self, repository: str, base: str) -> RemoteBase:
        return RemoteBase() if _is_local(base) else await self._forge.fetch_base(repository, base)

    async def deliver(self, draft: PullRequestDraft) -> PullRequest:
        if _is_local(draft.base):
            return PullRequest(why_local=f"{draft.base} takes it in")
        return await self._forge.deliver(draft)

    async def fetch_branch(
        self, repository: str, base: str, branch: str, *, holding: str = ""
    ) -> RemoteBase:
        return await self._forge.fetch_branch(repository, base, branch, holding=holding)

    async def pull_status(self, query: PullQuery) -> PullStatus:
        return await self._forge.pull_status(query)

    async def check_excerpts(
        self, query: PullQuery, checks: Sequence[FailedCheck], head: str
    ) -> Sequence[FailedCheck]:
        return await self._forge.check_excerpts(query, checks, head)

    async def answer_comment(self, answer: CommentAnswer) -> PostedAnswer:
        return await self._forge.answer_comment(answer)

    async def issues(self, repository: str, base: str) -> IssueTracker:
        return await self._forge.issues(repository, base)


def _is_local(base: str) -> bool:
    return base.startswith(BATCH_BRANCHES)
