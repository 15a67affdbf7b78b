"""Workspaces of agents in a repository, and the forge that their branches are pushed to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.core.forge import (
        CommentAnswer,
        FailedCheck,
        Issue,
        LabelEvent,
        PostedAnswer,
        Preflight,
        PullQuery,
        PullRequest,
        PullRequestDraft,
        PullStatus,
        RemoteBase,
        TrackerComment,
    )
    from podium.core.processes import Confinement
    from podium.core.workspaces import (
        BranchConflict,
        Delivery,
        Leftover,
        MergeResult,
        RecoveredBranch,
        RemovedWorkspace,
        RepositoryRefs,
        SquashedBranch,
        SquashSpec,
        TreeComparison,
        TurnEnd,
        WorkspaceCommit,
        WorkspaceListing,
        WorkspaceRecord,
        WorkspaceRemoval,
        WorkspaceSpec,
        WorktreeSnapshot,
        WorktreeStatus,
    )


class Workspace(Protocol):
    """A worktree with a branch of its own. The user's repository is out of reach of whoever works in it."""

    @property
    def record(self) -> WorkspaceRecord: ...

    async def confinement(self) -> Confinement:
        """Its mounts and pinned paths, checked just now. Raises when somebody tampered with them.

        Ask for it before each start, while no process of the agent lives.
        """
        ...

    async def begin_turn(self) -> RepositoryRefs:
        """See what the user's repository holds before an agent works."""
        ...

    async def end_turn(self, refs: RepositoryRefs) -> TurnEnd:
        """Tidy up when all processes are dead: planted repositories go, changed refs come back."""
        ...

    async def deliver(self, approved: str = "") -> Delivery:
        """Take the agent's commits through the import gate and move the one branch.

        Raises `ImportRefused` and changes nothing when they are not what may come back; `SecretsCommitted`,
        which is one, for secrets in anything that they add; `GuardedFilesChanged` for files that guard the
        project or run by themselves, unless `approved` is the digest of exactly that change.
        """
        ...

    async def delivered(self) -> str:
        """The commit that came back last; the base when none did."""
        ...

    async def snapshot(self, why: str) -> WorktreeSnapshot:
        """Keep everything in the worktree, untracked files included."""
        ...

    async def restore(self, snapshot: WorktreeSnapshot) -> None:
        """Put the worktree back to a snapshot. What is there now is kept as another one first."""
        ...

    async def state(self) -> WorktreeStatus:
        """Status of the worktree. Like all below: only while no process of an agent lives in it."""
        ...

    async def read(self, path: str, most_bytes: int = 1_000_000) -> str | None:
        """A file of the worktree as text, its beginning when it is longer. No link is followed.

        None: there is no such plain file. Raises `WorkspaceTampered` for a path that leads out.
        """
        ...

    async def write(self, files: Mapping[str, str]) -> None:
        """Write files into the worktree, making folders. Raises `WorkspaceTampered` rather than follow a link."""
        ...

    async def commit(
        self,
        message: str,
        paths: Sequence[str],
        *,
        moved: Mapping[str, str] | None = None,
        trailers: Mapping[str, str] | None = None,
    ) -> str:
        """Commit just these paths as they lie in the worktree, as Podium, and give the branch's tip.

        `moved` renames files first, old name → new. Nothing to commit makes no commit. A commit with
        the same trailers that is already there since the workspace's base is not made twice.
        """
        ...

    async def tracked(self, *patterns: str) -> Sequence[str]:
        """Paths that git tracks in the worktree and that fit one of the pathspecs; of very many the first."""
        ...

    async def ignored(self) -> Sequence[str]:
        """Ignored paths in the worktree: files, and folders of which all is ignored, with `/` behind them."""
        ...

    async def clear_ignored(
        self, keep: Sequence[str], keep_names: Sequence[str] = ()
    ) -> Sequence[str]:
        """Remove what git ignores, but for paths in `keep` and folders with one of the names. Gives what went."""
        ...

    async def was_committed(self, trailers: Mapping[str, str]) -> bool:
        """Tell whether `commit` made one with these trailers that is on the branch. No agent can forge that."""
        ...

    async def history(self, since: str) -> Sequence[WorkspaceCommit]:
        """Commits of the branch that `since` does not contain, oldest first."""
        ...

    async def diff(self, since: str, most_bytes: int = 10_000_000) -> str:
        """Changes of the branch since it left `since`, as `git diff since...HEAD` has them."""
        ...

    async def compare_trees(self, since: str) -> TreeComparison:
        """Paths in which the branch's tip differs from this commit, by their trees alone.

        Raises `NotPossibleNow` when there are too many to list.
        """
        ...

    async def blobs(self, ids: Sequence[str], most_bytes: int = 20_000_000) -> Mapping[str, bytes]:
        """Contents of these blobs by id, up to this many bytes in all; those beyond are missing."""
        ...

    async def merge(
        self, other: str, message: str, trailers: Mapping[str, str], *, trusted: bool = False
    ) -> MergeResult:
        """Merge a commit or branch of the user's repository into the branch. Conflicts are left to be solved.

        What a `trusted` commit holds counts as the user's own, although no branch of his has it: it is the
        remote's base branch.
        """
        ...

    async def squash(
        self, spec: SquashSpec, message: Callable[[Sequence[WorkspaceCommit]], str]
    ) -> SquashedBranch:
        """Put the delivered branch together as one or two commits. A ref keeps the whole history.

        `message` makes the text of the commit from those that it stands for. The workspace stands at the new commit
        then. Asked again with the same history it makes the same commits. Raises `NotPossibleNow` when the branch
        holds something that was not delivered, or was moved by somebody else.
        """
        ...

    async def reset(self, commit: str, why: str, *, keep: Sequence[str] = ()) -> Sequence[str]:
        """Put branch and worktree back to a commit of the branch, but for the files in `keep`.

        Whatever that would lose is kept as a snapshot first; ignored files stay. Gives the paths that
        were put back. Does nothing, quickly, when all is as it should be.
        """
        ...

    async def holds(self, commit: str) -> bool:
        """Tell whether what was delivered holds this commit."""
        ...

    async def stand_at(
        self, commit: str, why: str, *, tip: str = "", keep: Sequence[str] = ()
    ) -> WorktreeSnapshot | None:
        """Let the user's branch be at `commit` again, and the worktree at `tip`, which holds it. Empty: the same.

        Unlike `reset` it takes back what was delivered. Where the branch was is kept as a snapshot, which
        is given; None: it lost nothing. Raises `NotPossibleNow` when the user's repository has no such commit.
        """
        ...


