"""Sources that start a program: any command, and the state of a git repository."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from podium.core.errors import CallRefused, ToolMissing
from podium.core.model import Json
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.jobs.sense.io.sources.base import AskedSource, understand_output
from podium.jobs.sense.io.sources.file_selection import (
    NotSensed,
    SourceDeps,
    real_path,
    text_tail,
    trim_cut_end,
)
from podium.jobs.sense.models import Condition
from podium.ports.launcher import Launcher

GetConfinement = Callable[[], Confinement]
"""Returns the confinement of programs that a source starts: they read the root and write nothing."""

_ERROR_CHARACTERS = 2_000


class CommandSource(AskedSource):
    """Runs a program at the root and gives its exit code and output, as JSON where it is JSON."""

    def __init__(
        self,
        deps: SourceDeps,
        name: str,
        command: Sequence[str],
        *,
        launcher: Launcher,
        confine: GetConfinement,
        timeout_seconds: float = 10.0,
    ) -> None:
        super().__init__(deps, name, shlex.join(command))
        self._launcher = launcher
        self._confine = confine
        self._command = tuple(command)
        self._timeout_seconds = timeout_seconds

    async def _ask(self) -> tuple[Condition, str, Json]:
        limits = ProcessLimits(seconds=self._timeout_seconds, output_bytes=self._deps.file_bytes)
        spawn = ProcessSpec(
            argv=self._command, cwd=str(self._deps.root), limits=limits, confinement=self._confine()
        )
        ended = await ended_of(self._launcher, spawn)
        content: dict[str, Json] = {"exit_code": ended.exit_code}
        if ended.signal is not None:
            content["signal"] = ended.signal
        if ended.exit_code != 0:
            stderr = ended.stderr.decode(errors="replace").strip()
            content["errors"] = text_tail(stderr, _ERROR_CHARACTERS)
        if ended.stdout_dropped_bytes:
            text = ended.stdout.decode(errors="replace").replace("\0", "�")
            content["output"] = trim_cut_end(text)
            return "cut", f"its output is cut to {len(ended.stdout)} bytes", content
        content["output"] = understand_output(ended.stdout)
        return "ok", "", content


async def ended_of(launcher: Launcher, spawn: ProcessSpec) -> ProcessExit:
    """Run it and return its exit. Raises `NotSensed` if it did not end by itself."""
    try:
        ended = await launcher.run(spawn)
    except ToolMissing as error:
        raise NotSensed("missing", str(error)) from None
    except (CallRefused, OSError) as error:
        raise NotSensed("unreadable", f"it could not be started: {error}") from None
    if ended.timed_out:
        raise NotSensed("unreadable", f"it took longer than {spawn.limits.seconds:g} seconds")
    return ended


_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "diff.external=",
    "gc.auto=0",
    "log.showSignature=false",
    "submodule.recurse=false",
    "protocol.allow=never",
)
"""Settings of a repository can name programs; these overrides keep every one of them from starting."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    # Looking must not write the index anew.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_STATUS = (
    "status",
    "-z",
    "--porcelain=v2",
    "--branch",
    "--no-renames",
    "--untracked-files=all",
    # Git would start what the settings of repositories inside this one name.
    "--ignore-submodules=all",
)
_FIELDS_BEFORE_NAME = {"1 ": 8, "u ": 10, "? ": 1}
"""Of a changed file, one in conflict, one that git does not know."""
_MAX_CHANGED_FILES = 50


