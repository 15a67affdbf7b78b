"""`run_command`: a program or a shell line, in a child that ends with the call."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from podium.domain.errors import ToolBroke
from podium.domain.gating import Access, Outcome, PathArgument, Tier, ToolSpec
from podium.domain.launching import Ended, ProcessLimits, Spawn
from podium.domain.model import Json
from podium.ports import Enclosures
from podium.tools.command_files import changed_since
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope, in_thread

LONGEST_SECONDS = 1_800
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


async def _run_command(arguments: dict[str, Json], scope: ToolScope) -> Outcome:
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
    return Outcome(ok=not error, result=_told(ended, scope), error=error)


async def refuse_changed(scope: ToolScope) -> None:
    """Raise `ToolBroke` when a file that the judged commands name is not what it was then."""
    if changed := await in_thread(changed_since, scope.call.files, scope.root):
        raise ToolBroke(f"{changed!r} was changed since the command was judged; ask for it again")


async def run_confined(
    scope: ToolScope,
    command: str | Sequence[str],
    *,
    cwd: str,
    limits: ProcessLimits,
    env: dict[str, str] | None = None,
    within: Enclosures | None = None,
) -> Ended:
    """Run a program with its words, or a shell line, confined as the workspace's commands are."""
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
    return await scope.launcher.run(
        Spawn(
            argv=argv,
            cwd=cwd,
            env=env or {},
            limits=limits,
            confinement=await (within or scope.enclosures).confinement(str(scope.root)),
        )
    )


def failure(ended: Ended, seconds: float) -> str:
    """Why this is no success. A program that says it failed has failed."""
    stopped = [breach for breach in ended.breaches if breach.startswith("stopped")]
    if stopped or (ended.breaches and ended.exit_code):
        return "; ".join(ended.breaches)
    if ended.timed_out:
        return f"timed out after {seconds:g} seconds"
    if ended.exit_code is None:
        return f"ended by signal {ended.signal}"
    return f"exit code {ended.exit_code}" if ended.exit_code else ""


def _told(ended: Ended, scope: ToolScope) -> dict[str, Json]:
    return {
        "exit_code": ended.exit_code,
        "stdout": scope.clean_output(ended.stdout, ended.stdout_dropped_bytes),
        "stderr": scope.clean_output(ended.stderr, ended.stderr_dropped_bytes),
        "dropped_bytes": ended.stdout_dropped_bytes + ended.stderr_dropped_bytes,
        "output_sha256": output_sha256(ended),
        **kept_out(ended),
    }


def output_sha256(ended: Ended) -> str:
    return hashlib.sha256(ended.stdout + b"\0" + ended.stderr).hexdigest()


def kept_out(ended: Ended) -> dict[str, Json]:
    """What the sandbox refused, where it did: the program itself may not have told."""
    found = {"refused_programs": ended.refused_execs, "refused_hosts": ended.refused_hosts}
    return {name: list(given) for name, given in found.items() if given}


RUN_COMMAND = Tool(
    ToolSpec(
        name="run_command",
        within_workspace="commands",
        description=(
            "Run a program in the workspace: a list of words, or a shell line. You are told exit code, "
            "stdout and stderr."
        ),
        tier=Tier.T1,
        timeout_seconds=LONGEST_SECONDS + GRACE_SECONDS,
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
                    "maximum": LONGEST_SECONDS,
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