class Workspaces(Protocol):
    """All workspaces of a user."""

    async def create(self, spec: WorkspaceSpec) -> Workspace:
        """Make one, whole or not at all."""
        ...

    async def open(self, workspace_id: str) -> Workspace:
        """One that was made before. Raises `UnknownId`."""
        ...

    async def missing(self, workspace_id: str) -> str:
        """Describe what is gone of one that was made before; empty when it is all there."""
        ...

    async def rebuild(
        self, record: WorkspaceRecord, spec: WorkspaceSpec, commit: str
    ) -> tuple[Workspace, WorktreeSnapshot | None]:
        """Make one that is gone again, under its old id and on its branch, which holds `commit` then.

        Commits that only what is left of it had are kept as a snapshot, which is given too. Raises
        `NotPossibleNow` when the user's repository has no such commit.
        """
        ...

    def at(self, path: str) -> WorkspaceRecord | None:
        """The workspace whose worktree this folder is."""
        ...

    def existing(self) -> Sequence[WorkspaceRecord]:
        """All that are whole, oldest first, without a look at what is in them."""
        ...

    async def repository_of(self, folder: str) -> str:
        """The common git directory of the repository that a folder lies in; empty when in none."""
        ...

    async def listed(self, git_dir: str = "") -> Sequence[WorkspaceListing]:
        """All of them, or those of one repository, oldest first."""
        ...

    async def remove(self, workspace_id: str) -> WorkspaceRemoval:
        """Remove one whose work is safe elsewhere, snapshotting what is not committed first.

        One whose work is not, or that somebody works in, stays as it is, and the answer says why.
        """
        ...

    async def leftovers(self) -> Sequence[Leftover]:
        """Remains of killed processes that were making or removing workspaces."""
        ...

    async def clear(self, leftover_id: str) -> WorkspaceRemoval:
        """Finish what a killed process began. Raises `UnknownId`."""
        ...

    async def removed(self) -> Sequence[RemovedWorkspace]:
        """Those that are no more and whose snapshots are still there, oldest first."""
        ...

    async def recover(self, workspace_id: str, branch: str) -> RecoveredBranch:
        """Make a branch of the newest snapshot of a workspace, also of one that was removed.

        It holds what git would carry; the snapshot has the rest.
        """
        ...

    async def forget(self, workspace_id: str) -> Sequence[WorktreeSnapshot]:
        """Drop all snapshots of a workspace that was removed, and give them. They cannot come back."""
        ...

    async def collisions(self, workspace_id: str) -> Sequence[BranchConflict]:
        """Other workspaces of the same repository whose delivered branches conflict with this one's."""
        ...


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

    async def deliver(self, draft: PullRequestDraft) -> PullRequest:
        """Push the one branch and open a pull request, or write the local equivalent.

        Looks at the remote's base branch right before the push. One with commits that the branch does not contain
        is answered by `moved_base`, and nothing is pushed.

        May be asked again after a crash: what is there already is found, not made twice. Raises
        `NotPossibleNow` when the remote refuses, `RateLimited`, or `Passing` errors that a later try may not meet.
        """
        ...

    async def fetch_branch(
        self, repository: str, base: str, branch: str, *, holding: str = ""
    ) -> RemoteBase:
        """Bring the commits of a branch that was pushed into the repository; no branch and no checkout is moved.

        Without a commit the remote has no such branch. Raises `NotPossibleNow` when it lacks the commit `holding`,
        or `Passing` errors that a later try may not meet.
        """
        ...

    async def pull_status(self, query: PullQuery) -> PullStatus:
        """Look at a pull request. Raises `NotPossibleNow` when only a person can help, `RateLimited`, or `Passing` errors."""
        ...

    async def check_excerpts(
        self, query: PullQuery, checks: Sequence[FailedCheck], head: str
    ) -> Sequence[FailedCheck]:
        """Add to each check, which failed on this commit, the end of what it reported. Raises as `pull_status` does."""
        ...

    async def answer_comment(self, answer: CommentAnswer) -> PostedAnswer:
        """Post an answer to a comment, unless it is there already. Raises as `pull_status` does."""
        ...

    async def issues(self, repository: str, base: str) -> IssueTracker:
        """The issues of the project that pull requests go to. Raises `NotPossibleNow` where there are none to ask for."""
        ...


