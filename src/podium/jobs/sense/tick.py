"""The story of a tick: see after the last one, look, plan if something changed, act as the gate lets, record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from podium.core.errors import Interrupted, LockHeld, NotPossibleNow, PodiumError, UnknownId
from podium.core.model import Json
from podium.core.work import Mode, Run, RunStatus
from podium.jobs.sense.candidate_status import Answered, at_rest, close_what_is_over, standings_of
from podium.jobs.sense.deps import SenseJob
from podium.jobs.sense.effective_options import SENSE
from podium.jobs.sense.models import (
    Bundle,
    CandidateStanding,
    Look,
    Planned,
    PlannerStatus,
    SenseMemory,
    TickOutcome,
    no_operations,
    notices_of,
    plan_changes,
)
from podium.jobs.sense.options import SenseOptions
from podium.jobs.sense.planning.bundle import bundle_of
from podium.jobs.sense.ports import SenseRecord, Source
from podium.ports import Clock, Engine, Ids, Store

MAX_BACKOFF_SECONDS = 3600.0
"""A planner that keeps failing is asked at least so often."""
MAX_DOUBLINGS = 30


@dataclass(frozen=True)
class House:
    """The rooms that only a tick which plans needs."""

    engine: Engine
    store: Store
    ids: Ids
    settings: dict[str, Json]
    """What runs record of today's settings: the mode among them."""


@dataclass(frozen=True)
class TickKit:
    """What a tick works with."""

    root: str
    mode: Mode
    options: SenseOptions
    sources: Sequence[Source]
    record: SenseRecord
    clock: Clock
    house: Callable[[], Awaitable[House]]
    """Opened when something is to be planned. An idle tick leaves the database alone."""
    answered: Answered
    """Asked of candidates that wait: people may have moved one to the inbox by hand."""


async def tick(kit: TickKit, *, manual: bool) -> TickOutcome:
    """One round. `manual` plans whether or not something changed.

    Raises `LockHeld` while another loop ticks on this root.
    """
    with kit.record.alone():
        return await _round(kit, manual=manual)


async def begin_tick(kit: TickKit, *, queue: str, settings: Mapping[str, Json]) -> Run:
    """Look, and leave the planning to whoever serves the queue. `take_in` ends the tick, or else the next one does.

    `settings` is what the run records beside the terms. Raises `LockHeld` while another loop ticks on this
    root, and `NotPossibleNow` while the plan of an earlier tick is under way.
    """
    with kit.record.alone():
        memory = kit.record.memory()
        if memory.run_id:
            await _refuse_unfinished(kit, memory.run_id)
            await _end_begun(kit, memory)
            memory = kit.record.memory()
        return await _begun(
            kit, memory, await _sensed(kit), tick=memory.ticks + 1, queue=queue, settings=settings
        )


async def take_in(kit: TickKit) -> TickOutcome | None:
    """End the tick that `begin_tick` began, once its planning has ended. None: there is nothing to end.

    Raises `LockHeld` while another loop ticks on this root: it sees to it.
    """
    with kit.record.alone():
        memory = kit.record.memory()
        run = await _planning(kit, memory.run_id) if memory.run_id else None
        return await _end_begun(kit, memory) if run and run.status.ended else None


async def _end_begun(kit: TickKit, memory: SenseMemory) -> TickOutcome:
    """Record the tick whose plan another process made, with what it had sensed."""
    outcome, marks = _fresh(kit, memory), memory.marks
    if run := await _planning(kit, memory.run_id):
        bundle = SenseJob.model_validate(run.input).bundle
        changed = bundle.digest != memory.digest
        outcome = _with_what_was_sensed(outcome, bundle, changed=changed)
        marks = {look.source: look.mark for look in bundle.looks}
    outcome, memory = await _reconcile(kit, outcome, memory)
    return _kept(kit, *_counted(outcome, memory, marks, 0.0))


async def _planning(kit: TickKit, run_id: str) -> Run | None:
    house = await kit.house()
    return await house.store.read(lambda view: view.run(run_id))


async def _refuse_unfinished(kit: TickKit, run_id: str) -> None:
    run = await _planning(kit, run_id)
    if run is not None and not run.status.ended:
        raise NotPossibleNow(
            f"run {run_id} plans for an earlier look and is {run.status.value}; `podium logs {run_id} -f` follows it, "
            f"`podium cancel {run_id}` ends it"
        )


