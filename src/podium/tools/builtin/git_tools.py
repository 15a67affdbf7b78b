"""`git_status`, `git_diff`, `git_commit` and `git_log`.

Hooks, pagers, file-system monitors, external diffs, the repository's content filters, commands for
trailers and repositories above the workspace are out.
"""

from __future__ import annotations

import re

from podium.core.decisions import Access, PathArgument, Tier, ToolSpec
from podium.core.model import Json
from podium.tools.builtin.repository import (
    CHANGED,
    EVERYTHING,
    PATHS,
    REVISION,
    SECONDS,
    ToolRepository,
    pathspecs,
    without,
)
from podium.tools.file_changes import sha256_of
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope

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
