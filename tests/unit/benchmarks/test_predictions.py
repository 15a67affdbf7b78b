from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.loads import Cost, Costs
from benchmarks.simulating import COSTS_FILE, POINTS_FILE, Points, main, predict, read_costs, table

COSTS = Costs(
    commit=Cost(client=0.0002, server=0.0003, wait=0.0015, trips=2),
    work=Cost(client=0.0001, server=0.0002, trips=3),
    step=Cost(client=0.0002),
    look=Cost(client=0.0005, server=0.0005),
    ask=Cost(client=0.001, server=0.001),
    claim=Cost(client=0.002, server=0.001),
    settle=Cost(client=0.001, server=0.001),
    tick=Cost(client=0.005, server=0.005),
)


def test_predicted_and_measured_stand_side_by_side_with_their_ratio() -> None:
    points = Points(cores=2, room=8, steps=10, steps_per_second={1: None, 2: 1000.0})
    head, unmeasured, measured = table(COSTS, points)
    predicted = predict(COSTS, points, 2).steps_per_second
    assert head.split()[:4] == ["workers", "predicted", "measured", "ratio"]
    assert measured.split()[:4] == ["2", f"{predicted:.0f}", "1000", f"{predicted / 1000:.2f}"]
    assert len(unmeasured) == len(measured) == len(head)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    points = Points(cores=2, room=8, steps=10, steps_per_second={1: 900.5, 8: None})
    points.write(tmp_path / "points.json")
    assert Points.read(tmp_path / "points.json") == points


@pytest.mark.parametrize(
    ("text", "output_text"),
    [
        (None, "does not exist; measure it with"),
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("{}", "not a file of measured points"),
        ('{"cores": 2, "room": 8, "steps": 10, "points": [1]}', "not a file of measured points"),
        ('{"cores": 2, "room": 0, "steps": 10, "points": {"1": 5}}', "at least 1"),
        ('{"cores": 2, "room": 8, "steps": 10, "points": {"-1": 5}}', "at least 1"),
        ('{"cores": 2, "room": 8, "steps": 10, "points": {"1": -5}}', "more than 0"),
        ('{"cores": 2, "room": 8, "steps": 10, "points": {"1": NaN}}', "more than 0"),
    ],
)
def test_a_file_of_points_that_is_none_says_so(
    tmp_path: Path, text: str | None, output_text: str
) -> None:
    path = tmp_path / "points.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit, match=output_text):
        Points.read(path)


@pytest.mark.parametrize(
    "text", ['{"costs": {}}', '{"costs": {"commit": {"client": "much"}}}', '{"costs": 3}', "{}"]
)
def test_a_file_of_costs_that_is_none_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(SystemExit, match="not a file of costs"):
        read_costs(path)


def test_the_kept_figures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    printed = capsys.readouterr().out.splitlines()
    workers = sorted(int(point) for point in json.loads(POINTS_FILE.read_text())["points"])
    assert [int(line.split()[0]) for line in printed[1:]] == workers


def test_the_simulation_agrees_with_what_was_measured() -> None:
    points = Points.read(POINTS_FILE)
    costs = read_costs(COSTS_FILE)
    ratios = {
        workers: predict(costs, points, workers).steps_per_second / measured
        for workers, measured in points.steps_per_second.items()
        if measured is not None
    }
    assert len(ratios) >= 4
    assert all(0.7 <= ratio <= 1.4 for ratio in ratios.values()), ratios
