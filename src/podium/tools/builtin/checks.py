"""`run_checks`: the checks that a person named, run as they are and told as evidence."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from podium.domain.errors import BadInput
from podium.domain.gating import Tier, ToolSpec
from podium.domain.launching import Ended, ProcessLimits
from podium.domain.model import Json
from podium.ports import Enclosures
from podium.tools.builtin.commands import (
    GRACE_SECONDS,
    LONGEST_SECONDS,
    failure,
    kept_out,
    output_sha256,
    refuse_changed,
    run_confined,
)
from podium.tools.registry import Tool, Touched
from podium.tools.scope import ToolScope

Command = str | Sequence[str]
"""A shell line, or a program with its words."""

_OUTPUT_BYTES = 4_000_000
"""How much of an output is looked at; more is counted as dropped."""
_TAIL_CHARACTERS = 4_000
"""Failures are told last."""
_ALL_TAILS_CHARACTERS = 16_000


def checks_tool(
    commands: Mapping[str, Command],
    env: Mapping[str, str] | None = None,
    within: Enclosures | None = None,
) -> Tool:
    """The tool that runs these checks, by name, one after the other. Raises `BadInput` without any.

    `env` is set for them, `secret://NAME` allowed: what a check runs may be of the agent's making, so a tool
    that hands out secrets is of tier T2. They run in the fences `within`, else in those of all commands. An agent names a check; which command that is was said by whoever made the tool, and each is
    judged as a command all the same.
    """
    if not commands:
        raise BadInput("there are no checks to run; name at least one command")
    fixed = {
        name: command if isinstance(command, str) else tuple(command)
        for name, command in commands.items()
    }

    def chosen(arguments: dict[str, Json]) -> list[str]:
        return list(dict.fromkeys(arguments["names"])) or list(fixed)

    def touched(arguments: dict[str, Json]) -> Touched:
        return Touched(commands=tuple(fixed[name] for name in chosen(arguments)))

    async def run_checks(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        await refuse_changed(scope)
        given = {name: scope.reveal(value) for name, value in (env or {}).items()}
        results: list[Json] = []
        # No result may be so long that those behind it are cut off.
        share = min(_TAIL_CHARACTERS, _ALL_TAILS_CHARACTERS // len(chosen(arguments)))
        for name in chosen(arguments):
            results.append(
                await _checked(
                    name, fixed[name], arguments["timeout_seconds"], share, scope, given, within
                )
            )
        failed = [each["name"] for each in results if not each["passed"]]
        digests: list[Json] = [
            {name: each[name] for name in ("name", "exit_code", "output_sha256")}
            for each in results
        ]
        return {
            "passed": not failed,
            "failed": failed,
            "checks": results,
            "evidence": digests,
        }

    spec = _spec(list(fixed), Tier.T2 if env else Tier.T1)
    return Tool(spec, run_checks, touches=touched)


async def _checked(
    name: str,
    command: Command,
    seconds: float,
    most: int,
    scope: ToolScope,
    env: dict[str, str],
    within: Enclosures | None,
) -> dict[str, Json]:
    limits = ProcessLimits(seconds=seconds, output_bytes=_OUTPUT_BYTES)
    ended = await run_confined(
        scope, command, cwd=str(scope.root), limits=limits, env=env, within=within
    )
    error = failure(ended, seconds)
    return {
        "name": name,
        "command": command if isinstance(command, str) else shlex.join(command),
        "passed": not error,
        "error": error,
        "exit_code": ended.exit_code,
        "seconds": round(ended.seconds, 3),
        "output": _tail(ended, most, scope),
        "dropped_bytes": ended.stdout_dropped_bytes + ended.stderr_dropped_bytes,
        "output_sha256": output_sha256(ended),
        **kept_out(ended),
    }


def _tail(ended: Ended, most: int, scope: ToolScope) -> str:
    """The end of what it wrote, errors behind the rest."""
    written = [
        scope.clean_output(ended.stdout, ended.stdout_dropped_bytes).strip(),
        scope.clean_output(ended.stderr, ended.stderr_dropped_bytes).strip(),
    ]
    text = "\n".join(each for each in written if each)
    if len(text) <= most:
        return text
    return f"[cut: {len(text)} characters in all]\n{text[len(text) - most :]}"


def _spec(names: list[str], tier: Tier) -> ToolSpec:
    listed: list[Json] = [*names]
    return ToolSpec(
        name="run_checks",
        within_workspace="commands",
        description=(
            "Run checks of the project. You are told which passed, and the output of those that failed."
        ),
        tier=tier,
        timeout_seconds=len(names) * LONGEST_SECONDS + GRACE_SECONDS,
        receipt_fields=("passed", "failed", "evidence"),
        input_schema={
            "type": "object",
            "properties": {
                "names": {
                    "type": "array",
                    "items": {"type": "string", "enum": listed},
                    "maxItems": 2 * len(names),
                    "default": [],
                    "description": "Which; none means all.",
                },
                "timeout_seconds": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": LONGEST_SECONDS,
                    "default": 600,
                    "description": "For each of them.",
                },
            },
            "additionalProperties": False,
        },
    )
