"""Git in the workspace, with nothing of the repository let loose.

Whoever can write to `.git/config` can name programs there. Hooks, pagers, monitors and signatures
are switched off by name; content filters carry names of their own, so they are looked up first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.core.protected_paths import protected_in
from podium.tools.scope import ToolScope, inside

SECONDS = 60.0
"""Time limit of one git command."""

_OUTPUT_BYTES = 4_000_000
_INDEX_BYTES = 64_000_000
"""For a list of all files that git keeps."""

_HARDENED = (
    "git",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    # An agent's commit does not carry a person's signature.
    "-c",
    "commit.gpgSign=false",
    # A signature is looked at by a program that the repository may name.
    "-c",
    "log.showSignature=false",
    # A folder that merely looks like a repository is none.
    "-c",
    "safe.bareRepository=explicit",
)
CHANGED = ("ls-files", "-z", "--modified", "--others", "--exclude-standard")
"""Lists what differs from the index and what is not in it."""
EVERYTHING = ":/"
PATHS: Json = {
    "type": "array",
    "items": {"type": "string"},
    "default": [],
    "description": "None means all.",
}
REVISION = "^([A-Za-z0-9_@][A-Za-z0-9_./@^~{}-]*)?$"
"""Pattern of a commit, a branch, or two of them as `a..b`; never an option."""
_OF_THE_REPOSITORY = ("local", "worktree")


@dataclass(frozen=True)
class ToolRepository:
    """The repository at the workspace's root. Content filters that it configures itself never run.

    Those of a person's own configuration do: they are the person's choice.
    """

    scope: ToolScope
    filters: tuple[str, ...]
    """Names of the filters that are switched off."""

    @classmethod
    async def open(cls, scope: ToolScope) -> ToolRepository:
        """Look up the filters. Raises `ToolBroke` when there is no repository or git cannot read it."""
        _must_be_repository(scope.root)
        command = ("config", "--null", "--name-only", "--show-scope", "--includes")
        repository = cls(scope, ())
        listed = await repository.run(*command, "--get-regexp", r"^filter\.")
        if listed.exit_code not in (0, 1) or listed.stdout_dropped_bytes:
            output = repository._output_of(listed)
            raise ToolBroke(f"git config failed: {output or 'it has too many filters'}")
        return cls(scope, _names(os.fsdecode(listed.stdout)))

    async def git(self, *arguments: str, stdin: bytes = b"") -> ProcessExit:
        """Run git at the root. Raises `ToolBroke` with git's own message when it fails."""
        ended = await self.run(*arguments, stdin=stdin)
        if ended.exit_code != 0:
            raise ToolBroke(
                f"git {arguments[0]} failed: {self._output_of(ended) or 'it said nothing'}"
            )
        return ended

    async def refuse_filtered(self, pathspecs: Sequence[str]) -> None:
        """Raises `ToolBroke` when one of the changed files would have to go through such a filter.

        Git would keep it as it lies there, which is not what whoever set up the filter wants.
        """
        if not self.filters:
            return
        changed = await self.git(*CHANGED, "--", *pathspecs)
        asked = await self.git("check-attr", "-z", "--stdin", "filter", stdin=changed.stdout)
        if changed.stdout_dropped_bytes or asked.stdout_dropped_bytes:
            raise ToolBroke("too many files are changed to look at the filters of; commit fewer")
        self._check_attributes(os.fsdecode(asked.stdout).split("\0"))

    def _check_attributes(self, fields: list[str]) -> None:
        for path, name in zip(fields[:-1:3], fields[2::3], strict=True):
            if name in self.filters and os.path.lexists(self.scope.root / path):
                raise ToolBroke(
                    f"{path!r} goes through the content filter {name!r}, which the repository's own "
                    "configuration names; Podium does not run it, so leave this file to a person"
                )

    async def run(
        self, *arguments: str, stdin: bytes = b"", output_bytes: int = _OUTPUT_BYTES
    ) -> ProcessExit:
        """The same, however it ends."""
        confinement = await self._confinement()
        location = self._location_options() if confinement is None else ()
        return await self.scope.launcher.run(
            ProcessSpec(
                argv=(*_HARDENED, *location, *arguments),
                cwd=str(self.scope.root),
                stdin=stdin,
                env={
                    "GIT_CEILING_DIRECTORIES": str(self.scope.root.parent),
                    "GIT_TERMINAL_PROMPT": "0",
                    # Looking at the workspace must not write to the index.
                    "GIT_OPTIONAL_LOCKS": "0",
                    "LC_ALL": "C",
                    **self._switched_off(),
                },
                limits=ProcessLimits(seconds=SECONDS, output_bytes=output_bytes),
                confinement=confinement or Confinement(),
            )
        )

    async def _confinement(self) -> Confinement | None:
        """Return the confinement of a workspace that has a git directory of its own: the user's repository is not there inside.

        None: the folder is the user's own, and so is its repository.
        """
        confinement = await self.scope.confinements.confinement(str(self.scope.root))
        if "GIT_DIR" not in confinement.unmounted_env:
            return None
        return confinement.model_copy(update={"execs": None, "network": "none", "hosts": ()})

    def _output_of(self, ended: ProcessExit) -> str:
        output = (ended.stderr or ended.stdout).decode(errors="replace")
        return self.scope.clean(output).strip()[-1_000:]

    def _location_options(self) -> tuple[str, str]:
        """Named, never looked for: neither above, nor where the repository's configuration points."""
        return f"--git-dir={self.scope.root / '.git'}", f"--work-tree={self.scope.root}"

    async def hidden(self, *listing: str) -> list[str]:
        """Of the files that a git command lists with `-z`, those that stay out of sight.

        They lie in zones that walks pass over, they are Podium's own, or repositories themselves.
        """
        listed = await self.git(*listing)
        if listed.stdout_dropped_bytes:
            raise ToolBroke("too many files are changed to look at; name fewer paths")
        paths = os.fsdecode(listed.stdout).split("\0")[:-1]
        return [path.rstrip("/") for path in dict.fromkeys(paths) if self._is_hidden(path)]

    async def embedded(self) -> list[str]:
        """Repositories inside this one that its index knows of. Git would run what those configure."""
        listed = await self.run("ls-files", "-z", "--stage", output_bytes=_INDEX_BYTES)
        if listed.exit_code != 0 or listed.stdout_dropped_bytes:
            raise ToolBroke(f"git ls-files failed: {self._output_of(listed) or 'too many files'}")
        entries = os.fsdecode(listed.stdout).split("\0")[:-1]
        return [path for mode, _, path in map(_entry, entries) if mode == "160000"]

    def _is_hidden(self, path: str) -> bool:
        if path.endswith("/"):
            return True  # a repository inside this one, which git lists as a folder
        return protected_in(path) is not None or self.scope.passed_over(str(self.scope.root / path))

    def _switched_off(self) -> dict[str, str]:
        """Settings as variables: the name of a filter may hold `=`, which `-c` would split at."""
        settings = [
            (f"filter.{name}.{key}", value)
            for name in self.filters
            for key, value in (
                ("clean", ""),
                ("smudge", ""),
                ("process", ""),
                ("required", "false"),
            )
        ]
        variables = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings):
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        return variables


