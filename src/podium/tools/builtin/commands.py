"""`run_command` and `run_checks`: programs in a child process that ends with the call."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence

from podium.core.decisions import Access, CallOutcome, PathArgument, Tier, ToolSpec
from podium.core.errors import BadInput, ToolBroke
from podium.core.model import Json
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.platform.completion import in_thread
from podium.ports import ConfinementProvider
from podium.tools.normalization import changed_since
from podium.tools.registry import Tool, TouchedByCall
from podium.tools.scope import ToolScope

MAX_SECONDS = 1_800
GRACE_SECONDS = 15
"""The launcher ends the tree first; the toolbox only if that takes too long."""
_OUTPUT_BYTES = 200_000

# Variables through which a program can be made to run something else than what was judged.
STEERING = (
    "^(PATH|IFS|ENV|CDPATH|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|HOME|SHELL|EDITOR|VISUAL|PAGER|"
    "BROWSER|PYTHONPATH|PYTHONHOME|PYTHONSTARTUP|PYTHONINSPECT|PYTHONWARNINGS|PYTHONBREAKPOINT|"
    "NODE_OPTIONS|NODE_PATH|RUBYOPT|RUBYLIB|PERL5OPT|PERL5LIB|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|"
    "MAKEFLAGS|GCONV_PATH|LESSOPEN|LESSCLOSE|MANPAGER)$"
    "|^(LD_|DYLD_|GIT_|BASH_|SSH_|PODIUM_|NPM_CONFIG_|PIP_|UV_)"
)


async def _run_command(arguments: dict[str, Json], scope: ToolScope) -> CallOutcome:
    seconds: float = arguments["timeout_seconds"]
    await refuse_changed(scope)
    ended = await run_confined(
        scope,
        arguments["command"],
        cwd=str(scope.root / scope.relative("cwd")),
        env={name: scope.reveal(value) for name, value in arguments["env"].items()},
        limits=ProcessLimits(seconds=seconds, output_bytes=_OUTPUT_BYTES),
    )
    error = failure(ended, seconds)
    return CallOutcome(ok=not error, result=_result_of(ended, scope), error=error)


async def refuse_changed(scope: ToolScope) -> None:
    """Raise `ToolBroke` when a file that the judged commands name is not what it was then."""
    if changed := await in_thread(changed_since, scope.call.files, scope.root):
        raise ToolBroke(
            f"{changed!r} was changed after the command was judged; request the command again"
        )


async def run_confined(
    scope: ToolScope,
    command: str | Sequence[str],
    *,
    cwd: str,
    limits: ProcessLimits,
    env: dict[str, str] | None = None,
    within: ConfinementProvider | None = None,
) -> ProcessExit:
    """Run a program with its arguments, or a shell line, confined as the workspace's commands are."""
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    return await scope.launcher.run(
        ProcessSpec(
            argv=argv,
            cwd=cwd,
            env=env or {},
            limits=limits,
            confinement=await (within or scope.confinements).confinement(str(scope.root)),
        )
    )


def failure(ended: ProcessExit, seconds: float) -> str:
    """Say why the run failed; empty for a success. An exit code other than 0 is a failure."""
    stopped = [breach for breach in ended.breaches if breach.startswith("stopped")]
    if stopped or (ended.breaches and ended.exit_code):
        return "; ".join(ended.breaches)
    if ended.timed_out:
        return f"timed out after {seconds:g} seconds"
    if ended.exit_code is None:
        return f"ended by signal {ended.signal}"
    return f"exit code {ended.exit_code}" if ended.exit_code else ""


def _result_of(ended: ProcessExit, scope: ToolScope) -> dict[str, Json]:
    return {
        "exit_code": ended.exit_code,
        "stdout": scope.clean_output(ended.stdout, ended.stdout_dropped_bytes),
        "stderr": scope.clean_output(ended.stderr, ended.stderr_dropped_bytes),
        "dropped_bytes": ended.stdout_dropped_bytes + ended.stderr_dropped_bytes,
        "output_sha256": output_sha256(ended),
        **refusals(ended),
    }


def output_sha256(ended: ProcessExit) -> str:
    return hashlib.sha256(ended.stdout + b"\0" + ended.stderr).hexdigest()


def refusals(ended: ProcessExit) -> dict[str, Json]:
    """Return the programs and hosts that the sandbox refused: the program itself may not have printed them."""
    refused = {"refused_programs": ended.refused_execs, "refused_hosts": ended.refused_hosts}
    return {name: list(entries) for name, entries in refused.items() if entries}


