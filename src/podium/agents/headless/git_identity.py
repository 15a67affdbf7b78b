"""Author of commits: some CLIs hide the person's git settings from the commands they run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from podium.agents.deps import AgentDeps
from podium.core.errors import PodiumError
from podium.core.processes import ProcessLimits, ProcessSpec

_SECONDS = 10.0
_NAMES = {"user.name": "GIT_AUTHOR_NAME", "user.email": "GIT_AUTHOR_EMAIL"}
_SETTINGS = r"^(user\.(name|email)|include\.path|includeif\..*\.path)$"
_MAX_CACHED = 1_000
_MAX_POINTER = 4_096

Stamps = tuple[tuple[str, int, int, int], ...]
"""The files that git would read, each with inode, size and time of change."""

_cache: dict[tuple[Path, str], tuple[Stamps, dict[str, str]]] = {}
"""Home and workspace → how git's files stood, and what they said: to ask git takes a process."""


async def identity_for(deps: AgentDeps, env: Mapping[str, str], workspace: str) -> dict[str, str]:
    """Variables that tell git's own name and address of the person, or those that `env` names.

    They are settings, not GIT_AUTHOR_NAME and the like: Gemini CLI takes those for secrets.
    """
    named = all(name in env for name in _NAMES.values())
    identity = {} if named else dict(await _remembered(deps, workspace))
    identity.update({key: env[name] for key, name in _NAMES.items() if env.get(name)})
    count = env.get("GIT_CONFIG_COUNT", "0")
    first = int(count) if count.isdecimal() else 0
    settings: dict[str, str] = {}
    for number, (key, value) in enumerate(sorted(identity.items()), start=first):
        settings[f"GIT_CONFIG_KEY_{number}"] = key
        settings[f"GIT_CONFIG_VALUE_{number}"] = value
    return {**settings, "GIT_CONFIG_COUNT": str(first + len(identity))} if identity else {}


async def _remembered(deps: AgentDeps, workspace: str) -> dict[str, str]:
    """Return git's last answer, as long as none of its files has changed."""
    location, stamps = (deps.user_home, workspace), _stamps(deps.user_home, workspace)
    before = _cache.get(location)
    if before is not None and before[0] == stamps:
        return before[1]
    answer = await _asked(deps, workspace)
    if answer is None:
        return {}
    identity = {key: value for key, value in answer.items() if key in _NAMES}
    # Files that include others can change without a trace in themselves.
    if identity == answer:
        while len(_cache) >= _MAX_CACHED:
            _cache.pop(next(iter(_cache)))
        _cache[location] = (stamps, identity)
    return identity


async def _asked(deps: AgentDeps, workspace: str) -> dict[str, str] | None:
    """Ask git itself. None when there is no git to be asked."""
    try:
        ended = await deps.launcher.run(
            ProcessSpec(
                argv=("git", "config", "--null", "--get-regexp", _SETTINGS),
                cwd=workspace,
                env={"HOME": str(deps.user_home), "GIT_CONFIG_NOSYSTEM": "1"},
                limits=ProcessLimits(seconds=_SECONDS, output_bytes=10_000),
            )
        )
    except PodiumError:
        return None
    if ended.timed_out:
        return None
    pairs = [entry.partition("\n") for entry in ended.stdout.decode(errors="replace").split("\0")]
    return {key: value for key, _, value in pairs if key and value}


def _stamps(home: Path, workspace: str) -> Stamps:
    return tuple(_stamp(file) for file in _files_of_git(home, Path(workspace)))


def _stamp(file: Path) -> tuple[str, int, int, int]:
    try:
        status = file.stat()
    except (OSError, ValueError):
        return (str(file), 0, 0, 0)
    return (str(file), status.st_ino, status.st_size, status.st_mtime_ns)


def _files_of_git(home: Path, workspace: Path) -> Iterator[Path]:
    yield from (home / ".gitconfig", home / ".config/git/config")
    for folder in (workspace, *workspace.parents):
        git = folder / ".git"
        if os.path.lexists(git):
            yield from _files_of_repository(git)
            return


def _files_of_repository(git: Path) -> Iterator[Path]:
    """Also of one that is a worktree of another: its `.git` is a file that names the real place."""
    real = _named_in(git, "gitdir:") or git
    common = _named_in(real / "commondir", "") or real
    yield from (common / "config", real / "config.worktree")


def _named_in(pointer: Path, sign: str) -> Path | None:
    try:
        # Looked at before it is opened: opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(pointer.stat().st_mode):
            return None
        with pointer.open(errors="replace") as file:
            text = file.read(_MAX_POINTER)
    except (OSError, ValueError):
        return None
    return pointer.parent / text.removeprefix(sign).strip() if text.startswith(sign) else None
