"""Flow of the pipeline: a task becomes a reviewed branch and a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from podium.app.checks import (
    ADVICE,
    Detection,
    cannot_test,
    detect_in,
    missing_programs,
    probe_in,
    remedy_for,
)
from podium.core.errors import NeedsHuman, NotPossibleNow
from podium.core.events import NoteTaken
from podium.core.forge import Preflight
from podium.core.model import Json
from podium.core.workspaces import WorkspaceRecord
from podium.jobs.pipeline.deps import PipelineJob, PipelineKit
from podium.jobs.pipeline.feedback import hear_feedback
from podium.jobs.pipeline.handover import deliver
from podium.jobs.pipeline.quoted_files import conventions_of
from podium.jobs.pipeline.skills import offer_skill
from podium.jobs.pipeline.spec import DELIVER
from podium.jobs.pipeline.stage import visit
from podium.jobs.pipeline.state import Desk, Found, Trip, task_name
from podium.jobs.pipeline.verdict_routing import integration_of, next_stage
from podium.jobs.pipeline.workspace_recovery import come_back
from podium.ports import FlowBody, FlowContext, StepContext


def pipeline(kit: PipelineKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def run_pipeline(ctx: FlowContext, job: PipelineJob) -> Json:
        await _look_at_the_remote(ctx, kit, job)
        desk = await _set_up(ctx, kit, job)
        stage = job.spec.mode(job.mode).start
        while True:
            while stage != DELIVER:
                settled = await visit(desk, stage)
                await hear_feedback(desk, stage, settled)
                await offer_skill(desk, stage, settled)
                stage = await next_stage(desk, stage, settled)
            report = await deliver(desk)
            if report is not None:
                return report
            stage = integration_of(job.spec) or DELIVER

    return run_pipeline


async def _look_at_the_remote(ctx: FlowContext, kit: PipelineKit, job: PipelineJob) -> None:
    async def look(step: StepContext) -> Preflight:
        found = await kit.forge.preflight(job.repository, job.base)
        if job.spec.action_on(found.finding) == "abort":
            raise NotPossibleNow(
                f"{found.sentence} To go on all the same, say `flows: pipeline: remote: warn`"
            )
        return found

    found: Preflight = await ctx.step("preflight", look, returns=Preflight)
    ctx.note(NoteTaken(text=found.sentence))


async def _set_up(ctx: FlowContext, kit: PipelineKit, job: PipelineJob) -> Desk:
    """Branch and workspace, at once and once."""

    async def make(step: StepContext) -> WorkspaceRecord:
        name = task_name(job.task, step.run_id)
        for known in kit.workspaces.known():
            if known.run_id == step.run_id:
                return known
        for left in await kit.workspaces.leftovers():
            if left.task == name:
                await kit.workspaces.clear(left.id)
        wish = kit.wish(name, base=job.base, branch=f"task/{name}", run_id=step.run_id)
        return (await kit.workspaces.create(wish)).record

    record: WorkspaceRecord = await ctx.step("workspace", make, returns=WorkspaceRecord)
    workspace = await come_back(kit, job, ctx.run.id, record)
    await ctx.pin()
    trip = Trip(job=job, run_id=ctx.run.id, workspace=workspace, head=record.base, base=record.base)
    for warning in job.warnings:
        ctx.note(NoteTaken(text=warning))
    ctx.note(NoteTaken(text=f"Created branch {trip.branch!r} in {record.path}."))

    async def find_checks(step: StepContext) -> Found:
        ignored = tuple(await workspace.ignored())
        found = await _usable_checks(trip, kit)
        conventions = await conventions_of(workspace)
        return Found(**found.model_dump(), ignored=ignored, conventions=conventions)

    # Before any agent has been here: a project must not be able to lose its checks on the way.
    desk = Desk(ctx, kit, trip, await ctx.step("find-checks", find_checks, returns=Found))
    for text in _about_checks(desk):
        ctx.note(NoteTaken(text=text))
    return desk


async def _usable_checks(trip: Trip, kit: PipelineKit) -> Detection:
    """What the project's files speak of, where podium.yaml names nothing.

    Raises `NeedsHuman` where tests are there and nothing can run them: no agent is paid for work that cannot be tested.
    """
    workspace, named = trip.workspace, kit.checks()
    if named is None:
        found = await detect_in(workspace, kit.run_check)
        missing = () if found.checks else found.not_installed
        remedy = remedy_for(found, Path(trip.job.repository)) if missing else ""
    else:
        found, remedy = Detection(), ""
        missing = await missing_programs(named, probe_in(workspace, kit.run_check))
    if missing:
        how = f"; then `podium resume {trip.run_id}` (no agent was started)"
        raise NeedsHuman(f"{cannot_test(missing, remedy)}{how}")
    return found


def _about_checks(desk: Desk) -> Iterator[str]:
    """What a person should know at the start: which checks there are, and which cannot be run."""
    for text in desk.found.not_installed:
        yield f"Not run: {text}. To run it, install that, or name other `checks:`; {ADVICE}."
    for text in desk.found.not_read:
        yield f"Checks may be missing: {text}."
    for check in desk.checks:
        if check.source:
            yield f"`checks:` names none; found in {check.source}: `{check.command}`."
    if not desk.checks:
        yield f"No checks were found, so nothing will be tested. Name them under `checks:` in podium.yaml; {ADVICE}."
