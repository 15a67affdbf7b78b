"""Simulation of many workers on one PostgreSQL, event by event in simulated time.

Agents think and call tools; each step and each half of a call is a *work* that must be durable. A
worker's writer commits the works that wait, up to 128 together, under the one lock that makes commits
serial. Each commit wakes the listeners of all workers, each at most every 10 ms. Python runs
on one processor at a time in each worker; a connection's server process takes one of the database's.
"""

from __future__ import annotations

import random
import statistics
from collections import deque
from dataclasses import dataclass, field

from benchmarks.clockwork import Bell, Clockwork, Place, Process
from benchmarks.figures import percentile
from benchmarks.loads import Cost, Costs, Load, Outcome, Site
from podium.engine.distributed import DISTRIBUTED
from podium.store.writer import MAX_BATCH

GATHER_SECONDS = DISTRIBUTED.gather_seconds
TICK_SECONDS = DISTRIBUTED.tick_seconds


@dataclass
class _Tally:
    steps: int = 0
    works: int = 0
    commits: int = 0
    waits: list[float] = field(default_factory=list)


class _Database:
    def __init__(self, clockwork: Clockwork, cores: Place) -> None:
        self.lock = Place(clockwork)
        self.cores = cores
        self.committed = Bell(clockwork)
        self.tally = _Tally()
        self.changes = 0


class _Worker:
    """One process: runs that take turns in its Python, a writer, a listener."""

    def __init__(
        self, clockwork: Clockwork, costs: Costs, site: Site, database: _Database, cores: Place
    ) -> None:
        self.python = Place(clockwork)
        self._clockwork = clockwork
        self._costs = costs
        self._site = site
        self._database = database
        self._cores = cores
        self._asked: deque[tuple[int, Bell]] = deque()
        self._work_came = Bell(clockwork)
        self._free: list[Bell] = []
        self._place_came = Bell(clockwork)
        self._places_taken = 0

    def work_off(self, load: Load, chance: random.Random) -> Process:
        """One place of the worker: run after run, the first from somewhere in its middle."""
        self._places_taken += 1
        yield from self._step(load, load.seconds_under_way(chance), left=chance.random())
        left = chance.randrange(load.steps)
        while True:
            for _ in range(left):
                yield from self._step(load, load.seconds(chance))
            yield from self._write()
            self._clockwork.start(self._spend(self._costs.settle))
            if load.queued_meanwhile:
                yield from self._write()
            yield from self._wait_for_a_run()
            left = load.steps

    def _wait_for_a_run(self) -> Process:
        self._places_taken -= 1
        given = Bell(self._clockwork)
        self._free.append(given)
        self._place_came.ring()
        yield given
        self._places_taken += 1

    def claim(self) -> Process:
        """Runs for all places that are free by now, in one go."""
        while True:
            if not self._free:
                yield self._place_came
            yield from self._spend(self._costs.ask)
            places, self._free = self._free, []
            yield from self._spend(self._costs.claim)
            yield from self._write(len(places))
            for given in places:
                given.ring()

    def _step(self, load: Load, seconds: float, left: float = 1.0) -> Process:
        """Run the rest of a step that takes so long as a whole."""
        parts = load.works_per_step
        pause = seconds / parts
        begun, done = divmod(parts * (1 - left), 1)
        yield from self._spend(self._costs.step)
        for number in range(int(begun), parts):
            if pause:
                yield pause * (1 - done if number == begun else 1)
            yield from self._write()
        self._database.tally.steps += 1

    def _write(self, works: int = 1) -> Process:
        durable = Bell(self._clockwork)
        began = self._clockwork.now
        self._asked.append((works, durable))
        self._work_came.ring()
        yield durable
        self._database.tally.waits.append(self._clockwork.now - began)

    def write(self) -> Process:
        """The writer: whatever waits when its turn has come goes into one commit."""
        database = self._database
        while True:
            if not self._asked:
                yield self._work_came
            yield database.lock
            batch = [self._asked.popleft() for _ in range(min(len(self._asked), MAX_BATCH))]
            size = sum(works for works, _ in batch)
            yield from self._spend(self._costs.commit)
            yield from self._spend(self._costs.work.times(size))
            database.lock.leave()
            database.tally.commits += 1
            database.tally.works += len(batch)
            database.changes += 1
            database.committed.ring()
            for _, durable in batch:
                durable.ring()

    def listen(self) -> Process:
        seen = -1
        while True:
            if self._database.changes == seen:
                yield self._database.committed
            seen = self._database.changes
            yield from self._spend(self._costs.look)
            if self._places_taken < self._site.room:
                yield from self._spend(self._costs.ask)
            yield GATHER_SECONDS

    def tick(self) -> Process:
        while True:
            yield TICK_SECONDS
            yield from self._spend(self._costs.tick)

    def _spend(self, cost: Cost) -> Process:
        if cost.client:
            yield self.python
            yield from self._cores.use(cost.client)
            self.python.leave()
        if cost.server:
            yield from self._database.cores.use(cost.server)
        if away := cost.wait + cost.trips * self._site.round_trip_seconds:
            yield away


def simulate(
    costs: Costs, load: Load, site: Site, *, seconds: float, warm_up: float, seed: int = 1
) -> Outcome:
    """Play it through. The same arguments give the same outcome."""
    clockwork = Clockwork()
    shared = None if site.shared_cores is None else Place(clockwork, site.shared_cores)
    database = _Database(clockwork, shared or Place(clockwork, site.database_cores))
    workers = [
        _Worker(clockwork, costs, site, database, shared or Place(clockwork, site.worker_cores))
        for _ in range(site.workers)
    ]
    chance = random.Random(seed)
    for worker in workers:
        clockwork.start(worker.write())
        clockwork.start(worker.claim())
        if costs.look != Cost():
            clockwork.start(worker.listen())
        clockwork.start(worker.tick(), chance.random() * TICK_SECONDS)
    for number in range(min(load.agents, site.workers * site.room)):
        clockwork.start(workers[number % site.workers].work_off(load, chance))
    clockwork.run(warm_up)
    database.tally = tally = _Tally()
    places = [database.lock, database.cores, *(worker.python for worker in workers)]
    for place in places:
        place.forget()
    clockwork.run(warm_up + seconds)
    clockwork.end()
    waits = tally.waits or [0.0]
    lock, cores, *pythons = (place.share for place in places)
    return Outcome(
        steps_per_second=tally.steps / seconds,
        works_per_second=tally.works / seconds,
        commits_per_second=tally.commits / seconds,
        wait_mean=statistics.fmean(waits),
        wait_p50=percentile(waits, 0.5),
        wait_p99=percentile(waits, 0.99),
        lock_share=lock,
        database_share=cores,
        worker_share=max(pythons),
    )
