"""A look at the user's own checkout before work on it begins."""

from __future__ import annotations

from podium.domain.errors import BadInput
from podium.domain.workspaces import RepositoryLook
from podium.workspaces.git.git import Git, GitFailed

_MOST_LISTED = 20
_OUTPUT_BYTES = 4_000_000


async def look_at(git: Git, folder: str) -> RepositoryLook:
    """What is checked out there. Raises `BadInput` where there is no repository with a commit."""
    try:
        top = (
            await git.run("-C", folder, "rev-parse", "--show-toplevel", user_settings=True)
        ).stdout
    except GitFailed as failed:
        raise BadInput(_why_not(folder, failed)) from failed
    checkout = top.decode(errors="surrogateescape").rstrip("\n")
    status = await git.run(
        "-C", checkout, "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--no-renames", "-z",
        "--untracked-files=no", "--ignore-submodules=dirty",
        output_bytes=_OUTPUT_BYTES,
    )  # fmt: skip
    rows = [row for row in status.stdout.decode(errors="replace").split("\0") if row]
    told = dict(row.removeprefix("# branch.").split(" ", 1) for row in rows if row.startswith("#"))
    if told["oid"] == "(initial)":
        raise BadInput(
            f'{checkout!r} has no commit yet; make one: `git add -A && git commit -m "First commit"`'
        )
    changed = [_path(row) for row in rows if not row.startswith("#")]
    sparse = await git.run(
        "-C", checkout, "config", "--type=bool", "--get", "core.sparseCheckout", accept=(0, 1)
    )
    return RepositoryLook(
        checkout=checkout,
        head=told["oid"],
        branch="" if told["head"] == "(detached)" else told["head"],
        changed=tuple(changed[:_MOST_LISTED]),
        changed_count=len(changed),
        sparse=sparse.stdout.strip() == b"true",
    )


def _path(row: str) -> str:
    """Of a row for a changed file, or one that is unmerged."""
    count = 10 if row.startswith("u ") else 8
    return row.split(" ", count)[count]


def _why_not(folder: str, failed: GitFailed) -> str:
    if "dubious ownership" in failed.stderr:
        return (
            f"{folder!r} belongs to another user, and git trusts no such repository; if you do, say "
            f"`git config --global --add safe.directory {folder}`"
        )
    if "must be run in a work tree" in failed.stderr:
        return f"{folder!r} is a bare repository; run this in a clone that has files"
    return f'{folder!r} is not in a git repository; make one: `git init && git add -A && git commit -m "First commit"`'
