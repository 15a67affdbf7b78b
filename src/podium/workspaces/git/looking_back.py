"""What the commits of a workspace's branch are, and what they change."""

from __future__ import annotations

import asyncio
import re

from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.workspaces import CommitSeen, WorkspaceRecord
from podium.workspaces.git.desk import Desk
from podium.workspaces.git.git import Git, GitFailed
from podium.workspaces.git.standing import standing_of

_WHOLE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_BYTES = 50_000_000
_BETWEEN, _WITHIN = "\x1e", "\x1f"
_FORM = "%H%x00%P%x00%s%x00%(trailers:only,unfold,separator=%x1e,key_value_separator=%x1f)"


async def commit_named(git: Git, record: WorkspaceRecord, name: str) -> str:
    """A whole id as it is; anything else as the user's repository has it. Raises `BadInput`."""
    if _WHOLE.fullmatch(name) and len(name) == len(record.base):
        return name
    found = await git.resolve(f"{name}^{{commit}}", record.git_dir) if name else ""
    if not found:
        raise BadInput(
            f"there is no commit {name[:200]!r} in the repository; see `git branch --all`"
        )
    return found


async def history_since(desk: Desk, record: WorkspaceRecord, since: str) -> list[CommitSeen]:
    """Commits of the branch that `since` does not contain, oldest first."""
    tip = await asyncio.to_thread(_tip, record)
    if tip == since:
        return []
    ended = await desk.run(
        "log", "-z", "--reverse", "--topo-order", f"--format=tformat:{_FORM}", tip, f"^{since}", "--",
        output_bytes=_MOST_BYTES,
    )  # fmt: skip
    fields = ended.stdout.decode(errors="replace").split("\0")
    return [_seen(*fields[at : at + 4]) for at in range(0, len(fields) - 3, 4)]


def _seen(commit: str, parents: str, subject: str, trailers: str) -> CommitSeen:
    pairs = [each.partition(_WITHIN) for each in trailers.strip("\n").split(_BETWEEN) if each]
    return CommitSeen(
        id=commit,
        subject=subject,
        parents=tuple(parents.split()),
        trailers={key: value for key, _, value in pairs},
    )


_CONTEXT_LINES = 12


async def diff_since(desk: Desk, record: WorkspaceRecord, since: str, most_bytes: int) -> str:
    """What the branch changed since it left `since`, with enough lines around it to judge it; the beginning when it is longer."""
    tip = await asyncio.to_thread(_tip, record)
    try:
        ended = await desk.run(
            "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty",
            f"--unified={_CONTEXT_LINES}", f"{since}...{tip}", "--",
            settings=("core.quotePath=false",), output_bytes=most_bytes, cut=True,
        )  # fmt: skip
    except GitFailed as failed:
        if "no merge base" not in failed.stderr:
            raise
        raise NotPossibleNow(
            f"the branch and {since[:12]} have no commit in common, so there is nothing to compare"
        ) from failed
    return ended.stdout.decode(errors="replace")


def _tip(record: WorkspaceRecord) -> str:
    tip = standing_of(record).tip
    if not tip:
        raise NotPossibleNow(
            f"the workspace has no branch {record.branch.removeprefix('refs/heads/')!r} any more; "
            "put the workspace back first"
        )
    return tip
