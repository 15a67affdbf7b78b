"""Status of a worktree, and the commits of its branch."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.core.errors import BadInput, NotPossibleNow, WorkspaceTampered
from podium.core.workspaces import (
    TreeChange,
    TreeComparison,
    WorkspaceCommit,
    WorkspaceRecord,
    WorktreeStatus,
)
from podium.git.commit_trees import contents_of
from podium.git.committable_tree import left_by_set_up
from podium.git.git_command import Git, GitFailed
from podium.git.planted import same_as_blob
from podium.git.private_dir import read_head, read_plain, read_ref
from podium.git.supervisor_repo import SupervisorRepo
from podium.git.worktree_files import kind_of

_BEGUN = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_START",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)
_MAX_BYTES = 20_000_000
"""Limit for paths that differ from the commit; of more, the first are listed."""
_ID = re.compile(r"[0-9a-f]+")
_STATUS = (
    "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--no-ahead-behind",
    "--ignore-submodules=dirty",
)  # fmt: skip


@dataclass(frozen=True)
class HeadState:
    """State of HEAD in the private git directory, read as plain data."""

    head: str
    """Commit that is checked out; empty when that cannot be read."""
    tip: str
    """Of the workspace's branch; empty when there is none."""
    on_branch: bool
    begun: tuple[str, ...]
    merging_with: str
    """Commit that is being merged in; empty when none is."""
    is_plain: bool
    """No link stands in place of a folder above the branch's file: git would write elsewhere."""

    @property
    def is_as_it_should_be(self) -> bool:
        return self.on_branch and bool(self.tip) and self.is_plain and not self.begun


def head_state_of(record: WorkspaceRecord) -> HeadState:
    git = Path(record.private, "git")
    own = git / "worktrees" / record.admin
    checked_out = read_head(git, record.admin)
    named = read_ref(git, checked_out) if checked_out.startswith("refs/") else checked_out
    merging = read_plain(own / "MERGE_HEAD", 5000).decode(errors="replace").split()
    return HeadState(
        head=_id(named, record),
        tip=_id(read_ref(git, record.branch), record),
        on_branch=checked_out == record.branch,
        begun=tuple(name for name in _BEGUN if os.path.lexists(own / name)),
        merging_with=_id(merging[0] if merging else "", record),
        is_plain=_is_plain(git, record.branch),
    )


def _is_plain(git: Path, branch: str) -> bool:
    try:
        return kind_of(git, branch) in ("file", "missing")
    except (WorkspaceTampered, OSError):
        return False


def _id(text: str, record: WorkspaceRecord) -> str:
    fits = len(text) == len(record.base) and _ID.fullmatch(text) and text.strip("0")
    return text if fits else ""


def tip_to_work_on(record: WorkspaceRecord) -> str:
    """The branch's tip. Raises `NotPossibleNow` unless it is checked out and nothing is under way."""
    state = head_state_of(record)
    short = record.branch.removeprefix("refs/heads/")
    if not state.on_branch or not state.tip:
        raise NotPossibleNow(
            f"{short!r} is no longer checked out in the workspace; reset the workspace first"
        )
    if state.begun:
        raise NotPossibleNow(
            f"the workspace has an unfinished git operation ({state.begun[0]}); finish it with a commit, or reset the "
            "workspace first"
        )
    return state.tip


async def state_of(supervisor_repo: SupervisorRepo, record: WorkspaceRecord) -> WorktreeStatus:
    state = await asyncio.to_thread(head_state_of, record)
    changes = await changes_since(supervisor_repo, record, state.head) if state.head else None
    return WorktreeStatus(
        head=state.head,
        on_branch=state.on_branch and bool(state.tip),
        changed=changes.paths if changes else (),
        merging="MERGE_HEAD" in state.begun,
    )


@dataclass(frozen=True)
class WorktreeChanges:
    """Paths that are not as in a commit, but for what the set-up left and nobody changed since."""

    tracked: tuple[str, ...]
    untracked: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.tracked, *self.untracked)


async def changes_since(
    supervisor_repo: SupervisorRepo, record: WorkspaceRecord, commit: str
) -> WorktreeChanges:
    """Of the worktree. Of very many, the first."""
    await supervisor_repo.stand_at(commit)
    ended = await supervisor_repo.run(*_STATUS, output_bytes=_MAX_BYTES, cut=True)
    whole = ended.stdout.rsplit(b"\0", 1)[0] if ended.stdout_dropped_bytes else ended.stdout
    rows = whole.decode(errors="surrogateescape").split("\0")
    tracked, untracked = _paths(rows, {"1": 8, "u": 10}), _paths(rows, {"?": 1})
    if not tracked and not untracked:
        return WorktreeChanges((), ())
    left = set(await asyncio.to_thread(unchanged_set_up, record))
    return WorktreeChanges(
        tuple(path for path in tracked if path not in left),
        tuple(path for path in untracked if path not in left),
    )


def _paths(rows: Iterable[str], field_counts: Mapping[str, int]) -> list[str]:
    """Return the paths of rows of these kinds, each with the number of fields before the path."""
    counted = [(row, field_counts.get(row[:1])) for row in rows]
    return [row.split(" ", count)[count] for row, count in counted if count is not None]


def unchanged_set_up(record: WorkspaceRecord) -> list[str]:
    """Files that are still as the set-up left them."""
    left = left_by_set_up(record)
    return [path for path, entry in left.items() if _is_still(record, path, entry)]


def _is_still(record: WorkspaceRecord, path: str, entry: str) -> bool:
    mode, _, blob = entry.partition(" ")
    file = Path(record.path, path)
    if mode == "000000":
        return not os.path.lexists(file)
    return same_as_blob(file, blob)


