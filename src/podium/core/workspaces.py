"""Workspaces: where an agent works on a task, apart from everything that is not its own."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from podium.core.model import FrozenModel, NonEmpty, UtcDatetime
from podium.core.processes import NetworkPolicy


class SetupSpec(FrozenModel):
    """Commands that make a fresh workspace one in which the project can be built and tested."""

    copy_files: tuple[str, ...] = ()
    """Files of the user's checkout that git does not carry, such as `.env`, by their paths."""
    ports: tuple[str, ...] = ()
    """Variables that each get a free port of their own."""
    after_create: tuple[tuple[str, ...], ...] = ()
    """Commands, each as argv, run inside the workspace in this order."""
    ready: tuple[str, ...] = ()
    """A command that must succeed before the workspace is used. Empty: none."""
    seconds: float = 600.0
    """For all commands together."""
    network: NetworkPolicy = "none"
    """Connections of the commands; the settings may tighten it."""
    hosts: tuple[str, ...] = ()
    """For `listed`, such as a package index."""


class WorkspaceSpec(FrozenModel):
    """A workspace to be made."""

    task: NonEmpty
    """Short name of the task: letters, digits, dots and dashes."""
    repository: NonEmpty
    """The user's checkout, or a folder inside it."""
    base: str = "HEAD"
    """The commit or branch that the work starts from."""
    branch: str = ""
    """Short name of the branch that is made. Empty: `podium/<task>`."""
    folder: str = ""
    """The worktree's folder. Empty: `../.worktrees/<task>` beside the checkout."""
    forbidden: tuple[str, ...] = ()
    """Paths from the workspace on that nobody in it may change, whether they exist or not."""
    set_up: SetupSpec = SetupSpec()
    run_id: str = ""


class WorkspaceRecord(FrozenModel):
    """A workspace as it is kept on disk, out of the agent's reach."""

    id: NonEmpty
    task: NonEmpty
    repository: NonEmpty
    """Real path of the user's checkout."""
    git_dir: NonEmpty
    """Real path of its common git directory."""
    path: NonEmpty
    """The worktree."""
    private: NonEmpty
    """Folder of everything that belongs to the workspace beside the worktree."""
    branch: NonEmpty
    """Whole name: `refs/heads/…`."""
    base: NonEmpty
    """Commit the work starts from."""
    admin: str = ""
    """Name of the worktree's folder under `worktrees` in the git directory. Empty while it is being made."""
    forbidden: tuple[str, ...] = ()
    ports: dict[str, int] = Field(default_factory=dict)
    copied: tuple[str, ...] = ()
    """Files that were copied from the checkout. They never come back in a commit."""
    run_id: str = ""
    created_at: UtcDatetime


class RepositoryRefs(FrozenModel):
    """The user's repository at a moment: whatever an agent must leave alone."""

    refs: dict[str, str] = Field(default_factory=dict)
    """Commit, or other ref, by name: branches, tags, stash, HEAD and those of other worktrees."""
    files: dict[str, str] = Field(default_factory=dict)
    """Digests of settings and hooks by name."""


class Violation(FrozenModel):
    """A change during a turn that the agent was not allowed to make."""

    what: NonEmpty
    """`ref refs/heads/main`, `hook pre-commit`, `config`, …"""
    before: str = ""
    after: str = ""
    restored: bool = False


class TurnEnd(FrozenModel):
    """Findings at the end of a turn in a workspace."""

    violations: tuple[Violation, ...] = ()
    moved_away: tuple[str, ...] = ()
    """Repositories that were planted in the worktree, and what stood in place of its own `.git`."""
    changed_meanwhile: tuple[str, ...] = ()
    """Changes of somebody else in the user's repository, out of a confined agent's reach. They stay."""
    seen: RepositoryRefs = RepositoryRefs()
    """The repository's refs at that time, before anything was put back."""


class CheckoutStatus(FrozenModel):
    """The user's own checkout."""

    checkout: NonEmpty
    head: NonEmpty
    branch: str = ""
    """Short name of what is checked out. Empty: HEAD is detached."""
    changed: tuple[str, ...] = ()
    """The first of the tracked files that are not as committed."""
    changed_count: int = 0
    sparse: bool = False


