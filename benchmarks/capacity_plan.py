"""The arithmetic of `docs/sizing.md`: what so many agents need, from what is assumed and what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.loads import Costs, Load, Outcome, Site, connections
from benchmarks.simulation import simulate

SIZES = (10, 1_000, 100_000)

MINUTES, HOURS, DAYS = 60, 3600, 86_400
GIGABYTE = 1e9


@dataclass(frozen=True)
class Assumed:
    """Assumptions that nobody measured here: change them to what you know of your own agents and prices."""

    step_seconds: float = 40.0
    """One turn of an agent with its tools."""
    steps: int = 12
    calls: int = 3
    requests: int = 4
    """Requests to the model in a step: one more than calls."""
    input_tokens: int = 30_000
    """Of each request, the whole conversation."""
    cached_share: float = 0.8
    """Of these, what the provider has seen before."""
    output_tokens: int = 800
    dollars_input: float = 3.0
    """Each per million tokens."""
    dollars_cached: float = 0.3
    dollars_output: float = 15.0
    agent_bytes: float = 0.4 * GIGABYTE
    """A CLI in a long conversation. Measured in a first turn: 0.15 to 0.25."""
    agent_processor_seconds: float = 5.0
    """Per step: the CLI's start, and what its tools build and test."""
    host_cores: int = 16
    host_bytes: float = 64 * GIGABYTE
    host_dollars: float = 0.7
    """Each per hour."""
    database_dollars: float = 1.0
    """8 cores, 32 GB, a disk whose flush takes about as long as the measured one's."""
    processor_share: float = 0.7
    """How much of a host's processors is given away."""
    token_bytes: float = 4.0
    record_bytes: float = 2_000.0
    """What a work sends to the database and leaves on its disk, indexes included."""

    @property
    def load(self) -> Load:
        return Load(1, step_seconds=self.step_seconds, steps=self.steps, calls=self.calls)

    @property
    def works_per_second(self) -> float:
        """Of one agent."""
        return self.load.works_per_run / (self.steps * self.step_seconds)

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.step_seconds

    @property
    def tokens_per_minute(self) -> float:
        """Input of one agent, which is what providers limit first."""
        return self.requests_per_second * self.input_tokens * MINUTES

    @property
    def model_dollars(self) -> float:
        """Return the cost of one agent's tokens in an hour of work."""
        fresh = self.input_tokens * (1 - self.cached_share) * self.dollars_input
        cached = self.input_tokens * self.cached_share * self.dollars_cached
        request = (fresh + cached + self.output_tokens * self.dollars_output) / 1e6
        return request * self.requests_per_second * HOURS

    @property
    def agents_per_host(self) -> int:
        """Return the number of agents that memory or processors allow, whichever is less, in tens."""
        by_memory = self.host_bytes / self.agent_bytes
        working = self.agent_processor_seconds / self.step_seconds
        by_processors = self.host_cores * self.processor_share / working
        return int(min(by_memory, by_processors) // 10 * 10)


AGENTS_PER_DATABASE = 1_000
"""What the simulation lets one database carry with room to spare: see `fits`."""


@dataclass(frozen=True)
class Plan:
    """Resources that so many agents at work at once need."""

    agents: int
    assumed: Assumed = Assumed()
    agents_per_database: int = AGENTS_PER_DATABASE

    @property
    def works_per_second(self) -> float:
        return self.agents * self.assumed.works_per_second

    @property
    def databases(self) -> int:
        return math.ceil(self.agents / self.agents_per_database)

    @property
    def workers_per_database(self) -> int:
        return math.ceil(self.agents / self.databases / self.assumed.agents_per_host)

    @property
    def hosts(self) -> int:
        """One worker on each."""
        return self.databases * self.workers_per_database

    @property
    def connections_per_database(self) -> int:
        return connections(self.workers_per_database)

    @property
    def memory_gigabytes(self) -> float:
        return self.agents * self.assumed.agent_bytes / GIGABYTE

    @property
    def cores(self) -> float:
        return self.agents * self.assumed.agent_processor_seconds / self.assumed.step_seconds

    @property
    def model_megabits(self) -> float:
        """To the provider: each request carries the whole conversation."""
        request = self.assumed.input_tokens * self.assumed.token_bytes
        return self.agents * self.assumed.requests_per_second * request * 8 / 1e6

    @property
    def database_megabits(self) -> float:
        return self.works_per_second * self.assumed.record_bytes * 8 / 1e6

    @property
    def disk_gigabytes_per_day(self) -> float:
        return self.works_per_second * self.assumed.record_bytes * DAYS / GIGABYTE

    @property
    def tokens_per_minute(self) -> float:
        return self.agents * self.assumed.tokens_per_minute

    @property
    def model_dollars(self) -> float:
        return self.agents * self.assumed.model_dollars

    @property
    def machine_dollars(self) -> float:
        return (
            self.hosts * self.assumed.host_dollars + self.databases * self.assumed.database_dollars
        )

    @property
    def model_share(self) -> float:
        """Of all money."""
        return self.model_dollars / (self.model_dollars + self.machine_dollars)


def on_one_database(
    costs: Costs, agents: int, *, round_trip_seconds: float = 0.0003, seconds: float = 20.0
) -> Outcome:
    """So many agents whose workers all share one database, on machines of their own."""
    assumed = Assumed()
    load = Load(agents, assumed.step_seconds, steps=assumed.steps, calls=assumed.calls)
    room = assumed.agents_per_host
    site = Site(math.ceil(agents / room), room, round_trip_seconds=round_trip_seconds)
    return simulate(costs, load, site, seconds=seconds, warm_up=10.0)


def fits(outcome: Outcome) -> bool:
    """Return whether hardly a work waits for a quarter of a second, and half of the processors are free."""
    return outcome.wait_p99 <= 0.25 and outcome.database_share <= 0.5
