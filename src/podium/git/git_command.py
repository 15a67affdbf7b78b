"""Git run so that nothing but git itself runs: no hooks, filters, helpers, pagers or transports; stale ref locks."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from podium.core.errors import NotPossibleNow
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.ports.launcher import Launcher

OWN_REFS = "refs/podium/"
BASE_REFS = f"{OWN_REFS}bases/"
"""Refs that protect fetched commits of the remote's base branch from garbage collection."""
_OFF = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.alternateRefsCommand=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.quotePath=false",
    "credential.helper=",
    "diff.external=",
    "gc.auto=0",
    "index.sparse=false",
    "log.showSignature=false",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "worktree.useRelativePaths=false",
)
"""Settings that could start a program, or make files that another git directory cannot read."""

HARDENING: tuple[str, ...] = tuple(argument for setting in _OFF for argument in ("-c", setting))

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Podium",
    "GIT_AUTHOR_EMAIL": "podium@localhost",
    "GIT_COMMITTER_NAME": "Podium",
    "GIT_COMMITTER_EMAIL": "podium@localhost",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}
_OWN_SETTINGS_ONLY = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}

_FAREWELL_SECONDS = 2.0
"""git takes its locks away when it is asked to end, not when it is killed."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class GitFailed(NotPossibleNow):
    """Git ended with an exit code that was not accepted. Its stderr and exit code are attributes."""

    def __init__(self, arguments: Sequence[str], ended: ProcessExit) -> None:
        self.stderr = _CONTROL.sub("", ended.stderr.decode(errors="replace")).strip()
        self.git_exit_code = ended.exit_code
        self.timed_out = ended.timed_out
        reason = "timed out" if ended.timed_out else self.stderr[-500:] or "no output"
        super().__init__(f"`git {arguments[0] if arguments else ''}` failed: {reason}")


class Git:
    """Starts git through the launcher, hardened.

    With `git_dir`, git looks for nothing by itself and reads that directory's settings alone. Name only one
    that no agent can write, unless the spawn is confined.
    """

    def __init__(self, launcher: Launcher, *, program: str = "git", seconds: float = 600.0) -> None:
        self._launcher = launcher
        self._program = program
        self._seconds = seconds

    async def run(
        self,
        *arguments: str,
        git_dir: str = "",
        work_tree: str = "",
        cwd: str = "/",
        settings: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_bytes: int = 64_000_000,
        memory_bytes: int | None = None,
        user_settings: bool = False,
        confinement: Confinement | None = None,
        cut: bool = False,
        accept: Sequence[int] = (0,),
        after: Sequence[tuple[Sequence[str], str]] = (),
    ) -> ProcessExit:
        """Run it to its end. Raises `GitFailed` for an exit code that is not accepted, or output that is cut.

        `after` are arguments of further gits that run before it in the same tree, each with the file that is its
        input: a sandbox costs more than they do. The first that fails is the end, with its exit code.
        With `cut`, the beginning of a long output will do. `settings` are further `key=value` pairs.
        `user_settings` lets git read the user's and the machine's settings too: only for reading those, and
        for asking whether a repository may be trusted.
        """
        locations = [f"--git-dir={git_dir}"] if git_dir else []
        locations += [f"--work-tree={work_tree}"] if work_tree else []
        more = [argument for setting in settings for argument in ("-c", setting)]
        argv = (self._program, *HARDENING, *more, *locations)
        environment = _ENVIRONMENT if user_settings else {**_ENVIRONMENT, **_OWN_SETTINGS_ONLY}
        ended = await self._launcher.run(
            ProcessSpec(
                argv=_one_by_one(argv, after, arguments) if after else (*argv, *arguments),
                cwd=cwd,
                env={**environment, **(env or {})},
                stdin=stdin,
                limits=ProcessLimits(
                    seconds=self._seconds, output_bytes=output_bytes, memory_bytes=memory_bytes
                ),
                confinement=confinement or Confinement(),
                farewell_seconds=_FAREWELL_SECONDS,
            )
        )
        if ended.exit_code not in accept or (ended.stdout_dropped_bytes and not cut):
            raise GitFailed(arguments, ended)
        return ended

    async def text(self, *arguments: str, git_dir: str = "", cwd: str = "/") -> str:
        """Return a command's output without its last newline. Bytes that are not UTF-8 become surrogates."""
        ended = await self.run(*arguments, git_dir=git_dir, cwd=cwd)
        return ended.stdout.decode(errors="surrogateescape").rstrip("\n")

    async def resolve(self, name: str, git_dir: str) -> str:
        """The id of a ref or other name; empty when there is none."""
        ended = await self.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", name,
            git_dir=git_dir, accept=(0, 1, 128),
        )  # fmt: skip
        return ended.stdout.decode().strip() if ended.exit_code == 0 else ""

    async def move_ref(self, name: str, new: str, old: str, git_dir: str, why: str) -> None:
        """Compare and swap: `old` must be what is there now. Zeros stand for "is not there"."""
        await self.run("update-ref", "-m", why, name, new, old, git_dir=git_dir)


def _one_by_one(
    git: Sequence[str], after: Sequence[tuple[Sequence[str], str]], arguments: Sequence[str]
) -> tuple[str, ...]:
    first = [f'"$@" {shlex.join(command)} < {shlex.quote(file)}' for command, file in after]
    script = " && ".join([*first, f'exec "$@" {shlex.join(arguments)}'])
    return "sh", "-c", script, "sh", *git


def no_object(like: str) -> str:
    """The id that stands for "none" in a repository whose ids look like this one."""
    return "0" * len(like)


_PATIENCE_SECONDS = 1.0


async def clear_stale_lock(git_dir: str, ref: str) -> None:
    """Take the lock away from a ref that Podium alone moves. The repository's lock is held.

    Every other git holds it for a moment only, so it is taken away when it stays.
    """
    lock = Path(git_dir, f"{ref}.lock")
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while lock.exists():  # noqa: ASYNC240 — one look at a local file; git tells nobody
        if asyncio.get_running_loop().time() > deadline:
            lock.unlink(missing_ok=True)  # noqa: ASYNC240 — one local file
            return
        await asyncio.sleep(0.02)