RUN_COMMAND = Tool(
    ToolSpec(
        name="run_command",
        within_workspace="commands",
        description=(
            "Run a program in the workspace: a list of words, or a shell line. You are told exit code, stdout and stderr."
        ),
        tier=Tier.T1,
        timeout_seconds=MAX_SECONDS + GRACE_SECONDS,
        receipt_fields=("exit_code", "output_sha256"),
        paths=(PathArgument(name="cwd", access=Access.READ),),
        command_argument="command",
        input_schema={
            "type": "object",
            "properties": {
                "command": {
                    "anyOf": [
                        {"type": "string", "minLength": 1},
                        {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string"},
                            "prefixItems": [{"minLength": 1}],
                        },
                    ]
                },
                "cwd": {
                    "type": "string",
                    "default": ".",
                    "description": "Folder to run in.",
                },
                "env": {
                    "type": "object",
                    "default": {},
                    "description": "Variables to set. `secret://NAME` stands for a secret.",
                    "propertyNames": {
                        "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
                        "not": {"pattern": STEERING},
                    },
                    "additionalProperties": {"type": "string"},
                },
                "timeout_seconds": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": MAX_SECONDS,
                    "default": 120,
                },
            },
            "required": ["command"],
            "additionalProperties": False,
            "examples": [{"command": "python -m pytest -q tests/test_app.py"}],
        },
    ),
    _run_command,
)


Command = str | Sequence[str]
"""A shell line, or a program with its arguments."""

_CHECK_OUTPUT_BYTES = 4_000_000
"""Limit on the output that is kept; more is counted as dropped."""
_TAIL_CHARACTERS = 4_000
"""Failures are printed last."""
_ALL_TAILS_CHARACTERS = 16_000


def checks_tool(
    commands: Mapping[str, Command],
    env: Mapping[str, str] | None = None,
    within: ConfinementProvider | None = None,
) -> Tool:
    """The tool that runs these checks, by name, one after the other. Raises `BadInput` without any.

    `env` is set for them, `secret://NAME` allowed: what a check runs may be of the agent's making, so a tool
    that hands out secrets is of tier T2. They run confined as `within` says, else as all commands. An agent names a check; which command that is was said by whoever made the tool, and each is
    judged as a command all the same.
    """
    if not commands:
        raise BadInput("no checks to run; name at least one command")
    fixed = {
        name: command if isinstance(command, str) else tuple(command)
        for name, command in commands.items()
    }

    def chosen(arguments: dict[str, Json]) -> list[str]:
        return list(dict.fromkeys(arguments["names"])) or list(fixed)

    def touched(arguments: dict[str, Json]) -> TouchedByCall:
        return TouchedByCall(commands=tuple(fixed[name] for name in chosen(arguments)))

    async def run_checks(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        await refuse_changed(scope)
        revealed = {name: scope.reveal(value) for name, value in (env or {}).items()}
        results: list[Json] = []
        # No result may be so long that those behind it are cut off.
        share = min(_TAIL_CHARACTERS, _ALL_TAILS_CHARACTERS // len(chosen(arguments)))
        for name in chosen(arguments):
            results.append(
                await _checked(
                    name, fixed[name], arguments["timeout_seconds"], share, scope, revealed, within
                )
            )
        failed = [result["name"] for result in results if not result["passed"]]
        digests: list[Json] = [
            {name: result[name] for name in ("name", "exit_code", "output_sha256")}
            for result in results
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
    within: ConfinementProvider | None,
) -> dict[str, Json]:
    limits = ProcessLimits(seconds=seconds, output_bytes=_CHECK_OUTPUT_BYTES)
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
        **refusals(ended),
    }


def _tail(ended: ProcessExit, most: int, scope: ToolScope) -> str:
    """The end of what it wrote, errors behind the rest."""
    written = [
        scope.clean_output(ended.stdout, ended.stdout_dropped_bytes).strip(),
        scope.clean_output(ended.stderr, ended.stderr_dropped_bytes).strip(),
    ]
    text = "\n".join(part for part in written if part)
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
        timeout_seconds=len(names) * MAX_SECONDS + GRACE_SECONDS,
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
                    "maximum": MAX_SECONDS,
                    "default": 600,
                    "description": "For each of them.",
                },
            },
            "additionalProperties": False,
        },
    )
