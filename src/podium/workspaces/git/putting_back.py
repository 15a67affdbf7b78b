"""Undoing changes in the user's repository without losing what they were."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from podium.platform import make_private_folder
from podium.workspaces.git.git import Git, no_object


async def put_back_ref(
    git: Git, git_dir: str, name: str, before: str, after: str, folder: str
) -> None:
    """Move a ref back by compare and swap; a commit it stood for is kept under `folder`."""
    if after and not after.startswith("ref: "):
        kept = f"{folder}/{name.removeprefix('refs/')}"
        await git.move_ref(kept, after, no_object(after), git_dir, "podium: found after a turn")
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
    place, copy, kept = git_dir / name, before / name, after / name
    if os.path.lexists(place):
        make_private_folder(kept.parent)
        if os.path.lexists(kept):
            kept.unlink()
        shutil.move(place, kept)
    if os.path.lexists(copy):
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(copy, place, follow_symlinks=False)
