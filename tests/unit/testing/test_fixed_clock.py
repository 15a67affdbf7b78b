"""Time and chance that tests hold still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from podium.core.errors import BadInput
from podium.core.ids import mint_id, short_id
from podium.ports import Clock, Ids
from podium.testing import FixedClock, SteadyIds


def test_fixed_clock_does_not_advance_until_it_is_moved() -> None:
    clock: Clock = (fixed := FixedClock())
    first, seconds = clock.now(), clock.monotonic()
    assert (clock.now(), clock.monotonic()) == (first, seconds)
    fixed.advance(1.5)
    assert clock.now() == first + timedelta(seconds=1.5)
    assert clock.monotonic() == seconds + 1.5


def test_fixed_clock_shows_utc_wherever_it_was_started() -> None:
    start = datetime(2026, 5, 1, 2, 0, tzinfo=timezone(timedelta(hours=2)))
    assert FixedClock(start).now() == datetime(2026, 5, 1, tzinfo=UTC)
    assert FixedClock(start).now().utcoffset() == timedelta(0)


def test_a_fixed_clock_refuses_what_no_clock_can_do() -> None:
    with pytest.raises(BadInput, match="time zone"):
        FixedClock(datetime(2026, 5, 1))
    with pytest.raises(BadInput, match="forward"):
        FixedClock().advance(-1)


def test_steady_ids_are_the_same_every_time_and_never_twice() -> None:
    ids: Ids = SteadyIds()
    made = [ids.new("run") for _ in range(500)]
    again = SteadyIds()
    assert made == [again.new("run") for _ in range(500)]
    assert len({short_id(one) for one in made}) == 500


def test_steady_ids_have_the_shape_of_real_ones_and_sort_by_age() -> None:
    ids = SteadyIds()
    made = [ids.new("run") for _ in range(50)]
    assert made == sorted(made)
    real = mint_id("run", 0)
    assert all(len(one) == len(real) and one.startswith("run_") for one in made)
    assert all(one[4 + 12] == "7" for one in made), "the version digit of a UUIDv7"


def test_steady_ids_of_different_seeds_do_not_meet() -> None:
    one, other = SteadyIds(seed=1), SteadyIds(seed=2)
    assert not {one.new("run") for _ in range(99)} & {other.new("run") for _ in range(99)}
