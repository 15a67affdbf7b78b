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
from podium.jobs.pipeline.base_checks import check_base
from podium.jobs.pipeline.feedback import triage_feedback
from podium.jobs.pipeline.follow_up import follow_pull_request
from podium.jobs.pipeline.handover import deliver, reopen_history
from podium.jobs.pipeline.issue_claim import ClaimKeeper, kept_claim
from podium.jobs.pipeline.quoted_files import conventions_of
from podium.jobs.pipeline.skills import offer_skill
from podium.jobs.pipeline.spec import DELIVER
from podium.jobs.pipeline.stage import run_stage
from podium.jobs.pipeline.state import (
    Baseline,
    PipelineDeps,
    PipelineJob,
    PipelineState,
    StageContext,
    task_name,
)
from podium.jobs.pipeline.verdict_routes import integration_of, next_stage
from podium.jobs.pipeline.workspace_recovery import recovering
from podium.ports import EventQuery, FlowBody, FlowContext, StepContext


def pipeline(deps: PipelineDeps) -> FlowBody:
    """Build the flow with its dependencies."""

    async def run_pipeline(ctx: FlowContext, job: PipelineJob) -> Json:
        work = None
        if job.issue is not None and job.issue.is_claimed and not await _is_delivered(deps, ctx):
            issue = job.issue
            work = await deps.issue_work(
                job.repository, job.base, issue.number, ctx.run.id, issue.claimed_by
            )
        async with kept_claim(work) as claim:
            return await run_stages(ctx, job, claim)

    async def run_stages(ctx: FlowContext, job: PipelineJob, claim: ClaimKeeper) -> Json:
        await look_at_the_remote(ctx, deps, job)
        context = await _set_up(ctx, deps, job)
        if not job.start_at:
            context = await check_base(context)
        stage = job.start or job.spec.mode(job.mode).start
        while True:
            while stage != DELIVER:
                await claim.confirm()
                context, settled = await run_stage(context, stage)
                context = await triage_feedback(context, stage, settled)
                context = await offer_skill(context, stage, settled)
                context, stage = await next_stage(context, stage, settled)
            await claim.confirm()
            context, report = await deliver(context)
            stage = integration_of(job.spec) or DELIVER
            if report is not None:
                claim.end()
                context, report, stage = await follow_pull_request(context, report)
            if report is not None:
                return report
            context = await reopen_history(context)

    return run_pipeline


async def _is_delivered(deps: PipelineDeps, ctx: FlowContext) -> bool:
    """Tell whether the run has opened its pull request: the claim on its issue ends with that."""
    query = EventQuery(run_id=ctx.run.id, types=("branch_delivered",), limit=1)
    return bool(await deps.journal.read(query))


async def look_at_the_remote(ctx: FlowContext, deps: PipelineDeps, job: PipelineJob) -> None:
    async def look(step: StepContext) -> Preflight:
        preflight = await deps.forge.preflight(job.repository, job.base)
        if job.spec.action_on(preflight.finding) == "abort":
            raise NotPossibleNow(
                f"{preflight.sentence} To continue anyway, set `flows: pipeline: remote: warn` in podium.yaml"
            )
        return preflight

    preflight: Preflight = await ctx.step("preflight", look, returns=Preflight)
    ctx.note(NoteTaken(text=preflight.sentence))


async def _set_up(ctx: FlowContext, deps: PipelineDeps, job: PipelineJob) -> StageContext:
    """Branch and workspace, at once and once."""

    async def make(step: StepContext) -> WorkspaceRecord:
        name = task_name(job.subject, step.run_id)
        for existing in deps.workspaces.existing():
            if existing.run_id == step.run_id:
                return existing
        for left in await deps.workspaces.leftovers():
            if left.task == name:
                await deps.workspaces.clear(left.id)
        base, branch = job.start_at or job.base, f"task/{name}"
        spec = deps.workspace_spec(name, base=base, branch=branch, run_id=step.run_id)
        return (await deps.workspaces.create(spec)).record

    record: WorkspaceRecord = await ctx.step("workspace", make, returns=WorkspaceRecord)
    ctx, workspace = await recovering(ctx, deps, job, record)
    await ctx.pin()
    state = PipelineState(
        job=job, run_id=ctx.run.id, workspace=workspace, head=record.base, base=record.base
    )
    for warning in job.warnings:
        ctx.note(NoteTaken(text=warning))
    ctx.note(NoteTaken(text=f"Created branch {state.branch!r} in {record.path}."))

    async def find_checks(step: StepContext) -> Baseline:
        ignored = tuple(await workspace.ignored())
        detection = await _usable_checks(state, deps)
        conventions = await conventions_of(workspace)
        return Baseline(**detection.model_dump(), ignored=ignored, conventions=conventions)

    # Before any agent has been here: a project must not be able to lose its checks on the way.
    context = StageContext(
        ctx, deps, state, await ctx.step("find-checks", find_checks, returns=Baseline)
    )
    for text in _about_checks(context):
        ctx.note(NoteTaken(text=text))
    return context


async def _usable_checks(state: PipelineState, deps: PipelineDeps) -> Detection:
    """Detect the checks of the project where podium.yaml names none.

    Raises `NeedsHuman` where tests are there and nothing can run them: no agent is paid for work that cannot be tested.
    """
    workspace, named = state.workspace, deps.checks()
    if named is None:
        detection = await detect_in(workspace, deps.run_check)
        missing = () if detection.checks else detection.not_installed
        remedy = remedy_for(detection, Path(state.job.repository)) if missing else ""
    else:
        detection, remedy = Detection(), ""
        missing = await missing_programs(named, probe_in(workspace, deps.run_check))
    if missing:
        how = f"; then `podium resume {state.run_id}` (no agent was started)"
        raise NeedsHuman(f"{cannot_test(missing, remedy)}{how}")
    return detection


def _about_checks(context: StageContext) -> Iterator[str]:
    """Notes about the checks for the start of the run: those that were found, and those that cannot be run."""
    for text in context.baseline.not_installed:
        yield f"Not run: {text}. Install it, or name other checks under `checks:` in podium.yaml; see {ADVICE}."
    for text in context.baseline.not_read:
        yield f"Checks may be missing: {text}."
    for check in context.checks:
        if check.source:
            yield f"podium.yaml names no checks; using `{check.command}` from {check.source}."
    if not context.checks:
        yield f"No checks were found, so nothing will be tested. Name them under `checks:` in podium.yaml; see {ADVICE}."
