from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.scaling import Curve, Point, main, table
from benchmarks.simulating import Points
from benchmarks.worker_pace import Pace

CURVE = Curve(
    (
        Point(1, 1000.0, Pace(200.0, 18.0), dbos=Pace(100.0, 9.0), prefect=Pace(10.0, 1.0)),
        Point(2, 600.0, Pace(300.0, 27.0), dbos=Pace(200.0, 19.0)),
    )
)


def test_every_line_shows_its_growth_and_how_it_compares_to_the_peers() -> None:
    _, one, two, _ = table(CURVE)
    assert one.split() == (
        ["1", "200", "18.0", "1.00x", "0.20x", "100", "9.0", "1.00x", "2.00x", "10.0", "20.0x"]
    )
    assert two.split() == ["2", "300", "27.0", "1.50x", "0.50x", "200", "19.0", "2.00x", "1.50x"]


def test_the_simulation_reads_the_curve_that_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "points.json"
    CURVE.kept().write(path)
    kept = Points.read(path)
    assert (kept.cores, kept.steps_per_second) == (os.cpu_count(), {1: 200.0, 2: 300.0})


@pytest.mark.parametrize(
    ("words", "text"),
    [(["--workers", "0"], "at least 1"), (["--prefect", "/no/python"], "does not exist")],
)
def test_what_cannot_be_measured_is_reported_before_anything_starts(
    capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert text in capsys.readouterr().err
