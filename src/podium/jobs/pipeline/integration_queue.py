"""Integration queue: finished branches are merged one after the other, each verified on top of those before it."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.checks import CheckResult, red_alike
from podium.core.errors import BadInput, ImportRefused, NotPossibleNow
from podium.core.model import FrozenModel
from podium.core.workspaces import MergeResult
from podium.jobs.pipeline.branch_documents import bring_back, clean_start
from podium.jobs.pipeline.state import DEPENDENCIES, StageContext, approved_step
from podium.ports import StepContext


class FinishedBranch(FrozenModel):
    """A branch that waits for its turn."""

    number: int
    """Of its task."""
    title: str
    branch: str
    commit: str


class MergedBranch(FrozenModel):
    """A branch that was merged, and the merge."""

    number: int
    commit: str
    verified: bool = True
    """False: there was no check to run."""


class RefusedBranch(FrozenModel):
    """A branch that was left out, and why."""

    number: int
    why: str
    paths: tuple[str, ...] = ()
    """Files in conflict. Empty: it merges, and the checks fail with it."""


class Integration(FrozenModel):
    """One turn of the queue."""

    head: str
    merged: tuple[MergedBranch, ...] = ()
    refused: tuple[RefusedBranch, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    """Of the commit that was accepted."""


async def integrate(
    context: StageContext, branches: Sequence[FinishedBranch], index: int
) -> Integration:
    """Merge branches in their order and run the checks on the result; one step, done whole or not at all.

    Where the checks fail, the first branch that makes them fail is searched by bisection and left out. Branches
    behind it are neither merged nor refused: they come with the next turn.
    """

    async def work(step: StepContext) -> Integration:
        start = await clean_start(context, "before the next merge")
        queue = _Queue(context, start)
        fitting, refused = await queue.without_conflicts(branches)
        accepted, checks, culprit = await queue.verified(fitting)
        if culprit is not None:
            refused = [*refused, culprit]
        merged = await queue.merge(accepted)
        if merged:
            await bring_back(context, f"integrate-{index}")
        head = await context.state.workspace.delivered()
        verified = bool(context.checks)
        return Integration(
            head=head,
            merged=tuple(
                MergedBranch(number=branch.number, commit=commit, verified=verified)
                for branch, commit in zip(accepted, merged, strict=True)
            ),
            refused=tuple(refused),
            checks=tuple(checks),
        )

    result: Integration = await approved_step(
        context, "merge:tasks", work, index=index, returns=Integration
    )
    return result


class _Queue:
    """The work tree of the integration branch during one turn."""

    def __init__(self, context: StageContext, start: str) -> None:
        self._context = context
        self._workspace = context.state.workspace
        self._start = start
        self._red_before: dict[str, CheckResult] = {}
        """How a check that failed with the branches ended without them, by its command."""
        self._tip: tuple[FinishedBranch, ...] | None = None
        """The branches that the work tree holds now."""
        self._commits: list[str] = []

    async def without_conflicts(
        self, branches: Sequence[FinishedBranch]
    ) -> tuple[list[FinishedBranch], list[RefusedBranch]]:
        """Branches that can be merged one after the other, and those that conflict with what is merged before."""
        fitting: list[FinishedBranch] = []
        refused: list[RefusedBranch] = []
        commits: list[str] = []
        for branch in branches:
            tip = commits[-1] if commits else self._start
            try:
                merge = await self._merge(branch)
            except (BadInput, NotPossibleNow, ImportRefused) as error:
                refused.append(RefusedBranch(number=branch.number, why=str(error)))
                await self._workspace.reset(tip, "a merge that was refused")
                continue
            if merge.conflicts:
                why = f"conflicts in {', '.join(merge.conflicts[:10])}"
                refused.append(
                    RefusedBranch(number=branch.number, why=why, paths=merge.conflicts[:50])
                )
                await self._workspace.reset(tip, "a merge with conflicts")
                continue
            fitting.append(branch)
            commits.append(merge.commit)
        self._tip, self._commits = tuple(fitting), commits
        return fitting, refused

    async def merge(self, branches: Sequence[FinishedBranch]) -> list[str]:
        """Let the work tree hold just these branches on top of the start; give the commit of each merge."""
        if self._tip != tuple(branches):
            await self._workspace.reset(self._start, "to merge other branches")
            self._commits = [(await self._merge(branch)).commit for branch in branches]
            self._tip = tuple(branches)
        return self._commits

    async def verified(
        self, branches: Sequence[FinishedBranch]
    ) -> tuple[Sequence[FinishedBranch], Sequence[CheckResult], RefusedBranch | None]:
        """The longest beginning of the branches that passes, its checks, and the branch that fails on top of it."""
        if not branches:
            return (), (), None
        green, checks = 0, await self._run(branches)
        red, failed = len(branches), await self.failed(checks)
        if not failed:
            return branches, checks, None
        accepted: Sequence[CheckResult] = ()
        while red - green > 1:
            middle = (green + red) // 2
            tried = await self._run(branches[:middle])
            if found := await self.failed(tried):
                red, failed = middle, found
            else:
                green, accepted = middle, tried
        culprit = branches[red - 1]
        return (
            branches[:green],
            accepted,
            RefusedBranch(number=culprit.number, why=_why_red(failed)),
        )

    async def _run(self, branches: Sequence[FinishedBranch]) -> list[CheckResult]:
        commits = await self.merge(branches)
        return await self.run_checks(commits[-1])

    async def run_checks(
        self, commit: str, only: frozenset[str] = frozenset()
    ) -> list[CheckResult]:
        context, workspace = self._context, self._workspace
        # A commit is judged as whoever clones it would see it, with what it depends on.
        await workspace.clear_ignored(context.baseline.ignored, DEPENDENCIES)
        seconds = context.state.job.spec.check_seconds
        results = [
            await context.deps.run_check(workspace, check, seconds)
            for check in context.checks
            if not only or check.command in only
        ]
        await workspace.reset(commit, "changes left by the checks")
        return results

    async def failed(self, results: Sequence[CheckResult]) -> list[CheckResult]:
        """Checks that the branches answer for: not those that fail in the same way without any of them."""
        red = [result for result in results if not result.passed]
        fresh = frozenset(result.command for result in red) - self._red_before.keys()
        if fresh:
            await self._workspace.reset(self._start, "to run the checks without the tasks")
            self._tip = None
            before = await self.run_checks(self._start, fresh)
            self._red_before |= {result.command: result for result in before}
        return [result for result in red if not red_alike(self._red_before[result.command], result)]

    async def _merge(self, branch: FinishedBranch) -> MergeResult:
        message = f"Merge task {branch.number}: {branch.title}\n\nBranch: {branch.branch}"
        trailers = self._context.trailers(f"merge-task-{branch.number}")
        return await self._workspace.merge(branch.commit, message, trailers)


_TAIL_CHARACTERS = 1_000


def _why_red(failed: Sequence[CheckResult]) -> str:
    result = failed[0]
    tail = result.tail[-_TAIL_CHARACTERS:].strip()
    return f"`{result.command}` fails on top of the tasks merged before" + (
        f":\n{tail}" if tail else ""
    )


class RemoteMerge(FrozenModel):
    """The remote's base branch in the integration branch, or why it is not."""

    head: str
    why_not: str = ""
    name: str = ""