def _fresh(kit: TickKit, memory: SenseMemory) -> TickOutcome:
    at, tick = kit.clock.now(), memory.ticks + 1
    return TickOutcome(tick=tick, at=at, mode=kit.mode, status=PlannerStatus.SKIPPED)


def _kept(kit: TickKit, ended: TickOutcome, remembered: SenseMemory) -> TickOutcome:
    kit.record.remember(remembered)
    kit.record.tick_ended(ended)
    return ended


async def _round(kit: TickKit, *, manual: bool) -> TickOutcome:
    began = kit.clock.monotonic()
    memory = kit.record.memory()
    outcome = _fresh(kit, memory)
    at = outcome.at
    outcome, memory = await _reconcile(kit, outcome, memory)
    marks = {source.name: await source.mark() for source in kit.sources}
    due = manual or _is_due(kit, memory, at)
    if due or marks != memory.marks:
        bundle = await _sensed(kit)
        outcome = _with_what_was_sensed(outcome, bundle, changed=bundle.digest != memory.digest)
        marks = {look.source: look.mark for look in bundle.looks}
        moved = tuple(name for name, mark in marks.items() if memory.marks.get(name) != mark)
        outcome = outcome.model_copy(update={"because": moved if outcome.changed else ()})
        if (due or outcome.changed) and not (manual or kit.record.remember(memory)):
            # Also its marks stay as they were, so that the change is seen once it can be remembered.
            outcome, marks = _unplanned(kit, outcome), memory.marks
        elif due or outcome.changed:
            outcome, memory = await _acted(kit, outcome, memory, bundle)
    else:
        outcome = outcome.model_copy(update={"digest": memory.digest, "counts": memory.counts})
    seconds = round(kit.clock.monotonic() - began, 4)
    return _kept(kit, *_counted(outcome, memory, marks, seconds))


async def _reconcile(
    kit: TickKit, outcome: TickOutcome, memory: SenseMemory
) -> tuple[TickOutcome, SenseMemory]:
    """Take in what earlier ticks began: candidates that have ended since, and a plan none of them saw the end of."""
    settled: list[CandidateStanding] = []
    if memory.pending:
        house = await kit.house()
        anew = await close_what_is_over(
            house.engine,
            house.store,
            memory.pending.values(),
            answered=kit.answered,
            mode=kit.mode,
        )
        if anew:
            # As if nothing had been planned for yet: what there is, is news.
            memory = memory.model_copy(update={"marks": {}, "digest": ""})
        settled = [each for each in await at_rest(house.store, memory.pending) if _has_ended(each)]
        _log_candidates(kit, settled)
    outcome = outcome.model_copy(update={"candidates": tuple(settled)})
    if not memory.run_id:
        return outcome, memory
    run = await _finished(kit, memory.run_id)
    if run is None:
        return outcome, memory.model_copy(update={"run_id": ""})
    digest = SenseJob.model_validate(run.input).bundle.digest
    return await _taken_in(kit, outcome, memory, run, digest)


async def _finished(kit: TickKit, run_id: str) -> Run | None:
    """The run of an earlier tick, at its end. None: it cannot be brought there."""
    engine = (await kit.house()).engine
    try:
        # Else it has ended, or another process sees to it.
        with suppress(NotPossibleNow, LockHeld):
            await engine.resume(run_id)
        return await engine.finish(run_id, stop_when_waiting=True)
    except Interrupted:
        raise
    except UnknownId:
        return None  # its process died before it was started, or the record is a new one
    except PodiumError as error:
        kit.record.log(f"run {run_id} of an earlier tick: {error}", at=kit.clock.now())
        return None


def _has_ended(standing: CandidateStanding) -> bool:
    return standing.state not in ("waiting", "held back")


def _is_due(kit: TickKit, memory: SenseMemory, now: datetime) -> bool:
    """Whether it is time to plan although nothing changed."""
    due = due_at(kit.options, memory)
    return due is not None and now >= due