def _must_be_repository(root: Path) -> None:
    if not os.path.lexists(root / ".git"):
        raise ToolBroke("the workspace is not a git repository: it has no '.git' of its own")


def _entry(line: str) -> tuple[str, str, str]:
    """Mode, object and stage, path of a line of `ls-files --stage`."""
    facts, _, path = line.partition("\t")
    mode, _, rest = facts.partition(" ")
    return mode, rest, path


def literally(path: str) -> str:
    """The path as git is to take it: no pattern."""
    return EVERYTHING if path == "." else f":(top,literal){path}"


def pathspecs(scope: ToolScope) -> list[str]:
    """The call's `paths` as they were named: git keeps a symlink as itself and refuses to look behind it."""
    named = [use.given for use in scope.call.paths if use.argument == "paths"]
    paths = [inside(scope.root, os.path.normpath(scope.root / path), path) for path in named]
    return [literally(path) for path in paths]


def without(path: str) -> str:
    """Leaves the path out of what others name."""
    return f":(top,exclude,literal){path}"


def _names(listed: str) -> tuple[str, ...]:
    """Of scope and key in turn: filters that stand in the repository's own files."""
    fields = listed.split("\0")[:-1]
    keys = (
        key
        for scope, key in zip(fields[::2], fields[1::2], strict=True)
        if scope in _OF_THE_REPOSITORY
    )
    names = (key.removeprefix("filter.").rpartition(".")[0] for key in keys)
    return tuple(dict.fromkeys(name for name in names if name))
