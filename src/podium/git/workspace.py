"""A workspace in a git repository, as the port has it, and the two ends of an agent's turn in it.

The user's repository is compared before and after a turn. Under the kernel's confinement the agent cannot have changed
anything there, so a change is the user's own: it is reported and stays. Without confinement nobody can know who it was,
so everything is put back, and what was there instead is kept."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from podium.core.errors import NotPossibleNow, WorkspaceTampered
from podium.core.processes import Confinement
from podium.core.workspaces import (
    Delivery,
    MergeResult,
    RepositoryRefs,
    SquashedBranch,
    SquashSpec,
    TreeComparison,
    TurnEnd,
    Violation,
    WorkspaceCommit,
    WorkspaceRecord,
    WorktreeSnapshot,
    WorktreeStatus,
)
from podium.git.branch_squash import BranchSquash, SquashMessage
from podium.git.commit_scan import Find
from podium.git.delivery import Deliveries
from podium.git.git_command import OWN_REFS, Git, GitFailed, no_object
from podium.git.guarded_changes import Guarded, none_more
from podium.git.layout import confinement_of, put_pointer_back, tidy
from podium.git.own_commits import Committer, Merger
from podium.git.planted import moved, moved_since
from podium.git.private_dir import mend_private_dir, read_plain
from podium.git.records import WorkspaceRecords
from podium.git.snapshots import Snapshots
from podium.git.supervisor_repo import SupervisorRepo, clear_ignored_in, ignored_in, tracked_in
from podium.git.workspace_reset import BranchReset, WorkspaceReset, is_within, restore
from podium.git.worktree_files import check_paths, read_text, write_files
from podium.git.worktree_status import (
    commit_named,
    compare_trees,
    diff_since,
    history_since,
    read_blobs,
    state_of,
)
from podium.platform import make_private_folder
from podium.ports.engine import Clock

_MAX_BYTES_SIZE = 20_000_000
_FILES = ("config", "config.worktree", "shallow", "objects/info/alternates")
_FOLDERS = ("hooks", "info")
_OF_WORKTREE = ("gitdir", "commondir", "config.worktree", "locked")


async def look(git: Git, record: WorkspaceRecord) -> RepositoryRefs:
    """All refs and HEADs, and digests of what decides how the user's git behaves."""
    heads, files = heads_of(record), files_of(record)
    return RepositoryRefs(refs={**await refs_of(git, record), **heads}, files=files)


async def refs_of(git: Git, record: WorkspaceRecord) -> dict[str, str]:
    """Every ref's object, or the other ref it stands for."""
    form = "--format=%(refname) %(if)%(symref)%(then)ref: %(symref)%(else)%(objectname)%(end)"
    text = await git.text("for-each-ref", form, git_dir=record.git_dir)
    return dict(line.split(" ", 1) for line in text.splitlines())


def files_of(record: WorkspaceRecord) -> dict[str, str]:
    git_dir = Path(record.git_dir)
    return {str(path.relative_to(git_dir)): _digest(path) for path in watched_files(git_dir)}


def heads_of(record: WorkspaceRecord) -> dict[str, str]:
    """HEAD of every worktree by its path in the git directory."""
    git_dir = Path(record.git_dir)
    folders = [git_dir, *_entries(git_dir / "worktrees")]
    heads = {str((folder / "HEAD").relative_to(git_dir)): _head(folder) for folder in folders}
    return {name: head for name, head in heads.items() if head}


def watched_files(git_dir: Path) -> Iterator[Path]:
    """Files that are there of those an agent must leave alone."""
    yield from (git_dir / name for name in _FILES if os.path.lexists(git_dir / name))
    for folder in _FOLDERS:
        yield from _entries(git_dir / folder)
    for worktree in _entries(git_dir / "worktrees"):
        yield from (worktree / name for name in _OF_WORKTREE if os.path.lexists(worktree / name))


