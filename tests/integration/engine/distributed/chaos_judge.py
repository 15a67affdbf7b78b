"""Verdict on the record and the outside world after the chaos: every broken promise is one problem."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from pydantic import Field

from podium.core.model import FrozenModel
from tests.integration.engine.distributed.chaos_evidence import Effect, Evidence, History
from tests.integration.engine.distributed.chaos_worker import STEPS


class Trouble(FrozenModel):
    """Something that was done to a machine's worker, or to the server. Times in microseconds since 1970."""

    what: str
    machine: str = ""
    pid: int = 0
    began: int
    ended: int


class Verdict(FrozenModel):
    """The figures of a chaos run, and what was wrong."""

    faults: tuple[str, ...] = ()
    runs: int = 0
    troubles: dict[str, int] = Field(default_factory=dict)
    takeovers: int = 0
    """Runs that changed hands without having been let go of."""
    after_kill_seconds: tuple[float, ...] = ()
    """From a kill to the next start of each run it hit, where another worker was well all the time."""
    after_silence_seconds: tuple[float, ...] = ()
    """The same for workers that were stopped or cut off for longer than their lease."""
    slowest_of_all_seconds: float = 0.0
    """From a kill to the next start, also while the others and the server were in trouble."""
    repeated_in_flight: int = 0
    refused_writes: int = 0
    most_running: int = 0
    most_of_one_worker: int = 0
    seconds: float = 0.0
    complaints: dict[str, int] = Field(default_factory=dict)
    """What workers said on their standard error, and how often."""

    def summary(self) -> str:
        kills, silences = self.after_kill_seconds, self.after_silence_seconds
        return (
            f"{self.runs} runs in {self.seconds:.1f} s; troubles: {self.troubles}\n"
            f"taken over: {self.takeovers}; after a kill {_spread(kills)}, "
            f"after a stop or cut {_spread(silences)}, slowest kill of all {self.slowest_of_all_seconds:.1f} s\n"
            f"repeated in flight: {self.repeated_in_flight}; refused writes of zombies: {self.refused_writes}\n"
            f"most running: {self.most_running}, of one worker: {self.most_of_one_worker}\n"
            + "".join(f"complaint x{count}: {words}\n" for words, count in self.complaints.items())
            + "".join(f"FAULT: {fault}\n" for fault in self.faults)
        )


def judge(
    evidence: Evidence,
    troubles: Sequence[Trouble],
    *,
    run_ids: Sequence[str],
    broken: Sequence[int],
    concurrency: int,
    worker_concurrency: int,
    lease_seconds: float,
) -> Verdict:
    """`run_ids` are those that were queued, `broken` processes that did not end as they were told to.

    Faults are capped: a broken promise breaks a thousand times.
    """
    faults = [fault for run_id in run_ids for fault in _faults_of_run(evidence, run_id)]
    # One that never came to serve may have found no server.
    faults += [f"worker {pid} broke" for pid in broken if pid in evidence.owners]
    most_running = max((running for running, _ in evidence.seen), default=0)
    most_of_one = max((held for _, held in evidence.seen), default=0)
    if most_running > concurrency:
        faults.append(f"{most_running} runs were running at once, the limit is {concurrency}")
    if most_of_one > worker_concurrency:
        faults.append(f"a worker had {most_of_one} runs at once, the limit is {worker_concurrency}")
    effects = sum(len(effect) for effect in evidence.effects.values())
    every_kill = _takeover_seconds(evidence, [item for item in troubles if item.what == "kill"])
    return Verdict(
        faults=tuple(faults[:30]),
        runs=len(run_ids),
        troubles=dict(Counter(trouble.what for trouble in troubles)),
        takeovers=sum(
            not start.let_go
            for history in evidence.histories.values()
            for start in history.starts[:-1]
        ),
        after_kill_seconds=_takeover_seconds(
            evidence,
            [item for item in troubles if item.what == "kill" and _one_is_well(item, troubles)],
        ),
        after_silence_seconds=_takeover_seconds(
            evidence,
            [
                item
                for item in troubles
                if item.what in ("stop", "cut")
                and item.ended - item.began > (lease_seconds + 2) * 1_000_000
                and _one_is_well(item, troubles)
            ],
        ),
        slowest_of_all_seconds=max(every_kill, default=0.0),
        repeated_in_flight=effects - sum(map(len, evidence.outputs.values())),
        refused_writes=len(evidence.refusals),
        most_running=most_running,
        most_of_one_worker=most_of_one,
        complaints=dict(evidence.complaints.most_common(12)),
    )


