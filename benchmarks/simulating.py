"""`python -m benchmarks.simulating`: what many workers on one PostgreSQL would do, beside what they did.

`--measure` first measures what this machine takes for a commit, a look, a step and a claim, on a real
PostgreSQL, and keeps it in `costs.json`. Then steps per second are predicted for the points of
`points.json`, which holds what was measured with as many workers, and both are printed with their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.loads import Cost, Costs, Load, Outcome, Site
from benchmarks.simulation import simulate

HERE = Path(__file__).parent
COSTS_FILE = HERE / "costs.json"
POINTS_FILE = HERE / "points.json"
SECONDS = 10.0
WARM_UP_SECONDS = 2.0
HEAD = (
    f"{'workers':>7} {'predicted':>10} {'measured':>10} {'ratio':>6}   "
    f"{'works/commit':>12} {'wait p50':>9} {'p99':>8}   {'lock':>5} {'server':>6} {'Python':>6}"
)


@dataclass(frozen=True)
class Points:
    """A measured curve, and what it was measured with: runs of steps that do nothing, queued before."""

    cores: int
    """Of the one machine that all workers and the database share."""
    room: int
    steps: int
    steps_per_second: dict[int, float | None]
    """Workers → what they did together. None: not measured, to be predicted only."""

    @classmethod
    def read(cls, path: Path) -> Points:
        """Raises `SystemExit` that says what to do when the file is not what it should be."""
        found = _json(path, "measure it with `python -m benchmarks.scaling`")
        try:
            by_workers = {int(key): _maybe(value) for key, value in found["points"].items()}
            points = cls(int(found["cores"]), int(found["room"]), int(found["steps"]), by_workers)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SystemExit(f"{path} is not a file of measured points: {error!r}") from None
        if min((points.cores, points.room, points.steps, *by_workers), default=0) < 1:
            raise SystemExit(f"{path}: cores, room, steps and workers must be at least 1")
        if not all(worker is None or worker > 0 for worker in by_workers.values()):
            raise SystemExit(f"{path}: measured values must be more than 0, or null")
        return points

    def write(self, path: Path) -> None:
        found = asdict(self)
        found["points"] = found.pop("steps_per_second")
        path.write_text(json.dumps(found, indent=1) + "\n")


def read_costs(path: Path = COSTS_FILE) -> Costs:
    """Raises `SystemExit` that says what to do when the file is not what it should be."""
    found = _json(path, "measure it with `python -m benchmarks.simulating --measure`")
    try:
        parts = {name: Cost(**_numbers(part)) for name, part in found["costs"].items()}
        return Costs(**parts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SystemExit(f"{path} is not a file of costs: {error!r}") from None


def predict(costs: Costs, points: Points, workers: int) -> Outcome:
    """Predict the results of so many workers with runs that are always there and steps that do nothing."""
    load = Load(agents=workers * points.room, steps=points.steps, queued_meanwhile=False)
    site = Site(workers=workers, room=points.room, shared_cores=points.cores)
    return simulate(costs, load, site, seconds=SECONDS, warm_up=WARM_UP_SECONDS)


def table(costs: Costs, points: Points) -> list[str]:
    """One line for each number of workers: predicted, measured, their ratio, and what is busy."""
    rows = [
        _row(workers, predict(costs, points, workers), measured)
        for workers, measured in sorted(points.steps_per_second.items())
    ]
    return [HEAD, *rows]


def _row(workers: int, outcome: Outcome, measured: float | None) -> str:
    beside = (
        f"{measured:10.0f} {outcome.steps_per_second / measured:6.2f}" if measured else " " * 17
    )
    return (
        f"{workers:7d} {outcome.steps_per_second:10.0f} {beside}   "
        f"{outcome.works_per_commit:12.1f} "
        f"{outcome.wait_p50 * 1000:6.1f} ms {outcome.wait_p99 * 1000:5.0f} ms   "
        f"{outcome.lock_share:5.0%} {outcome.database_share:6.0%} {outcome.worker_share:6.0%}"
    )


def _json(path: Path, hint: str) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise SystemExit(f"{path} does not exist; {hint}") from None
    except ValueError as error:
        raise SystemExit(f"{path} is not JSON ({error}); {hint}") from None
    if not isinstance(found, dict):
        raise SystemExit(f"{path} is not a JSON object; {hint}")
    return found


def _numbers(found: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in found.items()}


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)


def measure_costs(path: Path) -> None:
    from benchmarks.machine_costs import measure

    measured = asyncio.run(measure())
    path.write_text(json.dumps(asdict(measured), indent=1) + "\n")
    for size, milliseconds in measured.commits.items():
        print(f"a commit of {size:3d} works {milliseconds:8.2f} ms")
    for name, cost in vars(measured.costs).items():
        print(
            f"{name:<7} Python {cost.client * 1000:7.3f} ms, server {cost.server * 1000:7.3f} ms, "
            f"neither {cost.wait * 1000:7.3f} ms, {cost.trips:.1f} round trips"
        )
    print(f"a hosted run {measured.hosted_run_bytes / 1024:.0f} KiB")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulating")
    parser.add_argument("--measure", action="store_true", help="measure the costs first")
    parser.add_argument("--costs", type=Path, default=COSTS_FILE, help="file with the costs")
    parser.add_argument(
        "--points", type=Path, default=POINTS_FILE, help="file with the measured points"
    )
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        measure_costs(chosen.costs)
    points = Points.read(chosen.points)
    print("\n".join(table(read_costs(chosen.costs), points)))


if __name__ == "__main__":
    main()