def _head(folder: Path) -> str:
    return read_plain(folder / "HEAD", 5000).decode(errors="replace").strip()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return "folder"
    mode = "x" if os.access(path, os.X_OK) else "-"
    return f"{mode}{hashlib.sha256(read_plain(path, _MAX_BYTES_SIZE)).hexdigest()}"


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Names whose value is not what it was, in order."""
    return sorted(name for name in {*before, *after} if before.get(name, "") != after.get(name, ""))


def is_podiums_own(name: str, before: RepositoryRefs) -> bool:
    """Refs that Podium adds for itself: snapshots of any workspace."""
    return name.startswith(OWN_REFS) and name not in before.refs


async def put_back_ref(
    git: Git, git_dir: str, name: str, before: str, after: str, folder: str
) -> None:
    """Move a ref back by compare and swap; a commit it stood for is kept under `folder`."""
    if after and not after.startswith("ref: "):
        backup = f"{folder}/{name.removeprefix('refs/')}"
        await git.move_ref(backup, after, no_object(after), git_dir, "podium: found after a turn")
    if before.startswith("ref: "):
        await git.run("symbolic-ref", name, before.removeprefix("ref: "), git_dir=git_dir)
    elif before:
        old = no_object(before) if not after or after.startswith("ref: ") else after
        await git.run(
            "update-ref", "--no-deref", "-m", "podium: put back", name, before, old, git_dir=git_dir
        )
    else:
        await git.run("update-ref", "--no-deref", "-d", name, git_dir=git_dir)


def put_back_file(git_dir: Path, before: Path, after: Path, name: str) -> None:
    """Put the copy from before the turn in its place; what is there now is kept under `after`."""
    path, copy, backup = git_dir / name, before / name, after / name
    if os.path.lexists(path):
        make_private_folder(backup.parent)
        if os.path.lexists(backup):
            backup.unlink()
        shutil.move(path, backup)
    if os.path.lexists(copy):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(copy, path, follow_symlinks=False)


_COPIES = "turn"
_MAX_COPY_BYTES = 20_000_000


class TurnBoundary:
    """The two ends of an agent's turn in one workspace."""

    def __init__(
        self,
        git: Git,
        records: WorkspaceRecords,
        clock: Clock,
        record: WorkspaceRecord,
        *,
        confined: bool,
    ) -> None:
        self._git = git
        self._records = records
        self._clock = clock
        self._record = record
        self._confined = confined
        self._moved_before: int | None = None

    async def begin(self) -> RepositoryRefs:
        self._moved_before = await asyncio.to_thread(moved, Path(self._record.private))
        if not self._confined:
            await asyncio.to_thread(self._copy_files)
        return await look(self._git, self._record)

    async def end(self, at_start: RepositoryRefs) -> TurnEnd:
        """Only when all processes of the agent are dead.

        Files go back before git is asked for anything: with broken settings it would not answer.
        """
        await asyncio.to_thread(mend_private_dir, self._record)
        before = await asyncio.to_thread(self._pointer_back)
        others = await asyncio.to_thread(self._others)
        files, heads = await asyncio.to_thread(self._files_and_heads)
        changed = [name for name in differences(at_start.files, files) if not _is_in(name, others)]
        changed += [
            name
            for name in differences(_heads(at_start.refs), heads)
            if heads.get(name) != others.get(name)
        ]
        violations: list[Violation] = []
        if not self._confined:
            was, now = {**at_start.files, **_heads(at_start.refs)}, {**files, **heads}
            violations = [
                await asyncio.to_thread(self._file_back, name, was, now) for name in changed
            ]
        refs = await self._refs()
        moved_refs = [
            name
            for name in differences(_others_than_heads(at_start.refs), refs)
            if not is_podiums_own(name, at_start) and refs.get(name, "") != others.get(name)
        ]
        if not self._confined:
            violations += [await self._ref_back(ref, at_start.refs, refs) for ref in moved_refs]
        # What may raise comes last, so that nothing an agent leaves behind keeps the rest from being done.
        await tidy(self._git, self._record)
        await asyncio.to_thread(confinement_of, self._record)
        labels = [_label(name) for name in (*moved_refs, *changed)] if self._confined else []
        return TurnEnd(
            violations=tuple(violations),
            moved_away=await asyncio.to_thread(moved_since, Path(self._record.private), before),
            changed_meanwhile=tuple(labels),
            seen=RepositoryRefs(refs={**refs, **heads}, files=files),
        )

    def _pointer_back(self) -> int:
        """Restore the worktree's pointer; return the count of things moved away before the turn."""
        before = self._moved_before
        if before is None:
            before = moved(Path(self._record.private))
        # Before anything else, and again at the end: then the error says why it cannot be restored.
        with suppress(WorkspaceTampered, OSError):
            put_pointer_back(self._record)
        return before

    def _files_and_heads(self) -> tuple[dict[str, str], dict[str, str]]:
        return files_of(self._record), heads_of(self._record)

    async def _refs(self) -> dict[str, str]:
        try:
            return await refs_of(self._git, self._record)
        except GitFailed as failed:
            copies = Path(self._record.private, _COPIES, "before")
            raise WorkspaceTampered(
                f"git can no longer read the refs of {self._record.git_dir!r}: {failed.stderr[-300:]}; copies from "
                f"before the turn, made only without confinement, are in {str(copies)!r}"
            ) from failed

    async def _ref_back(self, name: str, was: dict[str, str], now: dict[str, str]) -> Violation:
        before, after = was.get(name, ""), now.get(name, "")
        folder = f"refs/podium/violations/{self._record.id}/{int(self._clock.now().timestamp())}"
        try:
            await put_back_ref(self._git, self._record.git_dir, name, before, after, folder)
            restored = True
        except NotPossibleNow:
            restored = False
        return Violation(what=_label(name), before=before, after=after, restored=restored)

    def _file_back(self, name: str, was: dict[str, str], now: dict[str, str]) -> Violation:
        private = Path(self._record.private, _COPIES)
        try:
            put_back_file(Path(self._record.git_dir), private / "before", private / "after", name)
            restored = True
        except OSError:
            restored = False
        before, after = was.get(name, ""), now.get(name, "")
        return Violation(what=_label(name), before=before, after=after, restored=restored)

    def _copy_files(self) -> None:
        """Copy the files that may have to be restored after the turn."""
        git_dir, copies = Path(self._record.git_dir), Path(self._record.private, _COPIES, "before")
        shutil.rmtree(copies, ignore_errors=True)
        for path in (
            *watched_files(git_dir),
            *(git_dir / name for name in (*heads_of(self._record), "packed-refs")),
        ):
            if path.is_symlink() or (path.is_file() and path.stat().st_size <= _MAX_COPY_BYTES):
                target = copies / path.relative_to(git_dir)
                make_private_folder(target.parent)
                shutil.copy2(path, target, follow_symlinks=False)

    def _others(self) -> dict[str, str]:
        """Return the refs that Podium itself moved for other workspaces, and their folders."""
        held = [self._records.of(id_) for id_ in self._records.ids() if id_ != self._record.id]
        expected: dict[str, str] = {}
        for record in held:
            if record is not None and record.git_dir == self._record.git_dir:
                expected[record.branch] = self._records.delivered(record)
                expected[f"worktrees/{record.admin}/"] = ""
                expected[f"worktrees/{record.admin}/HEAD"] = f"ref: {record.branch}"
        return expected


