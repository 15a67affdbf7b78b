"""A workspace in a git repository, as the port has it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from podium.core.errors import NotPossibleNow
from podium.core.processes import Confinement
from podium.core.workspaces import (
    Delivery,
    MergeResult,
    RepositoryRefs,
    TurnEnd,
    WorkspaceCommit,
    WorkspaceRecord,
    WorktreeSnapshot,
    WorktreeStatus,
)
from podium.git.commit_scan import Find
from podium.git.delivery import Deliveries
from podium.git.git_command import Git
from podium.git.guarded_changes import Guarded, none_more
from podium.git.layout import confinement_of, put_pointer_back
from podium.git.own_commits import Committer, Merger
from podium.git.records import WorkspaceRecords
from podium.git.snapshots import Snapshots
from podium.git.supervisor_repo import SupervisorRepo, clear_ignored_in, ignored_in, tracked_in
from podium.git.turns import TurnBoundary
from podium.git.workspace_reset import BranchReset, WorkspaceReset, is_within, restore
from podium.git.worktree_files import check_paths, read_text, write_files
from podium.git.worktree_status import commit_named, diff_since, history_since, state_of
from podium.ports.engine import Clock


class GitWorkspace:
    """A worktree with a branch of its own; see `Workspace`.

    Its lock is held from the beginning of a turn to its end, and while anything else is done with it.
    """

    def __init__(
        self,
        git: Git,
        records: WorkspaceRecords,
        clock: Clock,
        record: WorkspaceRecord,
        *,
        confined: bool,
        secrets_in: Find,
        guarded: Guarded = none_more,
    ) -> None:
        self._git = git
        self._records = records
        self._record = record
        self._clock = clock
        self._confined = confined
        self._secrets_in = secrets_in
        self._guarded = guarded
        self._supervisor_repo = SupervisorRepo(git, record, confined=confined)
        self._turns = TurnBoundary(git, records, clock, record, confined=confined)
        self._snapshots = Snapshots(git, records, clock, confined=confined)
        self._held: ExitStack | None = None

    @property
    def record(self) -> WorkspaceRecord:
        return self._record

    async def confinement(self) -> Confinement:
        with self._errors_explained():
            return await asyncio.to_thread(confinement_of, self._record)

    async def begin_turn(self) -> RepositoryRefs:
        """Raises `LockHeld` while somebody else is at work here."""
        with ExitStack() as lock, self._errors_explained():
            if self._held is None:
                lock.enter_context(self._records.workspace_lock(self._record.id))
            refs = await self._turns.begin()
            # Only now: a turn that did not begin holds nothing.
            self._held = self._held or lock.pop_all()
        return refs

    async def end_turn(self, at_start: RepositoryRefs) -> TurnEnd:
        """Raises `WorkspaceTampered`, with everything else done, when something stands where it must not."""
        try:
            with self._at_work():
                return await self._turns.end(at_start)
        finally:
            if self._held is not None:
                self._held.close()
                self._held = None

    async def deliver(self, approved: str = "") -> Delivery:
        with self._at_work():
            await asyncio.to_thread(put_pointer_back, self._record)
            confinement = await self.confinement() if self._confined else None
            return await Deliveries(self._git, self._records, self._guarded).deliver(
                self._record, confinement, self._secrets_in, approved
            )

    async def delivered(self) -> str:
        return await Deliveries(self._git, self._records).delivered(self._record)

    async def snapshot(self, why: str) -> WorktreeSnapshot:
        with self._at_work():
            return await self._snapshots.take(self._record, why)

    async def restore(self, snapshot: WorktreeSnapshot) -> None:
        with self._at_work():
            await restore(self._git, self._snapshots, self._record, snapshot)

    async def state(self) -> WorktreeStatus:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            return await state_of(self._supervisor_repo, self._record)

    async def read(self, path: str, most_bytes: int = 1_000_000) -> str | None:
        check_paths([path], self._record.forbidden)
        with self._at_work():
            return await asyncio.to_thread(read_text, Path(self._record.path), path, most_bytes)

    async def write(self, files: Mapping[str, str]) -> None:
        check_paths(list(files), self._record.forbidden)
        contents = {path: text.encode(errors="replace") for path, text in files.items()}
        with self._at_work():
            await asyncio.to_thread(write_files, Path(self._record.path), contents)

    async def commit(
        self,
        message: str,
        paths: Sequence[str],
        *,
        moved: Mapping[str, str] | None = None,
        trailers: Mapping[str, str] | None = None,
    ) -> str:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            committing = Committer(self._git, self._supervisor_repo, self._record, self._clock)
            return await committing.commit(message, paths, moved or {}, trailers or {})

    async def tracked(self, *patterns: str) -> list[str]:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            return await tracked_in(self._supervisor_repo, patterns)

    async def ignored(self) -> list[str]:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            return await ignored_in(self._supervisor_repo)

    async def clear_ignored(self, keep: Sequence[str], keep_names: Sequence[str] = ()) -> list[str]:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            own = (*keep, *self._record.copied)
            return await clear_ignored_in(self._supervisor_repo, own, keep_names)

    async def was_committed(self, trailers: Mapping[str, str]) -> bool:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            committing = Committer(self._git, self._supervisor_repo, self._record, self._clock)
            return await committing.was_made(trailers)

    async def history(self, since: str) -> list[WorkspaceCommit]:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            commit = await commit_named(self._git, self._record, since)
            return await history_since(self._supervisor_repo, self._record, commit)

    async def diff(self, since: str, most_bytes: int = 10_000_000) -> str:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            commit = await commit_named(self._git, self._record, since)
            return await diff_since(self._supervisor_repo, self._record, commit, most_bytes)

    async def merge(
        self, other: str, message: str, trailers: Mapping[str, str], *, trusted: bool = False
    ) -> MergeResult:
        async def put_back(commit: str) -> None:
            await self._resetting.reset(commit, "a merge that was cut off", ())

        with self._at_work():
            await self._supervisor_repo.sit_down()
            merging = Merger(self._git, self._supervisor_repo, self._record, self._clock, put_back)
            return await merging.merge(other, message, trailers, trusted=trusted)

    async def reset(self, commit: str, why: str, *, keep: Sequence[str] = ()) -> list[str]:
        with self._at_work():
            target = await commit_named(self._git, self._record, commit)
            return await self._resetting.reset(target, why, keep)

    async def holds(self, commit: str) -> bool:
        return await is_within(self._git, self._record, commit, await self.delivered())

    async def stand_at(
        self, commit: str, why: str, *, tip: str = "", keep: Sequence[str] = ()
    ) -> WorktreeSnapshot | None:
        with self._at_work():
            going = BranchReset(self._git, self._records, self._snapshots, self._resetting)
            return await going.stand_at(self._record, commit, why, tip or commit, keep)

    @property
    def _resetting(self) -> WorkspaceReset:
        return WorkspaceReset(self._git, self._supervisor_repo, self._snapshots, self._record)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with ExitStack() as lock, self._errors_explained():
            if self._held is None:
                lock.enter_context(self._records.workspace_lock(self._record.id))
            yield

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        """Turn errors of the operating system into `NotPossibleNow`."""
        try:
            yield
        except OSError as error:
            raise NotPossibleNow(
                f"workspace {self._record.task!r} cannot be worked with: {error.strerror} "
                f"({error.filename!r}); mend that, then try again"
            ) from error
