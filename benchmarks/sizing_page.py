"""`python -m benchmarks.sizing_page`: writes the tables of `docs/sizing.md` anew from the kept figures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.capacity_plan import SIZES, Plan, fits, on_one_database
from benchmarks.loads import Costs
from benchmarks.simulating import COSTS_FILE, POINTS_FILE, Points, predict, read_costs

PAGE = Path(__file__).parents[1] / "docs" / "sizing.md"

NEEDS: Sequence[tuple[str, Callable[[Plan], str]]] = (
    ("works a second", lambda plan: f"{plan.works_per_second:,.1f}"),
    ("databases", lambda plan: f"{plan.databases:,}"),
    ("hosts, with one worker each", lambda plan: f"{plan.hosts:,}"),
    ("connections to each database", lambda plan: f"{plan.connections_per_database:,}"),
    ("memory of agents", lambda plan: f"{plan.memory_gigabytes:,.0f} GB"),
    ("processors at work", lambda plan: f"{plan.cores:,.1f}"),
    ("network to models", lambda plan: f"{plan.model_megabits:,.1f} Mbit/s"),
    ("network to databases", lambda plan: f"{plan.database_megabits:,.2f} Mbit/s"),
    ("disk a day", lambda plan: f"{plan.disk_gigabytes_per_day:,.1f} GB"),
    ("input tokens a minute", lambda plan: f"{plan.tokens_per_minute / 1e6:,.1f} million"),
    ("models, an hour", lambda plan: f"${plan.model_dollars:,.0f}"),
    ("machines, an hour", lambda plan: f"${plan.machine_dollars:,.2f}"),
    ("models' share of the money", lambda plan: f"{plan.model_share:.2%}"),
)

ON_ONE_DATABASE = (250, 500, 1_000, 2_000, 3_000)
ROUND_TRIPS = (0.0003, 0.001)
"""Seconds: within one data centre, and between two of a region."""


def refreshed(page: str) -> str:
    """The page with every table between its marks made anew."""
    costs = read_costs()
    tables = {
        "costs": _costs(costs),
        "points": _points(costs, Points.read(POINTS_FILE)),
        "one database": _on_one_database(costs),
        "sizes": _sizes(),
    }
    for name, lines in tables.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        text = "\n".join((marks[0], *lines, marks[1]))
        pattern = f"{re.escape(marks[0])}.*?{re.escape(marks[1])}"
        page, found = re.subn(pattern, lambda _, text=text: text, page, flags=re.DOTALL)  # type: ignore[misc]
        if found != 1:
            raise SystemExit(
                f"{PAGE}: the marks {marks} of the table occur {found} times, expected once"
            )
    return page


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _costs(costs: Costs) -> list[str]:
    head = ("what", "Python", "server", "disk and wire", "answers waited for")
    rows = [
        (name, _ms(cost.client), _ms(cost.server), _ms(cost.wait), f"{cost.trips:.1f}")
        for name, cost in vars(costs).items()
    ]
    kept = json.loads(COSTS_FILE.read_text())
    return [
        *_table(head, rows),
        "",
        f"A hosted run takes {kept['hosted_run_bytes'] / 1024:.0f} KiB of its worker's memory; a work adds "
        f"{kept['log_bytes']:,} bytes to the server's log and {kept['kept_bytes']:,} to the database.",
    ]


def _points(costs: Costs, points: Points) -> list[str]:
    head = (
        "workers",
        "simulated steps/s",
        "measured steps/s",
        "ratio",
        "works in a commit",
        "lock busy",
    )
    rows = []
    for workers, measured in sorted(points.steps_per_second.items()):
        found = predict(costs, points, workers)
        ratio = f"{found.steps_per_second / measured:.2f}" if measured else ""
        shown = f"{measured:.0f}" if measured else ""
        size, lock = f"{found.works_per_commit:.1f}", f"{found.lock_share:.0%}"
        rows.append((str(workers), f"{found.steps_per_second:.0f}", shown, ratio, size, lock))
    return _table(head, rows)


def _on_one_database(costs: Costs) -> list[str]:
    head = (
        "agents",
        "round trip",
        "works/s",
        "in a commit",
        "wait p50",
        "p99",
        "lock",
        "server",
        "",
    )
    rows = []
    for round_trip in ROUND_TRIPS:
        for agents in ON_ONE_DATABASE:
            found = on_one_database(costs, agents, round_trip_seconds=round_trip)
            waits = (f"{found.wait_p50 * 1000:.0f} ms", f"{found.wait_p99 * 1000:.0f} ms")
            busy = (f"{found.lock_share:.0%}", f"{found.database_share:.0%}")
            done = (f"{found.works_per_second:.0f}", f"{found.works_per_commit:.1f}")
            verdict = "fits" if fits(found) else "too many"
            rows.append((f"{agents:,}", _ms(round_trip), *done, *waits, *busy, verdict))
    return _table(head, rows)


def _sizes() -> list[str]:
    plans = [Plan(agents) for agents in SIZES]
    head = ("agents at work", *(f"{agents:,}" for agents in SIZES))
    return _table(head, [(name, *(show(plan) for plan in plans)) for name, show in NEEDS])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text()))