async def merge_remote_base(context: StageContext, index: int) -> RemoteMerge:
    """Merge what the remote's base branch has got meanwhile, and verify it."""

    async def work(step: StepContext) -> RemoteMerge:
        state, workspace = context.state, context.state.workspace
        start = await clean_start(context, "before merging the base")
        remote = await context.deps.forge.fetch_base(state.job.repository, state.job.base)
        name = remote.name or state.job.base
        if not remote.commit or await workspace.holds(remote.commit):
            return RemoteMerge(head=start, name=name)
        queue = _Queue(context, start)
        trailers = context.trailers(f"merge-base-{index}")
        message = f"Merge {name} into {state.branch}"
        try:
            merge = await workspace.merge(remote.commit, message, trailers, trusted=True)
        except (BadInput, NotPossibleNow, ImportRefused) as error:
            return RemoteMerge(head=start, why_not=str(error), name=name)
        if merge.conflicts:
            why_not = f"{name} has new commits that conflict in {', '.join(merge.conflicts[:10])}"
        else:
            failed = await queue.failed(await queue.run_checks(merge.commit))
            why_not = f"the checks fail on top of {name}: {_why_red(failed)}" if failed else ""
            # To compare, the work tree may have been put back. A merge that is there is not made twice.
            await workspace.merge(remote.commit, message, trailers, trusted=True)
        if why_not:
            await workspace.reset(start, "a base that cannot be merged")
            return RemoteMerge(head=start, why_not=why_not, name=name)
        filed = await bring_back(context, f"merge-base-{index}")
        return RemoteMerge(head=filed.head, name=name)

    merged: RemoteMerge = await approved_step(
        context, "merge:base", work, index=index, returns=RemoteMerge
    )
    return merged