_WHOLE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_HISTORY_BYTES = 50_000_000
_BETWEEN, _WITHIN = "\x1e", "\x1f"
TRAILERS_FORM = "%(trailers:only,unfold,separator=%x1e,key_value_separator=%x1f)"
_FORM = f"%H%x00%P%x00%s%x00{TRAILERS_FORM}"


async def commit_named(git: Git, record: WorkspaceRecord, name: str) -> str:
    """A whole id as it is; anything else as the user's repository has it. Raises `BadInput`."""
    if _WHOLE.fullmatch(name) and len(name) == len(record.base):
        return name
    commit = await git.resolve(f"{name}^{{commit}}", record.git_dir) if name else ""
    if not commit:
        raise BadInput(f"the repository has no commit {name[:200]!r}; see `git branch --all`")
    return commit


async def history_since(
    supervisor_repo: SupervisorRepo, record: WorkspaceRecord, since: str
) -> list[WorkspaceCommit]:
    """Commits of the branch that `since` does not contain, oldest first."""
    tip = await asyncio.to_thread(_tip, record)
    if tip == since:
        return []
    ended = await supervisor_repo.run(
        "log", "-z", "--reverse", "--topo-order", f"--format=tformat:{_FORM}", tip, f"^{since}", "--",
        output_bytes=_MAX_HISTORY_BYTES,
    )  # fmt: skip
    fields = ended.stdout.decode(errors="replace").split("\0")
    return [_commit_of(*fields[at : at + 4]) for at in range(0, len(fields) - 3, 4)]


def _commit_of(commit: str, parents: str, subject: str, trailers: str) -> WorkspaceCommit:
    return WorkspaceCommit(
        id=commit,
        subject=subject,
        parents=tuple(parents.split()),
        trailers=trailers_of(trailers),
    )


def trailers_of(text: str) -> dict[str, str]:
    """Parse what git prints for `TRAILERS_FORM`."""
    pairs = [pair.partition(_WITHIN) for pair in text.strip("\n").split(_BETWEEN) if pair]
    return {key: value for key, _, value in pairs}


_CONTEXT_LINES = 12


async def diff_since(
    supervisor_repo: SupervisorRepo, record: WorkspaceRecord, since: str, most_bytes: int
) -> str:
    """Return the diff of the branch since it left `since`, with context lines for a review, cut after `most_bytes`."""
    tip = await asyncio.to_thread(_tip, record)
    try:
        ended = await supervisor_repo.run(
            "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty",
            f"--unified={_CONTEXT_LINES}", f"{since}...{tip}", "--",
            settings=("core.quotePath=false",), output_bytes=most_bytes, cut=True,
        )  # fmt: skip
    except GitFailed as failed:
        if "no merge base" not in failed.stderr:
            raise
        raise NotPossibleNow(
            f"the branch and {since[:12]} have no common ancestor, so they cannot be compared"
        ) from failed
    return ended.stdout.decode(errors="replace")


_MAX_TREE_BYTES = 100_000_000


async def compare_trees(
    supervisor_repo: SupervisorRepo, record: WorkspaceRecord, since: str
) -> TreeComparison:
    """Compare the trees of this commit and of the branch's tip. Renames are a deletion and an addition."""
    tip = await asyncio.to_thread(_tip, record)
    listing = ("ls-tree", "-r", "-z", "--full-tree", tip)
    ended = await supervisor_repo.run(
        "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", since, tip, "--",
        after=[(listing, b"")], output_bytes=_MAX_TREE_BYTES,
    )  # fmt: skip
    fields = ended.stdout.decode(errors="surrogateescape").split("\0")
    files: dict[str, str] = {}
    changes: list[TreeChange] = []
    rest = iter(fields)
    for row in rest:
        if row.startswith(":"):
            old_mode, new_mode, old_blob, new_blob, _ = row[1:].split(" ")
            changes.append(_tree_change(next(rest), old_mode, old_blob, new_mode, new_blob))
        elif row:
            entry, _, path = row.partition("\t")
            mode, _, blob = entry.split(" ")
            if mode.startswith("100"):
                files[path] = blob
    return TreeComparison(changes=tuple(changes), files=files)


def _tree_change(
    path: str, old_mode: str, old_blob: str, new_mode: str, new_blob: str
) -> TreeChange:
    return TreeChange(
        path=path.encode(errors="surrogateescape").decode(errors="replace"),
        old_mode=old_mode if old_mode.strip("0") else "",
        old_blob=old_blob if old_mode.strip("0") else "",
        new_mode=new_mode if new_mode.strip("0") else "",
        new_blob=new_blob if new_mode.strip("0") else "",
    )


async def read_blobs(
    supervisor_repo: SupervisorRepo, ids: Sequence[str], most_bytes: int
) -> dict[str, bytes]:
    """Read blobs in their order, up to this many bytes in all."""
    if not ids:
        return {}
    stdin = "".join(f"{name}\n" for name in dict.fromkeys(ids)).encode()
    ended = await supervisor_repo.run(
        "cat-file", "--batch", "--buffer", stdin=stdin, output_bytes=most_bytes, cut=True
    )
    try:
        return await asyncio.to_thread(contents_of, ended.stdout)
    except ValueError:
        raise NotPossibleNow("a file of the branch is missing from its repository") from None


def _tip(record: WorkspaceRecord) -> str:
    tip = head_state_of(record).tip
    if not tip:
        raise NotPossibleNow(
            f"the workspace no longer has a branch {record.branch.removeprefix('refs/heads/')!r}; reset the workspace first"
        )
    return tip