def _faults_of_run(evidence: Evidence, run_id: str) -> Iterator[str]:
    if run_id not in evidence.runs:
        yield f"{run_id} is lost"
        return
    run, history = json.loads(evidence.runs[run_id]), evidence.histories[run_id]
    if (run["status"], run["result"]) != ("succeeded", STEPS):
        yield f"{run_id} is {run['status']}: {run['failure']}"
    if history.ends != 1 or history.doubly_recorded or len(history.recorded) != STEPS:
        yield f"{run_id} ended {history.ends} times, recorded {len(history.recorded)} steps"
    if history.seqs != list(range(1, len(history.seqs) + 1)):
        yield f"{run_id} has gaps in its stream"
    fences = [start.fence for start in history.starts]
    if fences != sorted(set(fences)):
        yield f"{run_id} was started under fences {fences}"
    for step, (fence, at) in history.recorded.items():
        if evidence.outputs[run_id].get(step) != fence:
            yield f"{run_id} {step}: recorded under fence {fence}, written by another owner"
        done = [effect for effect in evidence.effects[run_id] if effect.step == step]
        yield from _faults_of_step(f"{run_id} {step}", done, fence, at)
    yield from _steps_begun_without_right(evidence.effects[run_id], history)


def _faults_of_step(name: str, done: Sequence[Effect], fence: int, at: int) -> Iterator[str]:
    by_owner = [effect for effect in done if effect.fence == fence]
    if not by_owner:
        yield f"{name}: recorded without having been done by its owner"
    if len(by_owner) > 1:
        yield f"{name}: done {len(by_owner)} times by one owner"
    for effect in done:
        if effect.fence > fence:
            yield f"{name}: done again under fence {effect.fence}, recorded under {fence} at {at}"


def _steps_begun_without_right(effects: Sequence[Effect], history: History) -> Iterator[str]:
    """Yield a problem for each fence with more than one unrecorded step: a refused worker has one step in flight and begins no other."""
    unrecorded = Counter(
        effect.fence
        for effect in effects
        if effect.step not in history.recorded or history.recorded[effect.step][0] != effect.fence
    )
    for fence, count in unrecorded.items():
        if count > 1:
            yield f"{history.run_id}: {count} steps done under fence {fence} and not recorded"


def _takeover_seconds(evidence: Evidence, troubles: Sequence[Trouble]) -> tuple[float, ...]:
    """From the beginning of each trouble to the next start of each run that its worker had then."""
    seconds = []
    for trouble in troubles:
        owner = evidence.owners.get(trouble.pid)
        for history in evidence.histories.values():
            for held, taken in zip(history.starts, history.starts[1:], strict=False):
                if held.owner == owner and held.at < trouble.began < held.until and not held.let_go:
                    seconds.append((taken.at - trouble.began) / 1_000_000)
    return tuple(sorted(seconds))


def _one_is_well(trouble: Trouble, troubles: Sequence[Trouble]) -> bool:
    """Return whether another machine, and the server, had no trouble from well before until well after."""
    begin, end = trouble.began - 10_000_000, trouble.began + 10_000_000
    near = [item for item in troubles if item.began < end and item.ended > begin]
    others = {f"machine{number}" for number in (1, 2, 3)} - {trouble.machine}
    return bool(others - {item.machine for item in near}) and all(item.machine for item in near)


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "(none)"
    return f"{len(seconds)}: p50 {median(seconds):.1f} s, max {max(seconds):.1f} s"