class WorktreeStatus(FrozenModel):
    """Status of a worktree while nobody works in it."""

    head: str
    """Commit that is checked out, in the workspace's own history."""
    on_branch: bool
    """True if that is the tip of the workspace's branch."""
    changed: tuple[str, ...] = ()
    """Paths that are not as committed, untracked ones included and ignored ones not."""
    merging: bool = False
    """A merge was begun and not committed."""

    @property
    def is_clean(self) -> bool:
        return self.on_branch and not self.changed and not self.merging


class WorkspaceCommit(FrozenModel):
    """A commit in a workspace."""

    id: NonEmpty
    subject: str
    parents: tuple[str, ...] = ()
    trailers: dict[str, str] = Field(default_factory=dict)


class TreeChange(FrozenModel):
    """A path that differs between two commits. Modes and ids are as git has them; empty where a side has no such path."""

    path: NonEmpty
    old_mode: str = ""
    old_blob: str = ""
    new_mode: str = ""
    new_blob: str = ""


class TreeComparison(FrozenModel):
    """Changes from a commit to the branch's tip, and all plain files of the tip by path, each with its blob."""

    changes: tuple[TreeChange, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)


SECRET_VALUE_PREFIX = "secret:"  # noqa: S105 — a beginning, and no secret
"""Stands before the name of a secret whose value is known, and is nothing that only looks like one."""


class SecretMatch(FrozenModel):
    """A line that a commit adds, and what was found in it. The line itself is not told: it may be a secret."""

    commit: NonEmpty
    path: str
    """Empty: the commit's own message."""
    line: int
    what: tuple[str, ...]


class CommitScan(FrozenModel):
    """Findings in the lines that commits add."""

    found: tuple[SecretMatch, ...] = ()
    whole: bool = True
    """True if all of them were looked at."""


RUN_REFS = "refs/podium/runs/"
"""Refs of runs whose branch was put together for its delivery, by run and history: they keep all its commits, and never move."""


class SquashSpec(FrozenModel):
    """Input for putting a branch together for its delivery."""

    run_id: NonEmpty
    onto: tuple[NonEmpty, ...]
    """Commits that stay as they are, the base first: the new ones begin from the newest of them."""
    known: tuple[NonEmpty, ...] = ()
    """Histories of earlier deliveries, which commits in `onto` stand for."""
    left_out: tuple[str, ...] = ()
    """Paths that the branch does not get. Of files that the base has it keeps the base's content."""
    lists: tuple[str, ...] = ()
    """Paths whose changes make a commit of their own."""
    with_lists: tuple[str, ...] = ()
    """Paths whose changes belong to that commit, if there is one."""
    lists_message: NonEmpty


class ChangedPath(FrozenModel):
    """A file that a branch changes."""

    path: str
    added: int | None = None
    """Lines. None: it is binary."""
    removed: int | None = None


class SquashedBranch(FrozenModel):
    """A branch that was put together for its delivery."""

    head: NonEmpty
    history: NonEmpty
    """Commit of the whole history. The same as `head`: there was nothing to put together."""
    history_ref: str = ""
    """Ref that keeps it."""
    commits: tuple[WorkspaceCommit, ...] = ()
    """The new ones, oldest first. None: only paths that are left out changed since an earlier delivery."""
    replaced: tuple[WorkspaceCommit, ...] = ()
    """Those that they stand for, oldest first."""
    files: tuple[ChangedPath, ...] = ()


class MergeResult(FrozenModel):
    """Result of merging a commit into a workspace's branch."""

    other: NonEmpty
    """The merged commit."""
    commit: str = ""
    """The branch's tip behind it. Empty: there are conflicts, and the merge is left open for whoever solves them."""
    conflicts: tuple[str, ...] = ()
    """Paths with conflict markers, or that one side removed."""
    up_to_date: bool = False
    """The branch contained it already."""
    told: str = ""
    """git's own words."""


class BranchConflict(FrozenModel):
    """Two branches that cannot be merged with each other as they are."""

    branch: NonEmpty
    other: NonEmpty
    paths: tuple[str, ...] = ()


