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
from podium.jobs.playbook.conversation import followed
from podium.jobs.playbook.deps import AgentSession, PlaybookDeps
from podium.jobs.playbook.events import PlaybookBegan, PlaybookEnded, ToolsGiven
from podium.jobs.playbook.models import PluginProfile
from podium.jobs.playbook.run_models import (
    PLAYBOOK,
    AgentEnding,
    Criterion,
    PlaybookJob,
    PlaybookResult,
)
from podium.ports import FlowBody, FlowContext, RunQuery, StepContext, StoreView, Transaction

MAX_PATHS = 1_000
MAX_WORDS = 20_000


async def ended(
    ctx: FlowContext,
    kit: PlaybookDeps,
    job: PlaybookJob,
    ground: WorkingFolder,
    ending: AgentEnding,
) -> PlaybookResult:
    """Look at what is different now, and record the end."""
    reply, criteria = ending.reply, ending.criteria

    async def look(step: StepContext) -> PlaybookResult:
        closed = kit.off_limits(job.profile)
        changes = await kit.grounds.changes(ground, job.root, closed)
        broken = _broken(changes, job.profile)
        result = PlaybookResult(
            met=_met(reply, criteria) and not broken,
            broken=broken,
            run_id=step.run_id,
            words=reply.text[:MAX_WORDS],
            criteria=criteria,
            ends=ending.ends,
            given_up=ending.why,
            stop=reply.stopped,
            changes=changes,
            usage=await _used(kit, step.run_id),
            dry_run=job.dry_run,
        )

        def record(tx: Transaction) -> None:
            tx.append(step.run_id, _told(result))
            step.checkpoint(tx, result)

        await kit.store.write(record)
        return result

    return await ctx.step("end", look, returns=PlaybookResult)


def verdict(result: PlaybookResult) -> Json:
    """The run's result, if the goal was met. Raises `PlaybookStopped` or `PlaybookNotMet` if not."""
    if result.met:
        return result.model_dump(mode="json")
    failed = "; ".join(f"`{each.command}`: {each.why}" for each in result.unmet)
    if result.stop is not None:
        what = f"criteria are not met: {failed}" if failed else "nothing proves that it was done"
        raise PlaybookStopped(
            f"a limit ended the agent ({result.stop.reason}), and {what}; raise `limits` of the playbook, or look at "
            f"what was done{_where(result.changes)}",
            result.stop.exit_code,
        )
    if broken := result.broken:
        raise PlaybookNotMet(f"{broken}; `podium playbook restore` puts back what was there before")
    times = "" if result.ends == 1 else f" {result.ends} times"
    given_up = f"; it was not asked again: {result.given_up}" if result.given_up else ""
    raise PlaybookNotMet(
        f"the agent ended{times}, and criteria are not met: {failed}{given_up}; look at what was "
        f"done{_where(result.changes)}"
    )


def _met(reply: Reply, criteria: tuple[Criterion, ...]) -> bool:
    """Criteria decide. Where a playbook has none, an agent that was stopped has proved nothing."""
    if not all(each.met for each in criteria):
        return False
    return bool(criteria) or reply.stopped is None


def _broken(changes: FolderChanges, profile: PluginProfile) -> str:
    """What cannot be looked at may have been changed: where places are closed, that counts as much."""
    if changes.trespasses:
        return f"what nobody may change was changed: {', '.join(changes.trespasses[:10])}"
    if changes.unknown and (profile.forbidden_paths or profile.read_only_paths):
        return f"nobody can say whether closed paths were changed ({changes.unknown})"
    return ""


def _where(changes: FolderChanges) -> str:
    if not changes.paths:
        return " (no file was changed)"
    more = "" if len(changes.paths) <= 3 else f" and {len(changes.paths) - 3} more"
    return f" ({', '.join(changes.paths[:3])}{more})"


def _told(result: PlaybookResult) -> PlaybookEnded:
    return PlaybookEnded(
        met=result.met,
        criteria=tuple(each.record() for each in result.criteria),
        stop=result.stop,
        changed=result.changes.paths[:MAX_PATHS],
        trespasses=result.changes.trespasses[:MAX_PATHS],
        unknown=result.changes.unknown,
    )


