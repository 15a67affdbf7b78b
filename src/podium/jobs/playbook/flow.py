"""Flow of a playbook: prepare the working folder, hold the conversation, record the result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from podium.agents.budget_tracker import BEGINNING
from podium.core.decisions import Usage, usage_counted
from podium.core.errors import LockHeld, PlaybookNotMet, PlaybookStopped
from podium.core.folder_snapshots import FolderChanges, WorkingFolder
from podium.core.model import Json
from podium.core.turns import Reply
from podium.core.work import Run
from podium.jobs.playbook.conversation import converse
from podium.jobs.playbook.deps import AgentSession, PlaybookDeps
from podium.jobs.playbook.events import PlaybookBegan, PlaybookEnded, ToolsGiven
from podium.jobs.playbook.models import (
    PLAYBOOK,
    AgentEnding,
    Criterion,
    PlaybookJob,
    PlaybookResult,
    PluginProfile,
)
from podium.ports import FlowBody, FlowContext, RunQuery, StepContext, StoreView, Transaction

MAX_PATHS = 1_000
MAX_TEXT = 20_000


async def record_end(
    ctx: FlowContext,
    deps: PlaybookDeps,
    job: PlaybookJob,
    folder: WorkingFolder,
    ending: AgentEnding,
) -> PlaybookResult:
    """Compare the folder with its prepared state, and record the end."""
    reply, criteria = ending.reply, ending.criteria

    async def look(step: StepContext) -> PlaybookResult:
        closed = deps.off_limits(job.profile)
        changes = await deps.folders.changes(folder, job.root, closed)
        broken = _broken(changes, job.profile)
        result = PlaybookResult(
            met=_met(reply, criteria) and not broken,
            broken=broken,
            run_id=step.run_id,
            words=reply.text[:MAX_TEXT],
            criteria=criteria,
            ends=ending.ends,
            given_up=ending.why,
            stop=reply.stopped,
            changes=changes,
            usage=await _used(deps, step.run_id),
            dry_run=job.dry_run,
        )

        def record(tx: Transaction) -> None:
            tx.append(step.run_id, _ended_event(result))
            step.checkpoint(tx, result)

        await deps.store.write(record)
        return result

    return await ctx.step("end", look, returns=PlaybookResult)


def verdict(result: PlaybookResult) -> Json:
    """Return the run's result if the goal was met. Raises `PlaybookStopped` or `PlaybookNotMet` if not."""
    if result.met:
        return result.model_dump(mode="json")
    failed = "; ".join(f"`{criterion.command}`: {criterion.why}" for criterion in result.unmet)
    if result.stop is not None:
        what = (
            f"criteria are not met: {failed}"
            if failed
            else "there are no criteria to check the result"
        )
        raise PlaybookStopped(
            f"a limit stopped the agent ({result.stop.reason}), and {what}; raise `limits` in the playbook, or review "
            f"the changes{_where(result.changes)}",
            result.stop.exit_code,
        )
    if broken := result.broken:
        raise PlaybookNotMet(f"{broken}; undo the changes with `podium playbook restore`")
    times = "" if result.ends == 1 else f" {result.ends} times"
    reason = f"; the agent was not asked again: {result.given_up}" if result.given_up else ""
    raise PlaybookNotMet(
        f"the agent ended{times}, but criteria are not met: {failed}{reason}; review the changes"
        f"{_where(result.changes)}"
    )


def _met(reply: Reply, criteria: tuple[Criterion, ...]) -> bool:
    """Check if the goal was met: by the criteria, and without any by an agent that was not stopped."""
    if not all(criterion.met for criterion in criteria):
        return False
    return bool(criteria) or reply.stopped is None


def _broken(changes: FolderChanges, profile: PluginProfile) -> str:
    """Describe a violation of protected paths. Unknown changes count as one if the profile protects any."""
    if changes.trespasses:
        return f"protected files were changed: {', '.join(changes.trespasses[:10])}"
    if changes.unknown and (profile.forbidden_paths or profile.read_only_paths):
        return f"cannot tell whether protected files were changed ({changes.unknown})"
    return ""


def _where(changes: FolderChanges) -> str:
    if not changes.paths:
        return " (no files were changed)"
    more = "" if len(changes.paths) <= 3 else f" and {len(changes.paths) - 3} more"
    return f" ({', '.join(changes.paths[:3])}{more})"


