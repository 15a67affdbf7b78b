"""`git_status`, `git_diff`, `git_commit`: git in the workspace, with nothing of it let loose.

Hooks, pagers, file-system monitors, external diffs and repositories above the workspace are out.
"""

from __future__ import annotations

import os

from podium.domain.errors import ToolBroke
from podium.domain.gating import Access, PathArgument, Tier, ToolSpec
from podium.domain.launching import Ended, ProcessLimits, Spawn
from podium.domain.model import Json
from podium.tools.kept import sha256_of
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope, inside

_HARDENED = (
    "git",
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    # An agent's commit does not carry a person's signature.
    "-c",
    "commit.gpgSign=false",
)
_SECONDS = 60.0
_TRAILER = "Podium-Call"
_SEARCHED_COMMITS = "200"


async def _git(scope: ToolScope, *words: str, stdin: bytes = b"") -> Ended:
    """Run git at the root. Raises `ToolBroke` with git's own words when it fails."""
    ended = await _run(scope, *words, stdin=stdin)
    if ended.exit_code != 0:
        said = (ended.stderr or ended.stdout).decode(errors="replace").strip()
        raise ToolBroke(f"git {words[0]} failed: {said[-1_000:] or 'it said nothing'}")
    return ended


async def _run(scope: ToolScope, *words: str, stdin: bytes = b"") -> Ended:
    return await scope.launcher.run(
        Spawn(
            argv=(*_HARDENED, *words),
            cwd=str(scope.root),
            stdin=stdin,
            env={
                "GIT_CEILING_DIRECTORIES": str(scope.root.parent),
                "GIT_TERMINAL_PROMPT": "0",
                # Looking at the workspace must not write to the index.
                "GIT_OPTIONAL_LOCKS": "0",
                "LC_ALL": "C",
            },
            limits=ProcessLimits(seconds=_SECONDS, output_bytes=4_000_000),
        )
    )


async def _git_status(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    ended = await _git(
        scope,
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
    words = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"]
    if arguments["staged"]:
        words.append("--cached")
    if arguments["against"]:
        words.append(arguments["against"])
    ended = await _git(scope, *words, "--", *_pathspecs(scope))
    return {
        "diff": ended.stdout.decode(errors="replace"),
        "bytes": len(ended.stdout) + ended.stdout_dropped_bytes,
        "sha256": sha256_of(ended.stdout),
    }


async def _git_commit(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    """The call's key stands in the commit as a trailer, so a second try finds the first."""
    commit = await _commit_of_this_call(scope)
    if commit is None:
        commit = await _commit(arguments["message"], scope)
    shown = await _git(scope, "show", "--no-patch", "--format=%T", commit)
    branch = await _git(scope, "rev-parse", "--abbrev-ref", "HEAD")
    return {
        "commit": commit,
        "tree": shown.stdout.decode().strip(),
        "branch": branch.stdout.decode().strip(),
    }


async def _commit(message: str, scope: ToolScope) -> str:
    pathspecs = _pathspecs(scope)
    await _git(scope, "add", "--all", "--", *(pathspecs or ["."]))
    await _git(
        scope,
        "commit",
        "--quiet",
        "--no-verify",
        "--cleanup=whitespace",
        "--file=-",
        f"--trailer={_TRAILER}: {scope.key}",
        *(["--only", "--", *pathspecs] if pathspecs else []),
        stdin=message.encode(),
    )
    return (await _git(scope, "rev-parse", "HEAD")).stdout.decode().strip()


async def _commit_of_this_call(scope: ToolScope) -> str | None:
    born = await _run(scope, "rev-parse", "--verify", "--quiet", "HEAD")
    if born.exit_code != 0:
        return None
    line = f"%H %(trailers:key={_TRAILER},valueonly,separator=%x20)"
    log = await _git(scope, "log", f"--max-count={_SEARCHED_COMMITS}", f"--format={line}")
    for commit, _, keys in (row.partition(" ") for row in log.stdout.decode().splitlines()):
        if scope.key in keys.split(" "):
            return commit
    return None


def _pathspecs(scope: ToolScope) -> list[str]:
    """The paths as they were named: git keeps a symlink as itself and refuses to look behind it."""
    named = [use.given for use in scope.call.paths if use.argument == "paths"]
    return [inside(scope.root, os.path.normpath(scope.root / given), given) for given in named]


_PATHS = {
    "type": "array",
    "items": {"type": "string"},
    "default": [],
    "description": "Relative to the workspace; none means all.",
}

GIT_STATUS = Tool(
    ToolSpec(
        name="git_status",
        description="What is changed, staged or untracked in the workspace.",
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=_SECONDS + 10,
        receipt_fields=("branch", "clean", "count"),
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    ),
    _git_status,
)

GIT_DIFF = Tool(
    ToolSpec(
        name="git_diff",
        description="Changes in the workspace, or against a commit.",
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=_SECONDS + 10,
        receipt_fields=("bytes", "sha256"),
        paths=(PathArgument(name="paths", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "staged": {"type": "boolean", "default": False},
                "against": {
                    "type": "string",
                    "default": "",
                    "pattern": "^([A-Za-z0-9_@][A-Za-z0-9_./@^~{}-]*)?$",
                    "description": "A commit or branch, or two of them as `a..b`.",
                },
                "paths": _PATHS,
            },
            "additionalProperties": False,
        },
    ),
    _git_diff,
)

GIT_COMMIT = Tool(
    ToolSpec(
        name="git_commit",
        description="Commit the listed paths, or all changes, on the current branch.",
        tier=Tier.T1,
        idempotent=True,
        timeout_seconds=5 * _SECONDS,
        receipt_fields=("commit", "tree", "branch"),
        paths=(PathArgument(name="paths", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "message": {"type": "string", "minLength": 1, "maxLength": 20_000},
                "paths": _PATHS,
            },
            "required": ["message"],
            "additionalProperties": False,
        },
    ),
    _git_commit,
)