async def _used(kit: PlaybookDeps, run_id: str) -> Usage:
    return await kit.store.read(
        lambda view: usage_counted(
            lambda counter: view.counted(counter, BEGINNING), "run", run_id, "", kit.clock.now()
        )
    )


MAX_RUNS = 10_000
PREPARE = "prepare"


def follow_playbook(kit: PlaybookDeps) -> FlowBody:
    """The flow, with its kit in hand."""

    async def follow(ctx: FlowContext, job: PlaybookJob) -> Json:
        # The folder, its copy and what was kept of it are on this host.
        await ctx.pin()
        ground = await _prepared(ctx, kit, job)
        # Not a step: a run that was ended and is taken up again may find another one there.
        await kit.store.read(lambda view: _refuse_successor(view, ctx.run.id, job))
        bench = await kit.bench(job, ground)
        await _equipped(ctx, kit, bench)
        ending = await followed(ctx, kit, bench, job, ground)
        result = await ended(ctx, kit, job, ground, ending)
        await kit.grounds.leave(ground)
        return verdict(result)

    return follow


async def _prepared(ctx: FlowContext, kit: PlaybookDeps, job: PlaybookJob) -> WorkingFolder:
    """The folder is this run's alone, and what is in it is kept."""

    async def prepare(step: StepContext) -> WorkingFolder:
        if not job.dry_run:
            await kit.store.write(lambda tx: _refuse_company(tx, step.run_id, job.root))
        closed = kit.off_limits(job.profile)
        ground = await kit.grounds.prepare(step.run_id, job.root, closed, as_copy=job.dry_run)

        def record(tx: Transaction) -> None:
            tx.append(step.run_id, _began(job))
            step.checkpoint(tx, ground)

        await kit.store.write(record)
        return ground

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
    """Of two runs in one folder the one that was started first goes on. Raises `LockHeld` for the other."""
    for other in _neighbours(tx, root):
        if other.id < run_id:
            raise _held(other)


def _refuse_successor(view: StoreView, run_id: str, job: PlaybookJob) -> None:
    """Raises `LockHeld` when a run that came later has begun in the folder meanwhile."""
    for other in () if job.dry_run else _neighbours(view, job.root):
        if other.id != run_id and view.step(other.id, PREPARE) is not None:
            raise _held(other)


def _neighbours(view: StoreView, root: str) -> Iterator[Run]:
    """Runs of playbooks that have not ended and work in the folder, in one around it or in one beneath."""
    for other in view.runs(RunQuery(flow=PLAYBOOK, limit=MAX_RUNS)):
        if not other.status.ended and _overlaps(other, root):
            yield other


def _overlaps(run: Run, root: str) -> bool:
    job = run.input if isinstance(run.input, dict) else {}
    theirs, ours = PurePath(str(job.get("root", ""))), PurePath(root)
    return not job.get("dry_run") and (theirs.is_relative_to(ours) or ours.is_relative_to(theirs))


def _held(other: Run) -> LockHeld:
    return LockHeld(
        f"run {other.id} of a playbook works in this folder already; `podium resume {other.id}` goes on with it, "
        f"`podium cancel {other.id}` ends it"
    )


async def _equipped(ctx: FlowContext, kit: PlaybookDeps, bench: AgentSession) -> None:
    """Put down which tools the agent is given, to the letter of what it is told of them."""

    async def equip(step: StepContext) -> ToolsGiven:
        allowed = bench.player.allowed_tools
        specs = [spec for spec in bench.prover.specs() if allowed is None or spec.name in allowed]
        tools = {spec.name: spec.digest() for spec in specs}
        given = ToolsGiven(role=bench.player.role, tools=tools)

        def record(tx: Transaction) -> None:
            tx.append(step.run_id, given)
            step.checkpoint(tx, given)

        await kit.store.write(record)
        return given

    await ctx.step("equip", equip, returns=ToolsGiven)