def due_at(options: SenseOptions, memory: SenseMemory) -> datetime | None:
    """When to plan again although nothing changed: on wish, or because the planner gave no plan. None: never."""
    if memory.planned_at is None:
        return None
    seconds = options.replan_seconds
    if memory.failures:
        doubled = 2 ** min(memory.failures, MAX_DOUBLINGS)
        seconds = min(options.every_seconds * doubled, MAX_BACKOFF_SECONDS)
    if seconds is None:
        return None
    try:
        return memory.planned_at + timedelta(seconds=seconds)
    except OverflowError:  # later than every calendar
        return None


async def _sensed(kit: TickKit) -> Bundle:
    looks = [await source.look() for source in kit.sources]
    return bundle_of(kit.root, looks, limit_bytes=kit.options.bundle_bytes)


def _with_what_was_sensed(outcome: TickOutcome, bundle: Bundle, *, changed: bool) -> TickOutcome:
    return outcome.model_copy(
        update={
            "digest": bundle.digest,
            "changed": changed,
            "counts": {look.source: _readable(look) for look in bundle.looks},
            "missing": tuple(f"{each.place}: {each.why}" for each in bundle.missing),
        }
    )


def _readable(look: Look) -> int:
    """How many things there are, without those that were looked at and could not be read."""
    unread = sum(each.condition not in ("ok", "cut") for each in look.found)
    return max(0, look.total - unread)


def _unplanned(kit: TickKit, outcome: TickOutcome) -> TickOutcome:
    """A tick that would ask the planner the same again and again, because the next one would not know of it."""
    faults = "; ".join(kit.record.faults)
    why = f"nothing is planned while it cannot be remembered what was planned for: {faults}"
    kit.record.log(why, at=kit.clock.now())
    return outcome.model_copy(update={"why": why})


async def _acted(
    kit: TickKit, outcome: TickOutcome, memory: SenseMemory, bundle: Bundle
) -> tuple[TickOutcome, SenseMemory]:
    """Plan, let the candidates go as far as the gate lets them, and read off what came of it."""
    run = await _begun(kit, memory, bundle, tick=outcome.tick)
    house = await kit.house()
    run = await house.engine.finish(run.id, stop_when_waiting=True)
    return await _taken_in(kit, outcome, memory, run, bundle.digest)


async def _begun(
    kit: TickKit,
    memory: SenseMemory,
    bundle: Bundle,
    *,
    tick: int,
    queue: str | None = None,
    settings: Mapping[str, Json] | None = None,
) -> Run:
    """The run that plans for a bundle, stored. Without a queue it is hosted here."""
    kit.record.keep_bundle(bundle)
    house = await kit.house()
    # Remembered before it is started: a run that no tick knows of would never be seen after.
    begun = memory.model_copy(update={"run_id": house.ids.new("run")})
    kit.record.remember(begun)
    return await house.engine.start(
        SENSE,
        SenseJob(bundle=bundle, tick=tick).model_dump(mode="json"),
        task=f"tick {tick}",
        queue=queue,
        settings={**house.settings, **(settings or {})},
        run_id=begun.run_id,
    )


async def _taken_in(
    kit: TickKit, outcome: TickOutcome, memory: SenseMemory, run: Run, digest: str
) -> tuple[TickOutcome, SenseMemory]:
    """Outcome and memory with what a run came to that planned for a bundle of this digest."""
    result = _result_of(run)
    failed = result.status in (PlannerStatus.MOCK, PlannerStatus.ERROR)
    kit.record.keep_plan(result.document)
    standings = await standings_of((await kit.house()).store, run)
    # An empty plan that stands in for another one says nothing of what has gone.
    changes = () if failed else plan_changes(memory.last_plan, result.plan.items)
    if changes and outcome.because:
        changes = (*changes, f"because of {', '.join(outcome.because)}")
    _log_plan(kit, result, standings, changes)
    notices = (*notices_of(result.plan), *_unwritten(standings))
    ended = outcome.model_copy(
        update={
            "planner": result.planner,
            "status": result.status,
            "why": result.why,
            "candidates": (*outcome.candidates, *standings),
            "skipped_items": (*outcome.skipped_items, *result.plan.skipped_items),
            "notices": (*outcome.notices, *notices),
            "plan_changes": (*outcome.plan_changes, *changes),
            "usage": outcome.usage.plus(result.usage),
            "run_id": run.id,
        }
    )
    remembered = memory.model_copy(
        update={
            "digest": digest,
            "status": result.status,
            "why": result.why,
            "planned_at": outcome.at,
            "failures": memory.failures + 1 if failed else 0,
            "last_plan": memory.last_plan if failed else result.plan.items,
            "notices": memory.notices if failed else notices,
            "run_id": "",
        }
    )
    return ended, remembered


