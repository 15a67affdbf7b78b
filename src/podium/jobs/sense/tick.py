"""One tick: finish the last one, read the sources, plan if something changed, start candidates, record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from podium.core.errors import Interrupted, LockHeld, NotPossibleNow, PodiumError, UnknownId
from podium.core.model import Json
from podium.core.work import Mode, Run, RunStatus
from podium.jobs.sense.candidate_status import Answered, at_rest, close_what_is_over, statuses_of
from podium.jobs.sense.deps import SenseJob
from podium.jobs.sense.job import SENSE
from podium.jobs.sense.models import (
    Bundle,
    CandidateStatus,
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
from podium.jobs.sense.ports import SenseRecord, StateSource
from podium.ports import Clock, Engine, Ids, Store

MAX_BACKOFF_SECONDS = 3600.0
"""A planner that keeps failing is asked at least so often."""
MAX_DOUBLINGS = 30


@dataclass(frozen=True)
class RunServices:
    """Services that only a tick which plans needs."""

    engine: Engine
    store: Store
    ids: Ids
    settings: dict[str, Json]
    """Settings that runs record, the mode among them."""


@dataclass(frozen=True)
class TickDeps:
    """Dependencies of a tick."""

    root: str
    mode: Mode
    options: SenseOptions
    sources: Sequence[StateSource]
    record: SenseRecord
    clock: Clock
    services: Callable[[], Awaitable[RunServices]]
    """Opened when something is to be planned. An idle tick leaves the database alone."""
    answered: Answered
    """Asked of candidates that wait: people may have moved one to the inbox by hand."""


async def tick(deps: TickDeps, *, manual: bool) -> TickOutcome:
    """Run one tick. `manual` plans whether or not something changed.

    Raises `LockHeld` while another loop ticks on this root.
    """
    with deps.record.alone():
        return await _round(deps, manual=manual)


async def begin_tick(deps: TickDeps, *, queue: str, settings: Mapping[str, Json]) -> Run:
    """Look, and leave the planning to whoever serves the queue. `take_in` ends the tick, or else the next one does.

    `settings` is what the run records beside the terms. Raises `LockHeld` while another loop ticks on this
    root, and `NotPossibleNow` while the plan of an earlier tick is under way.
    """
    with deps.record.alone():
        memory = deps.record.memory()
        if memory.run_id:
            await _refuse_unfinished(deps, memory.run_id)
            await _end_begun(deps, memory)
            memory = deps.record.memory()
        return await _begun(
            deps, memory, await _sensed(deps), tick=memory.ticks + 1, queue=queue, settings=settings
        )


async def take_in(deps: TickDeps) -> TickOutcome | None:
    """End the tick that `begin_tick` began, once its planning has ended. None: there is nothing to end.

    Raises `LockHeld` while another loop ticks on this root: it sees to it.
    """
    with deps.record.alone():
        memory = deps.record.memory()
        run = await _planning(deps, memory.run_id) if memory.run_id else None
        return await _end_begun(deps, memory) if run and run.status.ended else None


async def _end_begun(deps: TickDeps, memory: SenseMemory) -> TickOutcome:
    """Record the tick whose plan another process made, with what it had sensed."""
    outcome, etags = _fresh(deps, memory), memory.marks
    if run := await _planning(deps, memory.run_id):
        bundle = SenseJob.model_validate(run.input).bundle
        changed = bundle.digest != memory.digest
        outcome = _with_what_was_sensed(outcome, bundle, changed=changed)
        etags = {look.source: look.mark for look in bundle.looks}
    outcome, memory = await _reconcile(deps, outcome, memory)
    return _recorded(deps, *_counted(outcome, memory, etags, 0.0))


async def _planning(deps: TickDeps, run_id: str) -> Run | None:
    services = await deps.services()
    return await services.store.read(lambda view: view.run(run_id))


async def _refuse_unfinished(deps: TickDeps, run_id: str) -> None:
    run = await _planning(deps, run_id)
    if run is not None and not run.status.ended:
        raise NotPossibleNow(
            f"run {run_id} of an earlier tick is still {run.status.value}; follow it with `podium logs {run_id} -f` or "
            f"cancel it with `podium cancel {run_id}`"
        )


def _fresh(deps: TickDeps, memory: SenseMemory) -> TickOutcome:
    at, tick = deps.clock.now(), memory.ticks + 1
    return TickOutcome(tick=tick, at=at, mode=deps.mode, status=PlannerStatus.SKIPPED)


def _recorded(deps: TickDeps, ended: TickOutcome, remembered: SenseMemory) -> TickOutcome:
    deps.record.remember(remembered)
    deps.record.tick_ended(ended)
    return ended


async def _round(deps: TickDeps, *, manual: bool) -> TickOutcome:
    began = deps.clock.monotonic()
    memory = deps.record.memory()
    outcome = _fresh(deps, memory)
    at = outcome.at
    outcome, memory = await _reconcile(deps, outcome, memory)
    etags = {source.name: await source.etag() for source in deps.sources}
    due = manual or _is_due(deps, memory, at)
    if due or etags != memory.marks:
        bundle = await _sensed(deps)
        outcome = _with_what_was_sensed(outcome, bundle, changed=bundle.digest != memory.digest)
        etags = {look.source: look.mark for look in bundle.looks}
        moved = tuple(name for name, etag in etags.items() if memory.marks.get(name) != etag)
        outcome = outcome.model_copy(update={"because": moved if outcome.changed else ()})
        if (due or outcome.changed) and not (manual or deps.record.remember(memory)):
            # Also its marks stay as they were, so that the change is seen once it can be remembered.
            outcome, etags = _unplanned(deps, outcome), memory.marks
        elif due or outcome.changed:
            outcome, memory = await _acted(deps, outcome, memory, bundle)
    else:
        outcome = outcome.model_copy(update={"digest": memory.digest, "counts": memory.counts})
    seconds = round(deps.clock.monotonic() - began, 4)
    return _recorded(deps, *_counted(outcome, memory, etags, seconds))


async def _reconcile(
    deps: TickDeps, outcome: TickOutcome, memory: SenseMemory
) -> tuple[TickOutcome, SenseMemory]:
    """Take in what earlier ticks began: candidates that have ended since, and a plan none of them saw the end of."""
    settled: list[CandidateStatus] = []
    if memory.pending:
        services = await deps.services()
        anew = await close_what_is_over(
            services.engine,
            services.store,
            memory.pending.values(),
            answered=deps.answered,
            mode=deps.mode,
        )
        if anew:
            # As if nothing had been planned for yet: what there is, is news.
            memory = memory.model_copy(update={"marks": {}, "digest": ""})
        settled = [
            status for status in await at_rest(services.store, memory.pending) if _has_ended(status)
        ]
        _log_candidates(deps, settled)
    outcome = outcome.model_copy(update={"candidates": tuple(settled)})
    if not memory.run_id:
        return outcome, memory
    run = await _finished(deps, memory.run_id)
    if run is None:
        return outcome, memory.model_copy(update={"run_id": ""})
    digest = SenseJob.model_validate(run.input).bundle.digest
    return await _taken_in(deps, outcome, memory, run, digest)


async def _finished(deps: TickDeps, run_id: str) -> Run | None:
    """The run of an earlier tick, at its end. None: it cannot be brought there."""
    engine = (await deps.services()).engine
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
        deps.record.log(f"run {run_id} of an earlier tick: {error}", at=deps.clock.now())
        return None


def _has_ended(status: CandidateStatus) -> bool:
    return status.state not in ("waiting", "held back")


def _is_due(deps: TickDeps, memory: SenseMemory, now: datetime) -> bool:
    """True if it is time to plan although nothing changed."""
    due = due_at(deps.options, memory)
    return due is not None and now >= due


def due_at(options: SenseOptions, memory: SenseMemory) -> datetime | None:
    """Return when to plan again although nothing changed: on request, or because the planner gave no plan. None: never."""
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


async def _sensed(deps: TickDeps) -> Bundle:
    looks = [await source.look() for source in deps.sources]
    return bundle_of(deps.root, looks, limit_bytes=deps.options.bundle_bytes)


def _with_what_was_sensed(outcome: TickOutcome, bundle: Bundle, *, changed: bool) -> TickOutcome:
    return outcome.model_copy(
        update={
            "digest": bundle.digest,
            "changed": changed,
            "counts": {look.source: _readable(look) for look in bundle.looks},
            "missing": tuple(f"{sensed.place}: {sensed.why}" for sensed in bundle.missing),
        }
    )


def _readable(look: Look) -> int:
    """Count things, without those that could not be read."""
    unread = sum(sensed.condition not in ("ok", "cut") for sensed in look.found)
    return max(0, look.total - unread)


def _unplanned(deps: TickDeps, outcome: TickOutcome) -> TickOutcome:
    """A tick that would ask the planner the same again and again, because the next one would not know of it."""
    problems = "; ".join(deps.record.problems)
    why = f"not planning, because the state of the loop cannot be saved: {problems}"
    deps.record.log(why, at=deps.clock.now())
    return outcome.model_copy(update={"why": why})


async def _acted(
    deps: TickDeps, outcome: TickOutcome, memory: SenseMemory, bundle: Bundle
) -> tuple[TickOutcome, SenseMemory]:
    """Plan, let the candidates go as far as the gate lets them, and read off what came of it."""
    run = await _begun(deps, memory, bundle, tick=outcome.tick)
    services = await deps.services()
    run = await services.engine.finish(run.id, stop_when_waiting=True)
    return await _taken_in(deps, outcome, memory, run, bundle.digest)


async def _begun(
    deps: TickDeps,
    memory: SenseMemory,
    bundle: Bundle,
    *,
    tick: int,
    queue: str | None = None,
    settings: Mapping[str, Json] | None = None,
) -> Run:
    """The run that plans for a bundle, stored. Without a queue it is hosted here."""
    deps.record.keep_bundle(bundle)
    services = await deps.services()
    # Remembered before it is started: a run that no tick knows of would never be seen after.
    begun = memory.model_copy(update={"run_id": services.ids.new("run")})
    deps.record.remember(begun)
    return await services.engine.start(
        SENSE,
        SenseJob(bundle=bundle, tick=tick).model_dump(mode="json"),
        task=f"tick {tick}",
        queue=queue,
        settings={**services.settings, **(settings or {})},
        run_id=begun.run_id,
    )


async def _taken_in(
    deps: TickDeps, outcome: TickOutcome, memory: SenseMemory, run: Run, digest: str
) -> tuple[TickOutcome, SenseMemory]:
    """Outcome and memory with what a run came to that planned for a bundle of this digest."""
    result = _result_of(run)
    failed = result.status in (PlannerStatus.MOCK, PlannerStatus.ERROR)
    deps.record.keep_plan(result.document)
    statuses = await statuses_of((await deps.services()).store, run)
    # An empty plan that stands in for another one says nothing of what has gone.
    changes = () if failed else plan_changes(memory.last_plan, result.plan.items)
    if changes and outcome.because:
        changes = (*changes, f"because of {', '.join(outcome.because)}")
    _log_plan(deps, result, statuses, changes)
    notices = (*notices_of(result.plan), *_unwritten(statuses))
    ended = outcome.model_copy(
        update={
            "planner": result.planner,
            "status": result.status,
            "why": result.why,
            "candidates": (*outcome.candidates, *statuses),
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


def _unwritten(statuses: Sequence[CandidateStatus]) -> tuple[str, ...]:
    """Candidates of whose words nobody could make operations."""
    reasons = ((status.wo_id, no_operations(status)) for status in statuses)
    return tuple(f"{wo_id} has no operations: {reason}" for wo_id, reason in reasons if reason)


def _result_of(run: Run) -> Planned:
    if run.status is RunStatus.SUCCEEDED and isinstance(run.result, dict):
        return Planned.model_validate(run.result["planned"])
    why = run.failure.message if run.failure else f"run {run.id} is {run.status}"
    return Planned(status=PlannerStatus.ERROR, why=why)


def _log_plan(
    deps: TickDeps,
    result: Planned,
    candidates: Sequence[CandidateStatus],
    changes: Sequence[str],
) -> None:
    at, record = deps.clock.now(), deps.record
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
    _log_candidates(deps, candidates)
    for line in changes:
        record.log(f"plan {line}", at=at)


def _log_candidates(deps: TickDeps, candidates: Sequence[CandidateStatus]) -> None:
    for candidate in candidates:
        why = f" ({candidate.why})" if candidate.why else ""
        line = f"candidate {candidate.wo_id} {candidate.state}: {candidate.title}{why}"
        deps.record.log(line, at=deps.clock.now())


def _counted(
    outcome: TickOutcome, memory: SenseMemory, etags: dict[str, str], seconds: float
) -> tuple[TickOutcome, SenseMemory]:
    idle = memory.idle_ticks + (outcome.status is PlannerStatus.SKIPPED)
    tokens = memory.tokens + outcome.usage.input_tokens + outcome.usage.output_tokens
    ended = outcome.model_copy(update={"idle_ticks": idle, "tokens": tokens, "seconds": seconds})
    remembered = memory.model_copy(
        update={
            "ticks": outcome.tick,
            "idle_ticks": idle,
            "tokens": tokens,
            "marks": etags,
            "counts": outcome.counts,
            "pending": _still_pending(outcome, memory),
        }
    )
    return ended, remembered


def _still_pending(outcome: TickOutcome, memory: SenseMemory) -> dict[str, str]:
    ended = {candidate.wo_id for candidate in outcome.candidates if _has_ended(candidate)}
    waiting = {
        candidate.wo_id: candidate.run_id
        for candidate in outcome.candidates
        if candidate.state == "waiting"
    }
    return {wo: run for wo, run in {**memory.pending, **waiting}.items() if wo not in ended}


async def loop(
    deps: TickDeps,
    ended: Callable[[TickOutcome | PodiumError], None],
    stop: asyncio.Event,
    *,
    begun: Callable[[], Awaitable[None]],
) -> None:
    """Tick now and then every `every_seconds`, until told to stop. Mode and options are those of the start.

    Nobody else ticks on this root meanwhile: raises `LockHeld` at once where somebody does, else `begun` is
    called. What breaks a tick is told and logged, and the next one comes.
    """
    with deps.record.alone():
        await begun()
        while not stop.is_set():
            ended(await _survived(deps))
            try:
                async with asyncio.timeout(deps.options.every_seconds):
                    await stop.wait()
            except TimeoutError:
                continue


async def _survived(deps: TickDeps) -> TickOutcome | PodiumError:
    try:
        return await _round(deps, manual=False)
    except Interrupted:
        raise
    except PodiumError as error:
        deps.record.log(f"ERROR the tick failed: {error}", at=deps.clock.now())
        return error
