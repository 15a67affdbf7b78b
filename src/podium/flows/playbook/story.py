"""The story of a playbook: an agent follows it with tools alone, and Podium proves what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from podium.domain.errors import LockHeld
from podium.domain.events import PlaybookBegan, ToolsGiven
from podium.domain.model import Json
from podium.domain.playbook_runs import PLAYBOOK, Ground, PlaybookJob
from podium.domain.work import Run
from podium.flows.playbook.conversation import followed
from podium.flows.playbook.kit import Bench, PlaybookKit
from podium.flows.playbook.reporting import ended, verdict
from podium.ports import FlowBody, FlowContext, RunQuery, Step, Tx, View

MOST_RUNS = 10_000
PREPARE = "prepare"


def follow_playbook(kit: PlaybookKit) -> FlowBody:
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


async def _prepared(ctx: FlowContext, kit: PlaybookKit, job: PlaybookJob) -> Ground:
    """The folder is this run's alone, and what is in it is kept."""

    async def prepare(step: Step) -> Ground:
        if not job.dry_run:
            await kit.store.write(lambda tx: _refuse_company(tx, step.run_id, job.root))
        closed = kit.off_limits(job.profile)
        ground = await kit.grounds.prepare(step.run_id, job.root, closed, as_copy=job.dry_run)

        def record(tx: Tx) -> None:
            tx.append(step.run_id, _began(job))
            step.checkpoint(tx, ground)

        await kit.store.write(record)
        return ground

    return await ctx.step(PREPARE, prepare, returns=Ground)


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


def _refuse_company(tx: Tx, run_id: str, root: str) -> None:
    """Of two runs in one folder the one that was started first goes on. Raises `LockHeld` for the other."""
    for other in _neighbours(tx, root):
        if other.id < run_id:
            raise _held(other)


def _refuse_successor(view: View, run_id: str, job: PlaybookJob) -> None:
    """Raises `LockHeld` when a run that came later has begun in the folder meanwhile."""
    for other in () if job.dry_run else _neighbours(view, job.root):
        if other.id != run_id and view.step(other.id, PREPARE) is not None:
            raise _held(other)


def _neighbours(view: View, root: str) -> Iterator[Run]:
    """Runs of playbooks that have not ended and work in the folder, in one around it or in one beneath."""
    for other in view.runs(RunQuery(flow=PLAYBOOK, limit=MOST_RUNS)):
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


async def _equipped(ctx: FlowContext, kit: PlaybookKit, bench: Bench) -> None:
    """Put down which tools the agent is given, to the letter of what it is told of them."""

    async def equip(step: Step) -> ToolsGiven:
        allowed = bench.player.allowed_tools
        specs = [each for each in bench.prover.specs() if allowed is None or each.name in allowed]
        tools = {spec.name: spec.digest() for spec in specs}
        given = ToolsGiven(role=bench.player.role, tools=tools)

        def record(tx: Tx) -> None:
            tx.append(step.run_id, given)
            step.checkpoint(tx, given)

        await kit.store.write(record)
        return given

    await ctx.step("equip", equip, returns=ToolsGiven)