def _ended_event(result: PlaybookResult) -> PlaybookEnded:
    return PlaybookEnded(
        met=result.met,
        criteria=tuple(criterion.record() for criterion in result.criteria),
        stop=result.stop,
        changed=result.changes.paths[:MAX_PATHS],
        trespasses=result.changes.trespasses[:MAX_PATHS],
        unknown=result.changes.unknown,
    )


async def _used(deps: PlaybookDeps, run_id: str) -> Usage:
    return await deps.store.read(
        lambda view: usage_counted(
            lambda counter: view.counted(counter, BEGINNING), "run", run_id, "", deps.clock.now()
        )
    )


MAX_RUNS = 10_000
PREPARE = "prepare"


def follow_playbook(deps: PlaybookDeps) -> FlowBody:
    """Build the flow."""

    async def follow(ctx: FlowContext, job: PlaybookJob) -> Json:
        # The folder, its copy and its snapshot are on this host.
        await ctx.pin()
        folder = await _prepared(ctx, deps, job)
        # Not a step: a run that resumes after its end may find another one there.
        await deps.store.read(lambda view: _refuse_successor(view, ctx.run.id, job))
        session = await deps.open_session(job, folder)
        await _equipped(ctx, deps, session)
        ending = await converse(ctx, deps, session, job, folder)
        result = await record_end(ctx, deps, job, folder, ending)
        await deps.folders.leave(folder)
        return verdict(result)

    return follow


async def _prepared(ctx: FlowContext, deps: PlaybookDeps, job: PlaybookJob) -> WorkingFolder:
    """Reserve the folder for this run and snapshot it."""

    async def prepare(step: StepContext) -> WorkingFolder:
        if not job.dry_run:
            await deps.store.write(lambda tx: _refuse_company(tx, step.run_id, job.root))
        closed = deps.off_limits(job.profile)
        folder = await deps.folders.prepare(step.run_id, job.root, closed, as_copy=job.dry_run)

        def record(tx: Transaction) -> None:
            tx.append(step.run_id, _began(job))
            step.checkpoint(tx, folder)

        await deps.store.write(record)
        return folder

    return await ctx.step(PREPARE, prepare, returns=WorkingFolder)


def _began(job: PlaybookJob) -> PlaybookBegan:
    return PlaybookBegan(
        playbook=job.playbook.head.name,
        playbook_digest=job.playbook.digest(),
        profile=job.profile.name,
        profile_digest=job.profile.digest(),
        tools=job.tools,
        dry_run=job.dry_run,
        job=job.model_copy(update={"root": "."}).model_dump(mode="json"),
    )


def _refuse_company(tx: Transaction, run_id: str, root: str) -> None:
    """Let the first of two runs in one folder continue. Raises `LockHeld` for the other."""
    for other in _neighbours(tx, root):
        if other.id < run_id:
            raise _held(other)


def _refuse_successor(view: StoreView, run_id: str, job: PlaybookJob) -> None:
    """Raise `LockHeld` if a later run has started in the folder meanwhile."""
    for other in () if job.dry_run else _neighbours(view, job.root):
        if other.id != run_id and view.step(other.id, PREPARE) is not None:
            raise _held(other)


def _neighbours(view: StoreView, root: str) -> Iterator[Run]:
    """List open playbook runs in the folder, a parent of it or a folder below."""
    for other in view.runs(RunQuery(flow=PLAYBOOK, limit=MAX_RUNS)):
        if not other.status.ended and _overlaps(other, root):
            yield other


def _overlaps(run: Run, root: str) -> bool:
    job = run.input if isinstance(run.input, dict) else {}
    theirs, ours = PurePath(str(job.get("root", ""))), PurePath(root)
    return not job.get("dry_run") and (theirs.is_relative_to(ours) or ours.is_relative_to(theirs))


def _held(other: Run) -> LockHeld:
    return LockHeld(
        f"playbook run {other.id} is already working in this folder; continue it with `podium resume {other.id}`, or "
        f"end it with `podium cancel {other.id}`"
    )


async def _equipped(ctx: FlowContext, deps: PlaybookDeps, session: AgentSession) -> None:
    """Record the agent's tools with the digests of their descriptions."""

    async def equip(step: StepContext) -> ToolsGiven:
        allowed = session.role_agent.allowed_tools
        specs = [spec for spec in session.prover.specs() if allowed is None or spec.name in allowed]
        tools = {spec.name: spec.digest() for spec in specs}
        event = ToolsGiven(role=session.role_agent.role, tools=tools)

        def record(tx: Transaction) -> None:
            tx.append(step.run_id, event)
            step.checkpoint(tx, event)

        await deps.store.write(record)
        return event

    await ctx.step("equip", equip, returns=ToolsGiven)
