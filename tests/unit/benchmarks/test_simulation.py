from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.loads import Cost, Costs, Load, Outcome, Site, connections
from benchmarks.simulation import simulate
from podium.store.writer import MAX_BATCH
from tests.soaking import in_soak

NOTHING = Cost()
COSTS = Costs(
    commit=Cost(client=0.0002, server=0.0003, wait=0.0015, trips=2),
    work=Cost(client=0.0001, server=0.0002, trips=3),
    step=Cost(client=0.0002),
    look=NOTHING,
    ask=NOTHING,
    claim=NOTHING,
    settle=NOTHING,
    tick=NOTHING,
)


def play(load: Load, site: Site, costs: Costs = COSTS, **changes: float) -> Outcome:
    given = {"seconds": 8.0, "warm_up": 2.0, **changes}
    return simulate(costs, load, site, seconds=given["seconds"], warm_up=given["warm_up"])


def test_same_seed_yields_the_same_story_and_another_one_another() -> None:
    load, site = Load(agents=50, step_seconds=1.0, calls=2), Site(workers=3, room=20)
    first, again, other = (
        simulate(COSTS, load, site, seconds=10, warm_up=1, seed=seed) for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other


def test_one_run_alone_goes_as_fast_as_the_sum_of_its_parts() -> None:
    found = play(Load(agents=1, steps=10), Site(workers=1, room=1))
    write = COSTS.commit.seconds + COSTS.work.seconds
    run = 10 * (COSTS.step.seconds + write) + 3 * write
    assert found.steps_per_second == pytest.approx(10 / run, rel=0.01)
    assert found.wait_p50 == pytest.approx(write)


def test_a_serial_lock_makes_random_comers_wait_as_long_as_the_theory_says() -> None:
    """Mean wait of M/D/1: service · ρ / 2(1 − ρ), with ρ the share of the lock that is in use."""
    service = 0.01
    costs = Costs(Cost(wait=service), *[NOTHING] * 7)
    load = Load(agents=600, step_seconds=9.0, steps=1_000_000)
    found = simulate(costs, load, Site(workers=600, room=1), seconds=200, warm_up=30)
    rho = found.lock_share
    assert rho == pytest.approx(600 * service / 9.0, rel=0.05)
    expected = service + service * rho / (2 * (1 - rho))
    assert found.wait_mean == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("workers", [4, *map(in_soak, (1, 16))])
def test_however_many_workers_commits_follow_one_another(workers: int) -> None:
    found = play(Load(agents=1000), Site(workers=workers, room=32, database_cores=64))
    assert found.commits_per_second * COSTS.commit.seconds <= 1
    assert found.lock_share <= 1


def test_waiting_works_are_committed_together_up_to_a_most() -> None:
    one = play(Load(agents=1), Site(workers=1, room=1))
    many = play(Load(agents=1000), Site(workers=1, room=1000))
    assert one.works_per_commit == 1
    assert 64 < many.works_per_commit <= MAX_BATCH
    assert many.works_per_second > 2 * one.works_per_second


def test_on_one_machine_workers_share_its_processors() -> None:
    busy = replace(COSTS, step=Cost(client=0.01))
    load = Load(agents=1000)
    shared = play(load, Site(workers=4, room=16, shared_cores=2), busy)
    apart = play(load, Site(workers=4, room=16), busy)
    assert shared.steps_per_second <= 2 / 0.01 < apart.steps_per_second <= 4 / 0.01


def test_longer_wire_costs_as_many_roundtrips_as_there_are() -> None:
    load = Load(agents=1)
    near = play(load, Site(workers=1, room=1))
    far = play(load, Site(workers=1, room=1, round_trip_seconds=0.01))
    assert far.wait_p50 - near.wait_p50 == pytest.approx(0.01 * 5)


def test_a_worker_looks_after_commits_but_not_more_often_than_it_gathers_them() -> None:
    looking = replace(COSTS, look=Cost(server=0.001))
    idle, busy = (
        play(
            Load(agents=agents, steps=10**6),
            Site(workers=10, room=16, database_cores=1000),
            looking,
        )
        for agents in (0, 1000)
    )
    looks = busy.database_share * 1000 - busy.works_per_second * COSTS.work.server
    assert idle.database_share < 0.000001
    # Every 11 ms: 10 to gather, 1 to look. What is left are the commits' own parts.
    assert looks == pytest.approx(10 * 0.001 / 0.011 + busy.commits_per_second * 0.0003, rel=0.02)


def test_runs_beyond_the_room_of_all_workers_wait_their_turn() -> None:
    found = play(Load(agents=1000, step_seconds=1.0, spread=0.1), Site(workers=2, room=5))
    assert found.steps_per_second == pytest.approx(10, rel=0.1)


def test_every_worker_holds_seven_connections() -> None:
    assert connections(13) == 91
