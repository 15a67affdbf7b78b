"""Success criteria: what playbook and profile agree on, and the proof, which Podium runs itself."""

from __future__ import annotations

from itertools import count

from podium.core.decisions import CallOutcome, Refusal
from podium.core.errors import BadArguments, UnknownTool
from podium.core.folder_snapshots import WorkingFolder
from podium.core.model import Json
from podium.jobs.playbook.models import PlaybookHead, PluginProfile
from podium.jobs.playbook.run_models import PROOF, Criterion, PlaybookJob
from podium.ports import FlowContext, StepContext, Toolbox

FROM_PROFILE = "@"
"""`@test` among the success criteria is the profile's own command of that name."""


def disagreements(
    profile: PluginProfile, head: PlaybookHead
) -> list[tuple[tuple[str | int, ...], str]]:
    """What of the playbook's front matter cannot be had with this profile, each with its key."""
    faults: list[tuple[tuple[str | int, ...], str]] = []
    for at, tool in enumerate(head.allowed_tools or ()):
        if profile.allowed_tools is not None and tool not in profile.allowed_tools:
            allowed = ", ".join(profile.allowed_tools) or "none"
            faults.append(
                (
                    ("allowed_tools", at),
                    f"the profile does not allow tool {tool!r}; it allows: {allowed}",
                )
            )
    given = profile.commands.model_dump(exclude_none=True)
    for at, command in enumerate(head.success):
        if command.startswith(FROM_PROFILE) and command[1:] not in given:
            known = ", ".join(FROM_PROFILE + name for name in given) or "none"
            faults.append(
                (("success", at), f"the profile has no command {command!r}; it has: {known}")
            )
    return faults


def tools_of(profile: PluginProfile, head: PlaybookHead) -> tuple[str, ...] | None:
    """The tools that the agent may be given. None: neither file says anything about it."""
    return profile.allowed_tools if head.allowed_tools is None else head.allowed_tools


def commands_of(profile: PluginProfile, head: PlaybookHead) -> tuple[str, ...]:
    """The success criteria as commands; what the profile lacks is left out."""
    given = profile.commands.model_dump(exclude_none=True)
    written = (
        given.get(command[1:]) if command.startswith(FROM_PROFILE) else command
        for command in head.success
    )
    return tuple(command for command in written if command)


TOOL = "run_command"
MAX_SECONDS = 1_800
MAX_SAID = 4_000
MAX_ASKED = 5
"""A yes that comes too late is asked for again, so often."""


async def proved(
    ctx: FlowContext, toolbox: Toolbox, job: PlaybookJob, ground: WorkingFolder, times: int
) -> tuple[Criterion, ...]:
    """Every criterion, in the playbook's order, each judged, performed and receipted like any call.

    `times` says how often they were run before.
    """
    commands = commands_of(job.profile, job.playbook.head)
    return tuple(
        [
            await _proved(ctx, toolbox, job, ground, command, number)
            for number, command in enumerate(commands, start=times * len(commands))
        ]
    )


async def _proved(
    ctx: FlowContext,
    toolbox: Toolbox,
    job: PlaybookJob,
    ground: WorkingFolder,
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
                root=ground.root,
            )
        except (BadArguments, UnknownTool) as error:
            return CallOutcome(ok=False, error=str(error))
        return await toolbox.perform(call, step.checkpoint)

    for asked in count():
        name = f"prove.again-{asked}" if asked else "prove"
        found = await ctx.step(name, run, index=number, returns=CallOutcome | Refusal)
        if isinstance(found, CallOutcome):
            if _was_seen(found) or asked >= MAX_ASKED:
                return _criterion(command, found)
            continue
        if found.approval_id is None or asked >= MAX_ASKED:
            why = f"not run: {found.decision.reason}"
            return Criterion(command=command, met=False, why=why)
        index = number * (MAX_ASKED + 1) + asked
        await ctx.wait(f"approval:{found.approval_id}", index=index, until=found.deadline)
    raise AssertionError("askings are counted without end")


def _was_seen(outcome: CallOutcome) -> bool:
    """Whether its end is known. After a crash a person may say that it ran, which proves nothing."""
    return not outcome.ok or "exit_code" in _told(outcome)


def _told(outcome: CallOutcome) -> dict[str, Json]:
    return outcome.result if isinstance(outcome.result, dict) else {}


def _criterion(command: str, outcome: CallOutcome) -> Criterion:
    told = _told(outcome)
    said = "".join(str(told.get(part) or "") for part in ("stdout", "stderr"))
    return Criterion(
        command=command,
        met=outcome.ok and _was_seen(outcome),
        exit_code=told.get("exit_code"),
        why=_why(outcome),
        said=said[-MAX_SAID:],
        output_sha256=str(told.get("output_sha256") or ""),
        seconds=outcome.duration_seconds,
    )


def _why(outcome: CallOutcome) -> str:
    if not _was_seen(outcome):
        return "a person said that it ran, and nobody saw how it ended"
    return "" if outcome.ok else outcome.error or "it failed"
