from __future__ import annotations

import pytest

from benchmarks import sizing_page
from benchmarks.capacity_plan import AGENTS_PER_DATABASE, Assumed, Plan, fits, on_one_database
from benchmarks.simulating import read_costs
from benchmarks.sizing_page import PAGE, refreshed


@pytest.mark.soak  # simulates for seconds
def test_the_page_says_what_the_kept_figures_give() -> None:
    page = PAGE.read_text()
    assert refreshed(page) == page, "run `python -m benchmarks.sizing_page`"


def test_a_page_that_lost_a_table_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    # What stands in these tables is simulated for seconds, and does not matter here.
    for table in ("_points", "_on_one_database"):
        monkeypatch.setattr(sizing_page, table, lambda *_: ["a table"])
    with pytest.raises(SystemExit, match="occur 0 times"):
        refreshed("nothing")


def test_the_formulae_of_the_page_are_those_of_the_plan() -> None:
    assumed = Assumed()
    assert assumed.load.works_per_run == 87
    assert assumed.works_per_second == pytest.approx(0.18, abs=0.005)
    assert assumed.agents_per_host == 80
    assert assumed.model_dollars == pytest.approx(13.39, abs=0.005)


def test_one_database_carries_what_the_plan_gives_it() -> None:
    assert fits(on_one_database(read_costs(), AGENTS_PER_DATABASE))


def test_what_the_page_says_in_words_is_what_the_plans_say() -> None:
    thousand, hundred_thousand = Plan(1_000), Plan(100_000)
    assert thousand.connections_per_database == 91
    assert (hundred_thousand.databases, hundred_thousand.workers_per_database) == (100, 13)
    assert hundred_thousand.hosts == 1_300
    assert hundred_thousand.hosts * 7 == 9_100
    assert hundred_thousand.model_dollars == pytest.approx(1.3e6, rel=0.05)
    assert hundred_thousand.tokens_per_minute == pytest.approx(18e9)
    assert 0.7 < thousand.disk_gigabytes_per_day * 30 / 1000 < 1


def test_every_size_needs_at_least_one_of_everything() -> None:
    one = Plan(1)
    assert (one.databases, one.hosts, one.workers_per_database) == (1, 1, 1)
    assert 0 < one.model_share < 1
