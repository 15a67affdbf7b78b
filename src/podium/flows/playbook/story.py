"""The story of a playbook: an agent follows it with tools alone, and Podium proves what came of it."""

from __future__ import annotations

from podium.domain.asking import Reply
from podium.domain.errors import LockHeld
from podium.domain.events import PlaybookBegan, ToolsGiven
from podium.domain.model import Json
from podium.domain.playbook_runs import PLAYBOOK, Ground, PlaybookJob
from podium.domain.work import Run
from podium.flows.asking import Player, ask_until_answered
from podium.flows.playbook.kit import Bench, PlaybookKit
from podium.flows.playbook.limiting import LimitedAgent
from podium.flows.playbook.prompting import build_prompt
from podium.flows.playbook.proving import proved
from podium.flows.playbook.reporting import ended, verdict
from podium.ports import FlowBody, FlowContext, RunQuery, Step, Tx

MOST_RUNS = 10_000


def follow_playbook(kit: PlaybookKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def follow(ctx: FlowContext, job: PlaybookJob) -> Json:
        # The folder, its copy and what was kept of it are on this host.
        await ctx.pin()
        ground = await _prepared(ctx, kit, job)
        bench = await kit.bench(job, ground)
        await _equipped(ctx, kit, bench)
        reply = await _followed(ctx, kit, bench, job, ground)
        criteria = await proved(ctx, bench.prover, job, ground)
        result = await ended(ctx, kit, bench, job, ground, reply, criteria)
        await kit.grounds.leave(ground)
        return verdict(result)

    return follow


async def _prepared(ctx: FlowContext, kit: PlaybookKit, job: PlaybookJob) -> Ground:
    """The folder is this run's alone, and what is in it is kept."""

    async def prepare(step: Step) -> Ground:
        if not job.dry_run:
            await kit.store.write(lambda tx: _refuse_company(tx, step.run_id, job.root))
        ground = await kit.grounds.prepare(step.run_id, job.root, as_copy=job.dry_run)

        def record(tx: Tx) -> None:
            tx.append(step.run_id, _began(job))
            step.checkpoint(tx, ground)

        await kit.store.write(record)
        return ground

    return await ctx.step("prepare", prepare, returns=Ground)


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
    others = tx.runs(RunQuery(flow=PLAYBOOK, limit=MOST_RUNS))
    for other in others:
        if other.id < run_id and not other.status.ended and _works_in(other, root):
            raise LockHeld(
                f"run {other.id} of a playbook works in this folder already; `podium resume {other.id}` "
                f"goes on with it, `podium cancel {other.id}` ends it"
            )


def _works_in(run: Run, root: str) -> bool:
    job = run.input if isinstance(run.input, dict) else {}
    return job.get("root") == root and not job.get("dry_run")


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


async def _followed(
    ctx: FlowContext, kit: PlaybookKit, bench: Bench, job: PlaybookJob, ground: Ground
) -> Reply:
    """The agent's end: its last words, or the limit that it came to."""
    given = bench.player
    player = Player(
        role=given.role,
        agent=LimitedAgent(given.agent, kit.store, kit.clock, job.limits),
        allowed_tools=given.allowed_tools,
        own_tools=(),
        limits=given.limits,
    )
    prompt = build_prompt(job.profile, job.playbook, job.inputs, job.facts)
    return await ask_until_answered(
        ctx, player, prompt.text, purse=kit.purse, name="follow", workspace=ground.root
    )