def _is_in(name: str, others: dict[str, str]) -> bool:
    return any(prefix.endswith("/") and name.startswith(prefix) for prefix in others)


def _is_head(name: str) -> bool:
    return name == "HEAD" or name.startswith("worktrees/")


def _heads(refs: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in refs.items() if _is_head(name)}


def _others_than_heads(refs: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in refs.items() if not _is_head(name)}


def _label(name: str) -> str:
    folder, _, rest = name.partition("/")
    if folder == "hooks" and rest:
        return f"hook {rest}"
    return f"ref {name}" if name == "HEAD" or name.startswith("refs/") else name


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

    async def compare_trees(self, since: str) -> TreeComparison:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            commit = await commit_named(self._git, self._record, since)
            return await compare_trees(self._supervisor_repo, self._record, commit)

    async def blobs(self, ids: Sequence[str], most_bytes: int = 20_000_000) -> dict[str, bytes]:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            return await read_blobs(self._supervisor_repo, ids, most_bytes)

    async def merge(
        self, other: str, message: str, trailers: Mapping[str, str], *, trusted: bool = False
    ) -> MergeResult:
        async def put_back(commit: str) -> None:
            await self._resetting.reset(commit, "an interrupted merge", ())

        with self._at_work():
            await self._supervisor_repo.sit_down()
            merging = Merger(self._git, self._supervisor_repo, self._record, self._clock, put_back)
            return await merging.merge(other, message, trailers, trusted=trusted)

    async def squash(self, spec: SquashSpec, message: SquashMessage) -> SquashedBranch:
        with self._at_work():
            await self._supervisor_repo.sit_down()
            squashing = BranchSquash(self._git, self._records, self._supervisor_repo, self._record)
            return await squashing.squash(spec, message)

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
                f"workspace {self._record.task!r} is not usable: {error.strerror} "
                f"({error.filename!r}); fix that, then try again"
            ) from error
