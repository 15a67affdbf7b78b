from __future__ import annotations

from benchmarks.clockwork import Bell, Clockwork, Place, Process


def test_whoever_is_due_first_goes_first_and_equals_in_the_order_they_asked() -> None:
    clockwork = Clockwork()
    seen: list[tuple[str, float]] = []

    def wait(name: str, seconds: float) -> Process:
        yield seconds
        seen.append((name, clockwork.now))

    for name, seconds in (("late", 3.0), ("first", 1.0), ("second", 1.0)):
        clockwork.start(wait(name, seconds))
    clockwork.run(until=10.0)
    assert seen == [("first", 1.0), ("second", 1.0), ("late", 3.0)]


def test_what_is_due_later_stays_due() -> None:
    clockwork = Clockwork()
    seen: list[float] = []

    def wait() -> Process:
        yield 5.0
        seen.append(clockwork.now)

    clockwork.start(wait())
    clockwork.run(until=4.0)
    assert (seen, clockwork.now) == ([], 4.0)
    clockwork.run(until=6.0)
    assert (seen, clockwork.now) == ([5.0], 6.0)


def test_a_place_goes_to_whoever_came_first_and_to_no_more_than_it_has_room_for() -> None:
    clockwork = Clockwork()
    place = Place(clockwork, room=2)
    ended: list[tuple[int, float]] = []

    def use(number: int) -> Process:
        yield from place.use(1.0)
        ended.append((number, clockwork.now))

    for number in range(5):
        clockwork.start(use(number))
    clockwork.run(until=10.0)
    assert ended == [(0, 1.0), (1, 1.0), (2, 2.0), (3, 2.0), (4, 3.0)]


def test_the_share_of_a_place_counts_from_when_it_was_forgotten() -> None:
    clockwork = Clockwork()
    place = Place(clockwork, room=2)
    clockwork.start(place.use(4.0))
    clockwork.run(until=4.0)
    assert place.share == 0.5
    place.forget()
    clockwork.start(place.use(1.0), after=1.0)
    clockwork.run(until=8.0)
    assert place.share == 1 / 8


def test_a_bell_wakes_all_who_sleep_by_it_and_nobody_who_comes_after() -> None:
    clockwork = Clockwork()
    bell = Bell(clockwork)
    woken: list[str] = []

    def sleep(name: str) -> Process:
        yield bell
        woken.append(name)

    def ring() -> Process:
        yield 1.0
        bell.ring()

    clockwork.start(sleep("one"))
    clockwork.start(sleep("two"))
    clockwork.start(ring())
    clockwork.start(sleep("late"), after=2.0)
    clockwork.run(until=5.0)
    assert woken == ["one", "two"]


def test_what_is_not_over_is_closed_at_the_end() -> None:
    clockwork = Clockwork()
    bell = Bell(clockwork)
    closed: list[str] = []

    def wait(name: str, intent: float | Bell) -> Process:
        try:
            yield intent
        finally:
            closed.append(name)

    clockwork.start(wait("asleep", bell))
    clockwork.start(wait("due", 9.0))
    clockwork.run(until=1.0)
    clockwork.end()
    assert sorted(closed) == ["asleep", "due"]