class GitSource(AskedSource):
    """Asks git, which starts nothing else and writes nothing."""

    def __init__(
        self,
        deps: SourceDeps,
        name: str,
        path: str = ".",
        *,
        launcher: Launcher,
        confine: GetConfinement = Confinement,
        commits: int = 20,
        timeout_seconds: float = 10.0,
    ) -> None:
        super().__init__(deps, name, path or ".")
        self._path = path or "."
        self._launcher = launcher
        self._confine = confine
        self._commits = commits
        self._timeout_seconds = timeout_seconds

    async def _ask(self) -> tuple[Condition, str, Json]:
        folder = await asyncio.to_thread(self._folder)
        off = await self._filters(folder)
        entries = (await self._git_output(folder, *_STATUS, settings=off)).split("\0")
        about = dict(header[2:].split(" ", 1) for header in entries if header.startswith("# "))
        subfolder = folder.relative_to(self._deps.root)
        changed = sorted(line for entry in entries if (line := self._changed(entry, subfolder)))
        head = _unless(about.get("branch.oid", ""), "(initial)")
        content: dict[str, Json] = {
            "head": head,
            "branch": _unless(about.get("branch.head", ""), "(detached)"),
            "changed_files": len(changed),
            "changed": changed[:_MAX_CHANGED_FILES],
            "commits": await self._log(folder) if head else [],
        }
        if "branch.ab" in about:
            content["ahead_behind"] = about["branch.ab"]
        return "ok", "", content

    def _folder(self) -> Path:
        folder = self._deps.root / real_path(self._deps.root, self._path)
        if not os.path.lexists(folder / ".git"):
            raise NotSensed("missing", "it is no git repository of its own")
        return folder

    async def _filters(self, folder: Path) -> dict[str, str]:
        """Variables that switch off the content filters that the repository names, whatever their names are."""
        argv = ("config", "--null", "--name-only", "--includes", "--get-regexp", r"^filter\.")
        result = await self._run(folder, *argv)
        if result.exit_code not in (0, 1) or result.stdout_dropped_bytes:
            raise _failed("config", result)
        keys = dict.fromkeys(key for key in os.fsdecode(result.stdout).split("\0") if key)
        settings = {"GIT_CONFIG_COUNT": str(len(keys))}
        for number, key in enumerate(keys):
            settings[f"GIT_CONFIG_KEY_{number}"] = key
            settings[f"GIT_CONFIG_VALUE_{number}"] = "false" if key.endswith(".required") else ""
        return settings

    def _changed(self, entry: str, subfolder: PurePath) -> str:
        """Parse an entry of the status into change and file name; empty for files that do not count."""
        if entry[:2] not in _FIELDS_BEFORE_NAME:
            return ""
        *fields, file = entry.split(" ", _FIELDS_BEFORE_NAME[entry[:2]])
        if self._deps.is_own(str(subfolder / file)):
            return ""
        return f"{fields[1] if len(fields) > 1 else '??'} {file}"

    async def _log(self, folder: Path) -> list[dict[str, str]]:
        fields = ("commit", "at", "author", "subject")
        form = "--format=%H%x00%cI%x00%an%x00%s"
        output = await self._git_output(
            folder, "log", f"-n{self._commits}", "--no-show-signature", form
        )
        return [dict(zip(fields, line.split("\0"), strict=False)) for line in output.splitlines()]

    async def _git_output(
        self, folder: Path, *argv: str, settings: dict[str, str] | None = None
    ) -> str:
        ended = await self._run(folder, *argv, settings=settings)
        if ended.exit_code != 0:
            raise _failed(argv[0], ended)
        if ended.stdout_dropped_bytes:
            raise NotSensed("too_large", f"git {argv[0]} says more than is read")
        return ended.stdout.decode(errors="replace")

    async def _run(
        self, folder: Path, *argv: str, settings: dict[str, str] | None = None
    ) -> ProcessExit:
        # Named, not looked for: neither above, nor where the repository's settings point.
        location = (f"--git-dir={folder / '.git'}", f"--work-tree={folder}")
        hardened = _set((*_SETTINGS, f"safe.directory={folder}"))
        spawn = ProcessSpec(
            argv=("git", "--no-pager", *hardened, *location, *argv),
            cwd=str(folder),
            env={**_ENVIRONMENT, **(settings or {})},
            limits=ProcessLimits(
                seconds=self._timeout_seconds, output_bytes=max(self._deps.file_bytes, 1_000_000)
            ),
            confinement=self._confine(),
        )
        return await ended_of(self._launcher, spawn)


def _set(settings: Sequence[str]) -> tuple[str, ...]:
    return tuple(token for setting in settings for token in ("-c", setting))


def _unless(value: str, none: str) -> str | None:
    return None if value in ("", none) else value


def _failed(command: str, ended: ProcessExit) -> NotSensed:
    stderr = text_tail(ended.stderr.decode(errors="replace").strip(), 500)
    return NotSensed("unreadable", f"git {command} failed: {stderr or 'it said nothing'}")
