"""Success criteria: what playbook and profile agree on, and the proof, which Podium runs itself."""

from __future__ import annotations

from itertools import count

from podium.core.decisions import CallOutcome, Refusal
from podium.core.errors import BadArguments, UnknownTool
from podium.core.folder_snapshots import WorkingFolder
from podium.core.model import Json
from podium.jobs.playbook.models import PROOF, Criterion, PlaybookHead, PlaybookJob, PluginProfile
from podium.ports import FlowContext, StepContext, Toolbox

FROM_PROFILE = "@"
"""`@test` among the success criteria is the profile's own command of that name."""


def disagreements(
    profile: PluginProfile, head: PlaybookHead
) -> list[tuple[tuple[str | int, ...], str]]:
    """List what the playbook's front matter asks for and the profile lacks, each with its key."""
    problems: list[tuple[tuple[str | int, ...], str]] = []
    for at, tool in enumerate(head.allowed_tools or ()):
        if profile.allowed_tools is not None and tool not in profile.allowed_tools:
            allowed = ", ".join(profile.allowed_tools) or "none"
            problems.append(
                (
                    ("allowed_tools", at),
                    f"the profile does not allow tool {tool!r}; it allows: {allowed}",
                )
            )
    profile_commands = profile.commands.model_dump(exclude_none=True)
    for at, command in enumerate(head.success):
        if command.startswith(FROM_PROFILE) and command[1:] not in profile_commands:
            listing = ", ".join(FROM_PROFILE + name for name in profile_commands) or "none"
            problems.append(
                (("success", at), f"the profile has no command {command!r}; it has: {listing}")
            )
    return problems


def tools_of(profile: PluginProfile, head: PlaybookHead) -> tuple[str, ...] | None:
    """Return the allowed tools. None: neither file restricts them."""
    return profile.allowed_tools if head.allowed_tools is None else head.allowed_tools


def commands_of(profile: PluginProfile, head: PlaybookHead) -> tuple[str, ...]:
    """Return the success criteria as commands; those that the profile lacks are left out."""
    profile_commands = profile.commands.model_dump(exclude_none=True)
    written = (
        profile_commands.get(command[1:]) if command.startswith(FROM_PROFILE) else command
        for command in head.success
    )
    return tuple(command for command in written if command)


TOOL = "run_command"
MAX_SECONDS = 1_800
MAX_OUTPUT = 4_000
MAX_ASKED = 5
"""Limit of repeated approvals after one that came too late."""


async def run_criteria(
    ctx: FlowContext, toolbox: Toolbox, job: PlaybookJob, folder: WorkingFolder, times: int
) -> tuple[Criterion, ...]:
    """Run every criterion in the playbook's order, each decided, performed and receipted like any call.

    `times` is the number of earlier runs.
    """
    commands = commands_of(job.profile, job.playbook.head)
    return tuple(
        [
            await _run_criterion(ctx, toolbox, job, folder, command, number)
            for number, command in enumerate(commands, start=times * len(commands))
        ]
    )


async def _run_criterion(
    ctx: FlowContext,
    toolbox: Toolbox,
    job: PlaybookJob,
    folder: WorkingFolder,
    command: str,
    number: int,
) -> Criterion:
    async def run(step: StepContext) -> CallOutcome | Refusal:
        arguments: dict[str, Json] = {
            "command": command,
            "env": dict(job.profile.secrets),
            "timeout_seconds": MAX_SECONDS,
        }
        try:
            call = toolbox.normalise(
                TOOL,
                arguments,
                run_id=step.run_id,
                step_key=step.key,
                index=0,
                role=PROOF,
                root=folder.root,
            )
        except (BadArguments, UnknownTool) as error:
            return CallOutcome(ok=False, error=str(error))
        return await toolbox.perform(call, step.checkpoint)

    for asked in count():
        name = f"prove.again-{asked}" if asked else "prove"
        outcome = await ctx.step(name, run, index=number, returns=CallOutcome | Refusal)
        if isinstance(outcome, CallOutcome):
            if _end_observed(outcome) or asked >= MAX_ASKED:
                return _criterion(command, outcome)
            continue
        if outcome.approval_id is None or asked >= MAX_ASKED:
            why = f"not run: {outcome.decision.reason}"
            return Criterion(command=command, met=False, why=why)
        index = number * (MAX_ASKED + 1) + asked
        await ctx.wait(f"approval:{outcome.approval_id}", index=index, until=outcome.deadline)
    raise AssertionError("askings are counted without end")


def _end_observed(outcome: CallOutcome) -> bool:
    """Check if its end was observed. After a crash a person may say that it ran, which proves nothing."""
    return not outcome.ok or "exit_code" in _result_of(outcome)


def _result_of(outcome: CallOutcome) -> dict[str, Json]:
    return outcome.result if isinstance(outcome.result, dict) else {}


def _criterion(command: str, outcome: CallOutcome) -> Criterion:
    result = _result_of(outcome)
    output = "".join(str(result.get(part) or "") for part in ("stdout", "stderr"))
    return Criterion(
        command=command,
        met=outcome.ok and _end_observed(outcome),
        exit_code=result.get("exit_code"),
        why=_why(outcome),
        said=output[-MAX_OUTPUT:],
        output_sha256=str(result.get("output_sha256") or ""),
        seconds=outcome.duration_seconds,
    )


def _why(outcome: CallOutcome) -> str:
    if not _end_observed(outcome):
        return "a person confirmed that it ran, but its result is unknown"
    return "" if outcome.ok else outcome.error or "it failed"