class IssueTracker(Protocol):
    """Issues of one repository. Every method may raise `RateLimited`, `ForgeUnavailable`, and `NotPossibleNow` for what
    the forge refuses, such as an issue that was deleted."""

    @property
    def host(self) -> str: ...

    @property
    def repository(self) -> str:
        """Owner and name, such as `octo/hello`."""
        ...

    def issue_url(self, number: int) -> str: ...

    async def issue(self, number: int) -> Issue: ...

    async def with_label(self, label: str, *, state: str = "open") -> Sequence[Issue]:
        """Issues with this label, oldest first, without pull requests. `state` is `open`, `closed` or `all`."""
        ...

    async def comments(self, number: int) -> Sequence[TrackerComment]:
        """All comments, oldest first."""
        ...

    async def comment(self, number: int, body: str) -> TrackerComment: ...

    async def edit_comment(self, comment_id: int, body: str) -> None: ...

    async def delete_comment(self, comment_id: int) -> None:
        """Delete it. One that is gone already is no error."""
        ...

    async def add_label(self, number: int, label: str) -> None: ...

    async def remove_label(self, number: int, label: str) -> None:
        """Remove it. One that is not there is no error."""
        ...

    async def labeled(self, number: int, label: str) -> LabelEvent | None:
        """Account that put the label there last. None: nobody, or it was removed since."""
        ...

    async def can_write(self, login: str) -> bool:
        """Tell whether this account may label issues of the repository: its role is triage or more."""
        ...
