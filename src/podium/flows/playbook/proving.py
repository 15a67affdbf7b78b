"""Proof: Podium runs the playbook's criteria itself, whatever the agent said."""

from __future__ import annotations

from itertools import count

from podium.domain.errors import BadArguments, UnknownTool
from podium.domain.gating import Outcome, Refusal
from podium.domain.model import Json
from podium.domain.playbook_runs import PROOF, Criterion, Ground, PlaybookJob
from podium.flows.playbook.agreeing import commands_of
from podium.ports import FlowContext, Step, Toolbox

TOOL = "run_command"
LONGEST_SECONDS = 1_800
LONGEST_SAID = 4_000
MOST_ASKED = 5
"""A yes that comes too late is asked for again, so often."""


async def proved(
    ctx: FlowContext, toolbox: Toolbox, job: PlaybookJob, ground: Ground, times: int
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
    ground: Ground,
    command: str,
    number: int,
) -> Criterion:
    async def run(step: Step) -> Outcome | Refusal:
        arguments: dict[str, Json] = {
            "command": command,
            "env": dict(job.profile.secrets),
            "timeout_seconds": LONGEST_SECONDS,
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
            return Outcome(ok=False, error=str(error))
        return await toolbox.perform(call, step.checkpoint)

    for asked in count():
        name = f"prove.again-{asked}" if asked else "prove"
        found = await ctx.step(name, run, index=number, returns=Outcome | Refusal)
        if isinstance(found, Outcome):
            if _was_seen(found) or asked >= MOST_ASKED:
                return _criterion(command, found)
            continue
        if found.approval_id is None or asked >= MOST_ASKED:
            why = f"not run: {found.decision.reason}"
            return Criterion(command=command, met=False, why=why)
        index = number * (MOST_ASKED + 1) + asked
        await ctx.wait(f"approval:{found.approval_id}", index=index, until=found.deadline)
    raise AssertionError("askings are counted without end")


def _was_seen(outcome: Outcome) -> bool:
    """Whether its end is known. After a crash a person may say that it ran, which proves nothing."""
    return not outcome.ok or "exit_code" in _told(outcome)


def _told(outcome: Outcome) -> dict[str, Json]:
    return outcome.result if isinstance(outcome.result, dict) else {}


def _criterion(command: str, outcome: Outcome) -> Criterion:
    told = _told(outcome)
    said = "".join(str(told.get(part) or "") for part in ("stdout", "stderr"))
    return Criterion(
        command=command,
        met=outcome.ok and _was_seen(outcome),
        exit_code=told.get("exit_code"),
        why=_why(outcome),
        said=said[-LONGEST_SAID:],
        output_sha256=str(told.get("output_sha256") or ""),
        seconds=outcome.duration_seconds,
    )


def _why(outcome: Outcome) -> str:
    if not _was_seen(outcome):
        return "a person said that it ran, and nobody saw how it ended"
    return "" if outcome.ok else outcome.error or "it failed"
