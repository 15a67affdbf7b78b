"""The conductor: three machines, one server, many runs, and whatever can go wrong, by a seed.

Run as a program within a hub (see `namespaces`): gets a `Plan` as JSON and a folder, prints a `Verdict` as JSON.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import psycopg

from podium.core.model import FrozenModel
from podium.engine.distributed import DISTRIBUTED
from podium.engine.distributed.database import migrate
from podium.store.postgres import prepare
from tests.integration.engine.distributed.chaos_evidence import WITNESS, Evidence
from tests.integration.engine.distributed.chaos_harness import Place, server_on_cables
from tests.integration.engine.distributed.chaos_judge import Trouble, Verdict, judge
from tests.integration.engine.distributed.chaos_worker import Duty, Errand, open_engine
from tests.integration.engine.distributed.namespaces import Machine, bring_up_loopback
from tests.postgres import PostgresServer

What = Literal["kill", "stop", "cut", "restart", "outage"]


class Plan(FrozenModel):
    """Kinds and amounts of the disturbances."""

    seed: int
    runs: int
    kills: int
    stops: int
    cuts: int
    restarts: int
    outages: int
    """Restarts of the server."""
    longest_step_seconds: float
    shortest_trouble_seconds: float = 1.0
    longest_trouble_seconds: float = 12.0
    pause_seconds: float = 0.0
    """At least so long from the beginning of one trouble to that of the next."""
    concurrency: int = 10
    worker_concurrency: int = 4
    bound_seconds: float = 1800.0

    def troubles(self, chance: random.Random) -> list[What]:
        amounts: dict[What, int] = {
            "kill": self.kills,
            "stop": self.stops,
            "cut": self.cuts,
            "restart": self.restarts,
        }
        plan = [what for what, amount in amounts.items() for _ in range(amount)]
        chance.shuffle(plan)
        for number in range(self.outages):
            plan.insert((number + 1) * len(plan) // (self.outages + 1), "outage")
        return plan


class Conductor:
    """Does what is planned while the runs go on."""

    def __init__(
        self, plan: Plan, server: PostgresServer, places: list[Place], database: str
    ) -> None:
        self._plan = plan
        self._server = server
        self._places = places
        self._url = server.url(database)
        self._chance = random.Random(plan.seed)
        self.troubles: list[Trouble] = []

    async def conduct(self) -> None:
        """Spread the troubles over the runs, several at a time, until every run has ended or time is up."""
        planned = self._plan.troubles(self._chance)
        deadline = time.monotonic() + self._plan.bound_seconds
        under_way: set[asyncio.Task[None]] = set()
        ended = 0
        while ended < self._plan.runs and time.monotonic() < deadline:
            began = len(self.troubles) + len(under_way)
            due = began < len(planned) and ended * (len(planned) + 1) >= self._plan.runs * (
                began + 1
            )
            if due and (do := self._possible(planned[began])) is not None:
                task = asyncio.ensure_future(do)
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            await asyncio.sleep(0.1)
            ended = max(ended, await asyncio.to_thread(self._ended))
            for place in self._places:
                place.look_after()
        await asyncio.gather(*under_way)
        await asyncio.gather(*(place.end() for place in self._places))

    def _possible(self, what: What) -> Awaitable[None] | None:
        """The trouble for a worker that has none. None: not now."""
        if what == "outage":
            return self._noted(what, None, self._restart_server)
        well = [place for place in self._places if not place.in_trouble]
        if not well:
            return None
        place = self._chance.choice(well)
        deeds: dict[What, Callable[[], Awaitable[None]]] = {
            "kill": lambda: self._kill(place),
            "stop": lambda: self._stop(place),
            "cut": lambda: self._cut(place),
            "restart": lambda: self._restart(place),
        }
        place.in_trouble = True
        return self._noted(what, place, deeds[what])

    async def _noted(
        self, what: What, place: Place | None, deed: Callable[[], Awaitable[None]]
    ) -> None:
        began, pid = _now(), place.process.pid if place else 0
        await deed()
        name = place.machine.name if place else ""
        self.troubles.append(Trouble(what=what, machine=name, pid=pid, began=began, ended=_now()))
        if place:
            place.in_trouble = False

    async def _kill(self, place: Place) -> None:
        place.kill()
        await asyncio.sleep(self._chance.uniform(0, 3))
        place.start()

    async def _stop(self, place: Place) -> None:
        place.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(self._a_while())
        place.process.send_signal(signal.SIGCONT)

    async def _cut(self, place: Place) -> None:
        place.machine.cut_off()
        await asyncio.sleep(self._a_while())
        place.machine.join()

    async def _restart(self, place: Place) -> None:
        await place.end()
        place.start()

    async def _restart_server(self) -> None:
        await asyncio.to_thread(self._server.restart, "immediate")

    def _a_while(self) -> float:
        plan = self._plan
        return self._chance.uniform(plan.shortest_trouble_seconds, plan.longest_trouble_seconds)

    def _ended(self) -> int:
        """Return the number of runs that have ended; 0 while the server is away."""
        statement = "SELECT count(*) FROM podium.runs WHERE finished_at IS NOT NULL"
        try:
            with psycopg.connect(self._url) as connection:
                row = connection.execute(statement).fetchone()
        except psycopg.OperationalError:
            return 0
        return row[0] if row else 0


async def conduct(plan: Plan, folder: Path) -> Verdict:
    """Everything, from an empty hub to the verdict; nothing is left of it."""
    bring_up_loopback()
    with ExitStack() as stack:
        machines = [Machine(number) for number in (1, 2, 3)]
        for machine in machines:
            stack.callback(machine.close)
        server = stack.enter_context(server_on_cables(machines))
        database = server.create_database()
        url = server.url(database)
        prepare(url)
        migrate(url)
        with psycopg.connect(url) as connection:
            connection.execute(WITNESS)
        run_ids = await _queue_runs(plan, url, folder)
        began = time.monotonic()
        places = [Place(machine, _duty(plan, machine, url, folder)) for machine in machines]
        for place in places:
            stack.callback(place.kill)
        conductor = Conductor(plan, server, places, database)
        await conductor.conduct()
        seconds = time.monotonic() - began
        verdict = judge(
            Evidence(url, folder),
            conductor.troubles,
            run_ids=run_ids,
            broken=[pid for place in places for pid in place.broken],
            concurrency=plan.concurrency,
            worker_concurrency=plan.worker_concurrency,
            lease_seconds=DISTRIBUTED.lease_seconds,
        )
    return verdict.model_copy(update={"seconds": seconds})


def _duty(plan: Plan, machine: Machine, url: str, folder: Path) -> Duty:
    return Duty(
        url=url.replace("127.0.0.1", machine.hub_address),
        machine=machine.name,
        folder=str(folder),
        concurrency=plan.concurrency,
        worker_concurrency=plan.worker_concurrency,
    )


async def _queue_runs(plan: Plan, url: str, folder: Path) -> list[str]:
    store, engine = await open_engine(url, folder / "conductor", "hub")
    errand = Errand(folder=str(folder), longest_step_seconds=plan.longest_step_seconds)
    starts = [
        engine.start("ten", errand.model_dump(mode="json"), queue="work") for _ in range(plan.runs)
    ]
    runs = await asyncio.gather(*starts)
    await engine.close()
    await store.close()
    return [run.id for run in runs]


def _now() -> int:
    return time.time_ns() // 1000


if __name__ == "__main__":
    plan = Plan.model_validate_json(sys.argv[1])
    print(asyncio.run(conduct(plan, Path(sys.argv[2]))).model_dump_json())
