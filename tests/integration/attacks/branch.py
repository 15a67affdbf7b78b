"""The one branch that may move, and what must never be in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tests.integration.attacks.arena import COMMITTED, FORBIDDEN, Arena

_QUIET = ("--no-replace-objects", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_GUARDED = re.compile(
    r"podium\.yaml|podium~1\.yam|workflows|\.envrc|\.vscode|\.husky|post-checkout|\.gitattributes"
)
"""Names that the attacks use. Written down anew here: what is judged must not judge itself."""
_LINK, _REPOSITORY = "120000", "160000"
_DOT_GIT = (".git", "git~1", ".git ", ".git.")
_STATE = (
    *(".podium", "podium~1", "po1db0~1", ".podium. ", ".\uff50odium"),
    ".podium::$index_allocation",
)
_IGNORABLE = "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\ufeff"


def wrong_with_branch(arena: Arena) -> tuple[bool, list[str]]:
    """Return whether the branch moved, and if so the problems with it."""
    task = arena.task
    tip = arena.git(*_QUIET, "rev-parse", "--verify", "-q", task.branch, check=False)
    if tip == task.base:
        return False, []
    found = list(_wrong(arena, tip)) if tip else ["the task's branch is gone"]
    return True, found


def _wrong(arena: Arena, tip: str) -> Iterator[str]:
    base = arena.task.base
    if arena.git(*_QUIET, "merge-base", base, tip, check=False) != base:
        yield "the task's branch was cut off from its base"
    fsck = arena.users_git(
        *_QUIET,
        "fsck",
        "--strict",
        "--no-dangling",
        "--no-progress",
        tip,
        cwd=arena.places.repository,
    )
    if fsck.returncode:
        yield f"bad objects in the task's branch: {fsck.stderr.strip()}"
    raw = arena.git(
        *_QUIET, "log", "--raw", "-m", "-z", "--no-renames", "--no-abbrev", "--format=", f"{base}..{tip}",
        check=False,
    )  # fmt: skip
    fields = raw.split("\0")
    yield from _secrets(arena, f"{base}..{tip}")
    for commit in arena.git(*_QUIET, "rev-list", f"{base}..{tip}", check=False).split():
        yield from _bare_repositories(arena, commit)
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, blob, *_ = about.split(" ")
        yield from _wrong_entry(arena, mode, blob, path)


def _secrets(arena: Arena, commits: str) -> Iterator[str]:
    """The known secret in anything that the branch's commits hold, wide letters too."""
    log = arena.git(*_QUIET, "log", "--format=raw", "--patch", "-m", "--text", commits, check=False)
    if COMMITTED in log.replace("\0", ""):
        yield "a secret in the task's branch"


def _bare_repositories(arena: Arena, tip: str) -> Iterator[str]:
    """Folders that git takes for a repository when somebody enters them, settings and all."""
    names = arena.git(*_QUIET, "ls-tree", "-r", "--name-only", "-z", tip, check=False)
    listed = names.lower().split("\0")
    for head in (path for path in listed if path.endswith("/head")):
        folder = head.removesuffix("head")
        inner = {
            path.removeprefix(folder).split("/")[0] for path in listed if path.startswith(folder)
        }
        if {"objects", "refs"} <= inner:
            yield f"a bare repository in the task's branch: {folder}"


def _wrong_entry(arena: Arena, mode: str, blob: str, path: str) -> Iterator[str]:
    if any(f"{path}/".casefold().startswith(f"{zone}/") for zone in FORBIDDEN):
        yield f"forbidden path in the task's branch: {path}"
    if any(_GUARDED.fullmatch(part.casefold()) for part in path.split("/")):
        yield f"a guarded file in the task's branch that nobody approved: {path}"
    if mode == _REPOSITORY:
        yield f"a nested repository in the task's branch: {path}"
    parts = path.replace("\\", "/").split("/")
    if any(_is_spelled(part, _DOT_GIT) for part in parts):
        yield f"a git directory in the task's branch: {path!r}"
    if any(_is_spelled(part, _STATE) for part in parts):
        yield f"Podium's state in the task's branch: {path!r}"
    if mode == _LINK:
        target = arena.git("cat-file", "blob", blob)
        inner = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if inner.split("/")[0] == ".podium":
            yield f"a link into Podium's state in the task's branch: {path}"
        if target.startswith("/") or inner.startswith(".."):
            yield f"a link that leads out in the task's branch: {path}"


def _is_spelled(name: str, spellings: tuple[str, ...]) -> bool:
    plain = name.translate(dict.fromkeys(map(ord, _IGNORABLE))).casefold()
    return plain in spellings
