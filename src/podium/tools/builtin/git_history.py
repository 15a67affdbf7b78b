"""`git_log`: the commits that led here, as plain fields."""

from __future__ import annotations

from podium.domain.gating import Access, PathArgument, Tier, ToolSpec
from podium.domain.model import Json
from podium.tools.builtin.repository import PATHS, REVISION, SECONDS, Repository, pathspecs
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope

# No commit has a NUL in it. Addresses of people are left out: nobody needs them to read a history.
_FIELDS = ("commit", "author", "date", "subject", "body")
_FORMAT = "tformat:%H%x00%an%x00%aI%x00%s%x00%b"
_LONGEST_LINE = 300
_LONGEST_BODY = 1_000


async def _git_log(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    repository = await Repository.open(scope)
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
    found = [
        _commit(fields[at : at + len(_FIELDS)], scope)
        for at in range(0, whole * len(_FIELDS), len(_FIELDS))
    ]
    complete = len(found) <= limit and not ended.stdout_dropped_bytes
    return {"commits": found[:limit], "count": len(found[:limit]), "complete": complete}


def _commit(fields: list[str], scope: ToolScope) -> dict[str, Json]:
    told: dict[str, Json] = {}
    for name, value in zip(_FIELDS, fields, strict=True):
        most = _LONGEST_BODY if name == "body" else _LONGEST_LINE
        text = scope.clean(value).strip()
        told[name] = text if len(text) <= most else f"{text[:most]} [cut: {len(text)} characters]"
    return told


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