def _unwritten(standings: Sequence[CandidateStanding]) -> tuple[str, ...]:
    """Candidates of whose words nobody could make operations."""
    said = ((each.wo_id, no_operations(each)) for each in standings)
    return tuple(f"{wo_id} has no operations: {words}" for wo_id, words in said if words)


def _result_of(run: Run) -> Planned:
    if run.status is RunStatus.SUCCEEDED and isinstance(run.result, dict):
        return Planned.model_validate(run.result["planned"])
    why = run.failure.message if run.failure else f"run {run.id} is {run.status}"
    return Planned(status=PlannerStatus.ERROR, why=why)


def _log_plan(
    kit: TickKit,
    result: Planned,
    candidates: Sequence[CandidateStanding],
    changes: Sequence[str],
) -> None:
    at, record = kit.clock.now(), kit.record
    if result.why:
        record.log(f"planner {result.planner or '-'}: {result.status}: {result.why}", at=at)
    for item in result.plan.skipped_items:
        record.log(f"skipped item {item.index}: {item.reason}", at=at, kind="parser")
    counts = (
        f"candidate_count={len(result.plan.candidates)}, skipped={len(result.plan.skipped_items)}"
    )
    record.log(counts, at=at, kind="parser")
    for notice in notices_of(result.plan):
        record.log(f"ALERT {notice}", at=at)
    _log_candidates(kit, candidates)
    for line in changes:
        record.log(f"plan {line}", at=at)


def _log_candidates(kit: TickKit, candidates: Sequence[CandidateStanding]) -> None:
    for each in candidates:
        why = f" ({each.why})" if each.why else ""
        line = f"candidate {each.wo_id} {each.state}: {each.title}{why}"
        kit.record.log(line, at=kit.clock.now())


def _counted(
    outcome: TickOutcome, memory: SenseMemory, marks: dict[str, str], seconds: float
) -> tuple[TickOutcome, SenseMemory]:
    idle = memory.idle_ticks + (outcome.status is PlannerStatus.SKIPPED)
    tokens = memory.tokens + outcome.usage.input_tokens + outcome.usage.output_tokens
    ended = outcome.model_copy(update={"idle_ticks": idle, "tokens": tokens, "seconds": seconds})
    remembered = memory.model_copy(
        update={
            "ticks": outcome.tick,
            "idle_ticks": idle,
            "tokens": tokens,
            "marks": marks,
            "counts": outcome.counts,
            "pending": _still_pending(outcome, memory),
        }
    )
    return ended, remembered


def _still_pending(outcome: TickOutcome, memory: SenseMemory) -> dict[str, str]:
    ended = {each.wo_id for each in outcome.candidates if _has_ended(each)}
    waiting = {each.wo_id: each.run_id for each in outcome.candidates if each.state == "waiting"}
    return {wo: run for wo, run in {**memory.pending, **waiting}.items() if wo not in ended}


async def loop(
    kit: TickKit,
    ended: Callable[[TickOutcome | PodiumError], None],
    stop: asyncio.Event,
    *,
    begun: Callable[[], Awaitable[None]],
) -> None:
    """Tick now and then every `every_seconds`, until told to stop. Mode and options are those of the start.

    Nobody else ticks on this root meanwhile: raises `LockHeld` at once where somebody does, else `begun` is
    called. What breaks a tick is told and logged, and the next one comes.
    """
    with kit.record.alone():
        await begun()
        while not stop.is_set():
            ended(await _survived(kit))
            try:
                async with asyncio.timeout(kit.options.every_seconds):
                    await stop.wait()
            except TimeoutError:
                continue


async def _survived(kit: TickKit) -> TickOutcome | PodiumError:
    try:
        return await _round(kit, manual=False)
    except Interrupted:
        raise
    except PodiumError as error:
        kit.record.log(f"ERROR the tick broke off: {error}", at=kit.clock.now())
        return error
