"""Inputs and results of the simulation: costs, agents' behaviour, machines, and outcome."""

from __future__ import annotations

import random
from dataclasses import dataclass

CONNECTIONS = {"writer": 1, "readers": 2, "listener": 1, "presence": 1, "DBOS": 2}
"""What each worker holds open, DBOS at most."""


@dataclass(frozen=True)
class Cost:
    """Seconds that something takes: Python in the worker, the server's process, neither of them."""

    client: float = 0.0
    server: float = 0.0
    wait: float = 0.0
    """Disk and wire."""
    trips: float = 0.0
    """Times that an answer is waited for; each takes longer by the network's own delay."""

    @property
    def seconds(self) -> float:
        return self.client + self.server + self.wait

    def times(self, number: float) -> Cost:
        return Cost(*(number * item for item in (self.client, self.server, self.wait, self.trips)))


@dataclass(frozen=True)
class Costs:
    """Time that one machine takes for each thing, measured by `benchmarks.machine_costs`."""

    commit: Cost
    """A commit, whatever is in it; its begin and its lock too."""
    work: Cost
    """Each work in it."""
    step: Cost
    """The engine's own Python around each step."""
    look: Cost
    """A look at what changed, after a notice."""
    ask: Cost
    """Asking whether there is a run to be had, by a worker with a free place."""
    claim: Cost
    """DBOS's statements that take runs for a worker, beside the work that takes them over."""
    settle: Cost
    """DBOS's statements that give a run's place back."""
    tick: Cost
    """What a worker does each second whatever happens: its beat, the dead, what is due."""


@dataclass(frozen=True)
class Load:
    """Behaviour of the agents."""

    agents: int
    step_seconds: float = 0.0
    """Mean time that an agent and its tools take for one step."""
    spread: float = 1.0
    """Sigma of the log-normal distribution of that time."""
    steps: int = 10
    calls: int = 0
    """Tool calls in each step; each is requested and settled durably."""
    queued_meanwhile: bool = True
    """Whether runs are queued while others are at work, and not all of them before."""

    @property
    def works_per_step(self) -> int:
        return 1 + 2 * self.calls

    @property
    def works_per_run(self) -> int:
        """The steps', and one each to take the run and to end it, and to queue it."""
        return self.steps * self.works_per_step + 2 + self.queued_meanwhile

    def seconds(self, chance: random.Random) -> float:
        """Return how long a step takes."""
        # The mean of a log-normal distribution is exp(mu + sigma²/2).
        return self.step_seconds * chance.lognormvariate(-(self.spread**2) / 2, self.spread)

    def seconds_under_way(self, chance: random.Random) -> float:
        """Return how long a step takes that is met at some moment: long ones are met more often."""
        return self.step_seconds * chance.lognormvariate(self.spread**2 / 2, self.spread)


@dataclass(frozen=True)
class Site:
    """Machines and network that it runs on."""

    workers: int
    room: int
    """Runs that one worker hosts at once."""
    database_cores: int = 8
    worker_cores: int = 4
    shared_cores: int | None = None
    """All workers and the database on one machine with so many; the other two do not count then."""
    round_trip_seconds: float = 0.0
    """What the network adds to what was measured."""


@dataclass(frozen=True)
class Outcome:
    """Results, counted after the warm-up."""

    steps_per_second: float
    works_per_second: float
    commits_per_second: float
    wait_mean: float
    wait_p50: float
    wait_p99: float
    """Seconds from asking for a work to its being durable."""
    lock_share: float
    database_share: float
    worker_share: float
    """Shares, from 0 to 1, of the time that the lock, the database's processors and a worker's Python are busy."""

    @property
    def works_per_commit(self) -> float:
        return self.works_per_second / self.commits_per_second if self.commits_per_second else 0.0


def connections(workers: int) -> int:
    return workers * sum(CONNECTIONS.values())
