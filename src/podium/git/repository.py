"""The user's repository: located from any folder in it, and examined without changing it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.workspaces import CheckoutStatus
from podium.git.git_command import Git, GitFailed


@dataclass(frozen=True)
class RepositoryState:
    """State of a user's repository at one time."""

    checkout: str
    """Top of the worktree that was named."""
    own_git_dir: str
    """Git directory of that worktree: its HEAD is the user's."""
    git_dir: str
    """The common one, which holds refs, objects and settings."""
    object_format: str
    settings: dict[str, str] = field(repr=False)
    """The last value of each setting, the user's own and the machine's included."""
    refs: dict[str, str] = field(repr=False)
    """All refs; the lines of a `packed-refs` file by their names."""
    base: str = ""

    def setting(self, key: str) -> str:
        return self.settings.get(key, "")

    def is_on(self, key: str) -> bool:
        return self.setting(key).lower() in ("true", "yes", "on", "1")

    @property
    def filters(self) -> list[str]:
        """Names of filter drivers that are set up, for switching them off."""
        names = [key.split(".", 1)[1].rsplit(".", 1)[0] for key in self.settings if _is_filter(key)]
        return sorted(set(names))


def _is_filter(key: str) -> bool:
    return key.startswith("filter.") and key.count(".") >= 2


class RepositoryLocation(NamedTuple):
    """Location of a repository. The fields are those of `RepositoryState`."""

    checkout: str
    own_git_dir: str
    git_dir: str
    object_format: str


async def find_repository(git: Git, folder: str, base: str) -> RepositoryState:
    """Raises `BadInput` or `NotPossibleNow`, with what to do, for one that cannot be worked with."""
    return await read_repository(git, await locate(git, folder), base)


async def read_repository(git: Git, location: RepositoryLocation, base: str) -> RepositoryState:
    """Read the state of a repository. Raises as `find_repository` does."""
    checkout, own_git_dir, git_dir, object_format = location
    settings, refs, commit = await asyncio.gather(
        _settings(git, own_git_dir),
        _refs(git, git_dir),
        _base(git, own_git_dir, base),
    )
    state = RepositoryState(checkout, own_git_dir, git_dir, object_format, settings, refs, commit)
    _refuse_partial_clone(state)
    return state


async def find_git_dir(git: Git, folder: str) -> str:
    """The common git directory alone, by which a repository is locked."""
    return (await locate(git, folder)).git_dir


async def locate(git: Git, folder: str) -> RepositoryLocation:
    """Find the repository that a folder lies in. Raises as `find_repository` does."""
    start = _existing(folder)
    try:
        ended = await git.run(
            "rev-parse", "--is-bare-repository", "--absolute-git-dir", "--git-common-dir",
            "--show-object-format", "--show-toplevel",
            cwd=start, user_settings=True,
        )  # fmt: skip
    except GitFailed as failed:
        raise _not_usable(folder, failed) from failed
    lines = ended.stdout.decode(errors="surrogateescape").splitlines()
    if len(lines) != 5:
        raise BadInput(
            f"the path of the repository of {folder!r} contains a line break; move the repository"
        )
    _, own, common, object_format, top = lines
    # The common one is relative to where git was started when it is not absolute.
    return RepositoryLocation(_real(top), _real(own), _real(start, common), object_format)


def _existing(folder: str) -> str:
    if not os.path.isdir(folder):  # noqa: PTH112 — `Path.is_dir` raises where one may not look
        raise BadInput(
            f"the folder {folder!r} does not exist; name a folder inside a git repository"
        )
    return os.path.realpath(folder)


def _real(*parts: str) -> str:
    return os.path.realpath(Path(*parts))


def _not_usable(folder: str, failed: GitFailed) -> BadInput | NotPossibleNow:
    message = failed.stderr
    if "dubious ownership" in message:
        return NotPossibleNow(
            f"the repository of {folder!r} belongs to another user; if you trust it, run "
            f"`git config --global --add safe.directory {os.path.realpath(folder)}`"
        )
    if "must be run in a work tree" in message:
        return BadInput(
            f"{folder!r} is a bare repository or inside a git directory; clone it, or name a checkout"
        )
    if "not a git repository" in message:
        return BadInput(
            f"{folder!r} is not in a git repository; name a folder in one, or create one with `git init` "
            "and a first commit"
        )
    return NotPossibleNow(f"git cannot read the repository of {folder!r}: {message[-400:]}")


async def _settings(git: Git, git_dir: str) -> dict[str, str]:
    ended = await git.run(
        "config", "--null", "--show-scope", "--list", git_dir=git_dir, user_settings=True
    )
    fields = ended.stdout.decode(errors="surrogateescape").split("\0")
    pairs: dict[str, str] = {}
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, separator, value = entry.partition("\n")
        if scope != "command":  # our own hardening
            # A key without a value means that it is on.
            pairs[key] = value if separator else "true"
    return pairs


async def _refs(git: Git, git_dir: str) -> dict[str, str]:
    """Each ref's line for `packed-refs`, with the commit that an annotated tag stands for."""
    form = "--format=%(objectname) %(refname)%00%(*objectname)"
    text = await git.text("for-each-ref", form, git_dir=git_dir)
    refs: dict[str, str] = {}
    for row in text.splitlines():
        line, _, peeled = row.partition("\0")
        refs[line.split(" ", 1)[1]] = line + (f"\n^{peeled}" if peeled else "")
    return refs


async def _base(git: Git, git_dir: str, base: str) -> str:
    if not base or base.startswith("-"):
        raise BadInput(f"{base!r} is not a commit to start from; name a branch, tag or commit")
    commit = await git.resolve(f"{base}^{{commit}}", git_dir)
    if commit:
        return commit
    if base == "HEAD":
        raise NotPossibleNow(
            "the current branch of the repository has no commit yet; create one with `git commit`, or "
            "name another base"
        )
    raise BadInput(f"the repository has no commit {base!r}; see `git branch --all`")


def _refuse_partial_clone(state: RepositoryState) -> None:
    promised = any(key.endswith(".promisor") and state.is_on(key) for key in state.settings)
    if promised or state.setting("extensions.partialclone"):
        raise NotPossibleNow(
            f"{state.checkout!r} is a partial clone, and agents cannot fetch its missing objects; clone the "
            "repository again without `--filter` and work there"
        )


_MAX_LISTED = 20
_OUTPUT_BYTES = 4_000_000


async def look_at(git: Git, folder: str) -> CheckoutStatus:
    """Read the status of a checkout. Raises `BadInput` where there is no repository with a commit."""
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
    fields = dict(
        row.removeprefix("# branch.").split(" ", 1) for row in rows if row.startswith("#")
    )
    if fields["oid"] == "(initial)":
        raise BadInput(
            f'{checkout!r} has no commit yet; create one with `git add -A && git commit -m "First commit"`'
        )
    changed = [_path(row) for row in rows if not row.startswith("#")]
    sparse = await git.run(
        "-C", checkout, "config", "--type=bool", "--get", "core.sparseCheckout", accept=(0, 1)
    )
    return CheckoutStatus(
        checkout=checkout,
        head=fields["oid"],
        branch="" if fields["head"] == "(detached)" else fields["head"],
        changed=tuple(changed[:_MAX_LISTED]),
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
            f"{folder!r} belongs to another user, so git does not trust it; if you trust it, run `git config "
            f"--global --add safe.directory {folder}`"
        )
    if "must be run in a work tree" in failed.stderr:
        return f"{folder!r} is a bare repository; run this in a clone with a working tree"
    return f'{folder!r} is not in a git repository; create one with `git init && git add -A && git commit -m "First commit"`'