class GuardedChange(FrozenModel):
    """Changes of commits to files that guard the project or run by themselves."""

    files: tuple[str, ...]
    """Each with what becomes of it: `podium.yaml (changed)`."""
    paths: tuple[str, ...]
    diff: str
    """Commit by commit; of a long one the beginning. It is not redacted."""
    digest: NonEmpty
    """Of paths, modes and contents before and after, in their order."""


class Delivery(FrozenModel):
    """Commits that came back through the import gate."""

    branch: NonEmpty
    before: str
    after: str
    commits: tuple[str, ...] = ()
    """Oldest first. Empty: there was nothing new."""
    paths: tuple[str, ...] = ()
    """Paths they change."""
    lookalikes: tuple[str, ...] = ()
    """Places in test data that look like secrets, in words."""


class WaitingDelivery(FrozenModel):
    """Commits that come back once a person has approved what they change in guarded files."""

    run_id: NonEmpty
    approval_id: NonEmpty
    branch: NonEmpty
    """Short name."""
    task: NonEmpty
    files: tuple[str, ...]


class WorktreeSnapshot(FrozenModel):
    """Everything in a worktree, untracked files included, as a commit under a private ref."""

    ref: NonEmpty
    commit: NonEmpty
    why: str
    at: UtcDatetime
    left_out: tuple[str, ...] = ()
    """Descriptions of what is not in it."""
    complete: bool = True
    """True if all work is in it: what was left out is ignored by git, and large."""
    carried: str = ""
    """Commit of what git would carry, without ignored and copied files. Empty: there is none."""


class RecoveredBranch(FrozenModel):
    """A branch that was made of a snapshot."""

    branch: NonEmpty
    """Short name."""
    commit: NonEmpty
    snapshot: WorktreeSnapshot
    only_in_snapshot: tuple[str, ...] = ()
    """Paths that the branch does not have, the first of them: git ignores them, or they were copied."""
    more: int = 0
    """Number of further paths."""


class WorkLocation(StrEnum):
    """The safe place of a workspace's work, if there is one."""

    MERGED = "merged"
    PUSHED = "pushed"
    SNAPSHOTTED = "snapshotted"
    UNCHANGED = "unchanged"
    """There is no work in it."""
    IN_USE = "in_use"
    UNKNOWN = "unknown"

    @property
    def is_safe(self) -> bool:
        """Tell whether the workspace itself is not needed for its work."""
        return self not in (WorkLocation.IN_USE, WorkLocation.UNKNOWN)


class WorkspaceListing(FrozenModel):
    """A workspace with what is known of it."""

    record: WorkspaceRecord
    kept: WorkLocation
    because: str
    bytes: int
    """Size of the worktree and of what belongs to it."""
    changed_at: UtcDatetime
    snapshots: tuple[WorktreeSnapshot, ...] = ()


class WorkspaceRemoval(FrozenModel):
    """A workspace that was removed, or not, and why."""

    id: NonEmpty
    removed: bool
    because: str
    task: str = ""
    kept: WorkLocation | None = None
    """None: a leftover, or it is not known."""
    snapshot: WorktreeSnapshot | None = None
    bytes: int = 0
    failed: bool = False
    """It was to be removed, and something was in the way."""


class RemovedWorkspace(FrozenModel):
    """Facts about a removed workspace, so that its snapshots can be found."""

    record: WorkspaceRecord
    removed_at: UtcDatetime
    because: str
    snapshots: tuple[WorktreeSnapshot, ...] = ()
    """Those that still exist. Newest last."""


class Leftover(FrozenModel):
    """Remains of a workspace that a killed Podium had not wholly made, or not wholly removed."""

    id: NonEmpty
    because: str
    """Description of the interrupted work, and why it can be cleared away."""
    places: tuple[str, ...] = ()
    """Files and folders that are still there."""
    bytes: int = 0
    task: str = ""
    repository: str = ""
    git_dir: str = ""
    """Of its repository, as far as that is known."""
    readable: bool = True
    """False: its record cannot be read, so that it is not cleared away."""
