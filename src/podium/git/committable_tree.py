"""A worktree as `git add --all` would have it, what a set-up left there, and conflicts between branches of workspaces."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from podium.core.errors import NotPossibleNow
from podium.core.workspaces import BranchConflict, WorkspaceRecord
from podium.git.commit_trees import FRUGAL, MEMORY_BYTES
from podium.git.git_command import Git, GitFailed
from podium.git.private_dir import PRIVATE_CONFIG
from podium.git.records import WorkspaceRecords
from podium.git.worktree_files import ignoring
from podium.git.worktree_objects import add_all, describe_large, too_large
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write

_MAX_BYTES = 400_000_000


async def store_committable(git: Git, record: WorkspaceRecord, head: str) -> str:
    """Its tree, written into the user's objects. What cannot be read is left out."""
    with tempfile.TemporaryDirectory(prefix="looking-", dir=record.private) as folder:
        scratch = Path(folder)
        await asyncio.to_thread(make_scratch, scratch, record)
        await asyncio.to_thread(_write_to, scratch, record)
        return await committable_tree(git, record, scratch, head, lenient=True)


async def committable_tree(
    git: Git, record: WorkspaceRecord, scratch: Path, head: str, *, lenient: bool = False
) -> str:
    """Its tree, in a scratch directory that `make_scratch` made. `head` says what is tracked.

    Raises `NotPossibleNow` for files that are too large; a lenient one leaves them out.
    """

    async def run(*arguments: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> bytes:
        ended = await git.run(
            *arguments,
            git_dir=str(scratch),
            work_tree=record.path,
            cwd=record.path,
            settings=("core.sparseCheckout=true", "advice.addEmbeddedRepo=false", *FRUGAL),
            stdin=stdin,
            output_bytes=_MAX_BYTES,
            memory_bytes=MEMORY_BYTES,
            accept=accept,
        )
        return ended.stdout

    tracked = head or record.base
    await run("read-tree", "--reset", tracked)
    large = await too_large(run, Path(record.path), tracked)
    if large and not lenient:
        raise NotPossibleNow(
            f"{describe_large(large)[0]} and is too large to store; delete it, or add it to .gitignore"
        )
    options = ("--sparse", "--ignore-errors") if lenient else ("--sparse",)
    await add_all(run, options, list(large))
    return (await run("write-tree")).decode().strip()


def make_scratch(scratch: Path, record: WorkspaceRecord) -> None:
    """A git directory with trusted settings, and an index that knows what was read at the checkout."""
    for folder in ("objects/info", "refs", "info"):
        make_private_folder(scratch / folder)
    own = Path(record.git_dir, "worktrees", record.admin)
    _copy(Path(record.private, PRIVATE_CONFIG), scratch / "config")
    _copy(own / "index", scratch / "index")
    _copy(Path(record.git_dir, "info/exclude"), scratch / "info/exclude")
    with (scratch / "info/exclude").open("a", encoding="utf-8") as file:
        file.write(f"\n{ignoring(record.copied)}")
    _copy(Path(record.git_dir, "shallow"), scratch / "shallow")
    (scratch / "info/sparse-checkout").write_text("/*\n")
    _copy(own / "info/sparse-checkout", scratch / "info/sparse-checkout")
    (scratch / "HEAD").write_text("ref: refs/heads/none\n")
    (scratch / "objects/info/alternates").write_bytes(os.fsencode(f"{record.git_dir}/objects\n"))


def _write_to(scratch: Path, record: WorkspaceRecord) -> None:
    """Let what is written go into the user's objects."""
    shutil.rmtree(scratch / "objects")
    (scratch / "objects").symlink_to(Path(record.git_dir, "objects"))


def _copy(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.copyfile(source, target)


SET_UP = "set-up"
_MAX_BYTES_SIZE = 20_000_000


async def note_set_up(git: Git, record: WorkspaceRecord) -> None:
    """Remember every file that differs from the base. What cannot be read counts as work later on."""
    with suppress(GitFailed), tempfile.TemporaryDirectory(dir=record.private) as folder:
        scratch = Path(folder)
        await asyncio.to_thread(make_scratch, scratch, record)
        tree = await committable_tree(git, record, scratch, record.base, lenient=True)
        ended = await git.run(
            *RAW_DIFFERENCE, f"{record.base}^{{tree}}", tree,
            git_dir=record.git_dir, env={"GIT_OBJECT_DIRECTORY": str(scratch / "objects")},
        )  # fmt: skip
        if ended.stdout and len(ended.stdout) <= _MAX_BYTES_SIZE:
            atomic_write(Path(record.private, SET_UP), ended.stdout)


def left_by_set_up(record: WorkspaceRecord) -> dict[str, str]:
    """Mode and id of each file that differed from the base when the set-up was done, by path."""
    try:
        return differences(Path(record.private, SET_UP).read_bytes())
    except FileNotFoundError:
        return {}


RAW_DIFFERENCE = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
"""Words for git that make what `differences` reads; two trees are to follow."""


def differences(raw: bytes) -> dict[str, str]:
    """Mode and id, as the second tree has them, of each path in which two trees differ."""
    fields = raw.decode(errors="surrogateescape").split("\0")
    entries = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, name, _ = facts.split(" ")
        entries[path] = f"{mode} {name}"
    return entries


_MAX_MERGE_OUTPUT_BYTES = 20_000_000


async def collisions_of(
    git: Git,
    records: WorkspaceRecords,
    record: WorkspaceRecord,
    candidates: Sequence[WorkspaceRecord],
) -> list[BranchConflict]:
    """Of what was delivered. Nothing is written into the user's repository, nor into a workspace.

    A git before 2.38 cannot try a merge without files: then there are none.
    """
    mine, conflicts = records.delivered(record), []
    with tempfile.TemporaryDirectory(prefix="colliding-", dir=record.private) as folder:
        # Not the user's own directory: its settings may name programs that merge certain files.
        await asyncio.to_thread(make_scratch, Path(folder), record)
        others = await asyncio.to_thread(_others, records, record, candidates)
        theirs = [records.delivered(other) for other in others]
        answers = await _all_conflicts(git, folder, mine, theirs)
        for other, paths in zip(others, answers, strict=True):
            if paths:
                conflicts.append(
                    BranchConflict(branch=_short(record), other=_short(other), paths=tuple(paths))
                )
    return conflicts


def _others(
    records: WorkspaceRecords, record: WorkspaceRecord, candidates: Sequence[WorkspaceRecord]
) -> list[WorkspaceRecord]:
    """Other workspaces of the repository that brought something back."""
    return [
        candidate
        for candidate in candidates
        if candidate.id != record.id
        and candidate.git_dir == record.git_dir
        and records.delivered(candidate) != candidate.base
    ]


async def _all_conflicts(
    git: Git, scratch: str, mine: str, others: Sequence[str]
) -> list[list[str]]:
    """Paths in conflict with each of the others, asked of one process: there may be hundreds.

    What that one does not answer, because it is too old or one of the commits is gone, is asked singly.
    """
    if not others:
        return []
    pairs = "".join(f"{mine} {other}\n" for other in others).encode()
    ended = await git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "--stdin",
        git_dir=scratch, stdin=pairs, output_bytes=_MAX_MERGE_OUTPUT_BYTES, cut=True,
        accept=(0, 1, 128, 129),
    )  # fmt: skip
    answered = _completed_merges(ended.stdout.decode(errors="surrogateescape"))[: len(others)]
    rest = [await _conflicts(git, scratch, mine, other) for other in others[len(answered) :]]
    return [*answered, *rest]


def _completed_merges(output: str) -> list[list[str]]:
    """Of each merge that is answered whole: status, tree, names, an empty text; all ended by a NUL."""
    conflicts: list[list[str]] = []
    *whole, _ = output.split("\0\0")
    for answer in whole:
        status, _, *paths = answer.split("\0")
        conflicts.append(sorted(set(paths)) if status == "0" else [])
    return conflicts


async def _conflicts(git: Git, scratch: str, mine: str, other: str) -> list[str]:
    """Paths in conflict; none too when git cannot say."""
    ended = await git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", mine, other,
        git_dir=scratch, output_bytes=_MAX_MERGE_OUTPUT_BYTES, cut=True, accept=(0, 1, 128, 129),
    )  # fmt: skip
    if ended.exit_code != 1:
        return []
    _, *paths = ended.stdout.decode(errors="surrogateescape").split("\0")
    return sorted({path for path in paths if path})


def _short(record: WorkspaceRecord) -> str:
    return record.branch.removeprefix("refs/heads/")
