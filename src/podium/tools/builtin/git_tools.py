"""`git_status`, `git_diff`, `git_commit` and `git_log`, with nothing of the repository let loose.

Whoever can write to `.git/config` can name programs there. Hooks, pagers, file-system monitors, external diffs,
signatures, commands for trailers and repositories above the workspace are out; content filters carry names of their
own, so they are looked up first."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.core.decisions import Access, PathArgument, Tier, ToolSpec
from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.core.protected_paths import protected_in
from podium.tools.file_changes import sha256_of
from podium.tools.registry import Tool
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
            raise ToolBroke(
                f"git config failed: {output or 'the configuration has too many filters'}"
            )
        return cls(scope, _names(os.fsdecode(listed.stdout)))

    async def git(self, *arguments: str, stdin: bytes = b"") -> ProcessExit:
        """Run git at the root. Raises `ToolBroke` with git's own message when it fails."""
        ended = await self.run(*arguments, stdin=stdin)
        if ended.exit_code != 0:
            raise ToolBroke(f"git {arguments[0]} failed: {self._output_of(ended) or 'no output'}")
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
            raise ToolBroke(
                "too many changed files to check their content filters; commit fewer at a time"
            )
        self._check_attributes(os.fsdecode(asked.stdout).split("\0"))

    def _check_attributes(self, fields: list[str]) -> None:
        for path, name in zip(fields[:-1:3], fields[2::3], strict=True):
            if name in self.filters and os.path.lexists(self.scope.root / path):
                raise ToolBroke(
                    f"{path!r} uses the content filter {name!r} from the repository's own configuration; Podium "
                    "does not run it, so leave this file to a person"
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
            raise ToolBroke("too many changed files; name fewer paths")
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
        raise ToolBroke("the workspace is not a git repository: it has no '.git'")


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


_TRAILER = "Podium-Call"
_TRAILER_LINE = re.compile(r"[A-Za-z0-9-]+: .+")
_STAGED = ("diff", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=all")
_SEARCHED_COMMITS = "200"


async def _git_status(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    repository = await ToolRepository.open(scope)
    ended = await repository.git(
        "status",
        "--porcelain=v1",
        "--branch",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=all",
    )
    branch, *entries = ended.stdout.decode(errors="replace").rstrip("\0").split("\0")
    files = _changes(entries)
    return {"branch": _branch(branch), "clean": not files, "files": files, "count": len(files)}


def _branch(line: str) -> str:
    name = line.removeprefix("## ").removeprefix("No commits yet on ")
    return name.split("...", 1)[0]


def _changes(entries: list[str]) -> list[dict[str, Json]]:
    """A renamed or copied file is followed by an entry with the name it had before."""
    files: list[dict[str, Json]] = []
    waiting = iter(entries)
    for entry in waiting:
        change: dict[str, Json] = {"status": entry[:2].strip(), "path": entry[3:]}
        if entry[0] in "RC":
            change["from"] = next(waiting, "")
        files.append(change)
    return files


async def _git_diff(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    options = ["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"]
    if arguments["staged"]:
        options.append("--cached")
    if arguments["against"]:
        options.append(arguments["against"])
    repository = await ToolRepository.open(scope)
    named = pathspecs(scope)
    # With renames a file would be listed by one of its two names only.
    listing = ("diff", "--name-only", "-z", "--no-renames", *options, "--", *named)
    hidden = await repository.hidden(*listing)
    ended = await repository.git(
        "diff", *options, "--", *(named or [EVERYTHING]), *map(without, hidden)
    )
    return {
        "diff": scope.clean_output(ended.stdout, ended.stdout_dropped_bytes),
        "files_left_out": len(hidden),
        "bytes": len(ended.stdout) + ended.stdout_dropped_bytes,
        "sha256": sha256_of(ended.stdout),
    }


async def _git_commit(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    """The call's key stands in the commit as a trailer, so a second try finds the first."""
    repository = await ToolRepository.open(scope)
    commit = await _commit_of_this_call(repository)
    if commit is None:
        commit = await _commit(arguments["message"], repository)
    tree = await repository.git("show", "--no-patch", "--format=%T", commit)
    branch = await repository.git("rev-parse", "--abbrev-ref", "HEAD")
    return {
        "commit": commit,
        "tree": tree.stdout.decode().strip(),
        "branch": branch.stdout.decode().strip(),
    }


async def _commit(message: str, repository: ToolRepository) -> str:
    named = pathspecs(repository.scope)
    selected = named or [EVERYTHING]
    hidden = await repository.hidden(*CHANGED, "--", *selected)
    left_out = [without(path) for path in (*hidden, *await repository.embedded())]
    await repository.refuse_filtered([*selected, *left_out])
    await repository.git("add", "--all", "--", *selected, *left_out)
    staged = await repository.hidden(*_STAGED)
    only = [*selected, *map(without, staged)] if named or staged else []
    await repository.git(
        "commit",
        "--quiet",
        "--no-verify",
        "--cleanup=whitespace",
        "--file=-",
        *(["--only", "--", *only] if only else []),
        stdin=_with_trailer(message, repository.scope.key).encode(),
    )
    return (await repository.git("rev-parse", "HEAD")).stdout.decode().strip()


def _with_trailer(message: str, key: str) -> str:
    """The message with the call's key. Git's own `--trailer` would run commands from the configuration."""
    body, _, last = message.rstrip().rpartition("\n\n")
    joins = bool(body) and all(_TRAILER_LINE.fullmatch(line) for line in last.split("\n"))
    between = "\n" if joins else "\n\n"
    return f"{message.rstrip()}{between}{_TRAILER}: {key}\n"


async def _commit_of_this_call(repository: ToolRepository) -> str | None:
    born = await repository.run("rev-parse", "--verify", "--quiet", "HEAD")
    if born.exit_code != 0:
        return None
    line = f"%H %(trailers:key={_TRAILER},valueonly,separator=%x20)"
    log = await repository.git("log", f"--max-count={_SEARCHED_COMMITS}", f"--format={line}")
    for commit, _, keys in (row.partition(" ") for row in log.stdout.decode().splitlines()):
        if repository.scope.key in keys.split(" "):
            return commit
    return None


GIT_STATUS = Tool(
    ToolSpec(
        name="git_status",
        offered="in_git",
        description="What is changed, staged or untracked in the workspace.",
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=SECONDS + 10,
        receipt_fields=("branch", "clean", "count"),
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    ),
    _git_status,
)

GIT_DIFF = Tool(
    ToolSpec(
        name="git_diff",
        offered="in_git",
        description="Changes in the workspace, or against a commit.",
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=SECONDS + 10,
        receipt_fields=("bytes", "sha256"),
        paths=(PathArgument(name="paths", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "staged": {"type": "boolean", "default": False},
                "against": {
                    "type": "string",
                    "default": "",
                    "pattern": REVISION,
                    "description": "A commit or branch, or two of them as `a..b`.",
                },
                "paths": PATHS,
            },
            "additionalProperties": False,
        },
    ),
    _git_diff,
)

GIT_COMMIT = Tool(
    ToolSpec(
        name="git_commit",
        offered="in_git",
        within_workspace="files",
        description="Commit the listed paths, or all changes, on the current branch.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=5 * SECONDS,
        receipt_fields=("commit", "tree", "branch"),
        paths=(PathArgument(name="paths", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "message": {"type": "string", "minLength": 1, "maxLength": 20_000},
                "paths": PATHS,
            },
            "required": ["message"],
            "additionalProperties": False,
        },
    ),
    _git_commit,
)


# No commit has a NUL in it. Addresses of people are left out: nobody needs them to read a history.
_FIELDS = ("commit", "author", "date", "subject", "body")
_FORMAT = "tformat:%H%x00%an%x00%aI%x00%s%x00%b"
_MAX_LINE = 300
_MAX_BODY = 1_000


async def _git_log(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    repository = await ToolRepository.open(scope)
    revision: str = arguments["revision"] or "HEAD"
    limit: int = arguments["limit"]
    if not arguments["revision"]:
        born = await repository.run("rev-parse", "--verify", "--quiet", "HEAD")
        if born.exit_code != 0:
            return {"commits": [], "count": 0, "complete": True}
    ended = await repository.git(
        "log",
        "-z",
        f"--format={_FORMAT}",
        f"--max-count={limit + 1}",
        f"--skip={arguments['skip']}",
        "--no-color",
        "--no-decorate",
        "--no-notes",
        "--end-of-options",
        revision,
        "--",
        *pathspecs(scope),
    )
    fields = ended.stdout.decode(errors="replace").split("\0")[:-1]
    whole = len(fields) // len(_FIELDS)
    commits = [
        _logged_commit(fields[at : at + len(_FIELDS)], scope)
        for at in range(0, whole * len(_FIELDS), len(_FIELDS))
    ]
    complete = len(commits) <= limit and not ended.stdout_dropped_bytes
    return {"commits": commits[:limit], "count": len(commits[:limit]), "complete": complete}


def _logged_commit(fields: list[str], scope: ToolScope) -> dict[str, Json]:
    commit: dict[str, Json] = {}
    for name, value in zip(_FIELDS, fields, strict=True):
        most = _MAX_BODY if name == "body" else _MAX_LINE
        text = scope.clean(value).strip()
        commit[name] = text if len(text) <= most else f"{text[:most]} [cut: {len(text)} characters]"
    return commit


GIT_LOG = Tool(
    ToolSpec(
        name="git_log",
        offered="in_git",
        description="Commits of the workspace's repository, the newest first.",
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=SECONDS + 10,
        receipt_fields=("count", "complete"),
        paths=(PathArgument(name="paths", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "revision": {
                    "type": "string",
                    "default": "",
                    "pattern": REVISION,
                    "description": "Where to begin, or two places as `a..b`.",
                },
                "paths": PATHS,
                "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 20},
                "skip": {"type": "integer", "minimum": 0, "maximum": 1_000_000, "default": 0},
            },
            "additionalProperties": False,
        },
    ),
    _git_log,
)
