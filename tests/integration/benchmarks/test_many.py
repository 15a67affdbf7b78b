"""The benchmarks of many machines work, whatever they measure on the machine they are tested on."""

from __future__ import annotations

import pytest

from benchmarks import aging_many, waking_many
from benchmarks.__main__ import MANY, main
from benchmarks.scaling import measure_curve
from tests.postgres import TO_INSTALL, server_programs


@pytest.fixture(autouse=True)
def installed() -> None:
    pytest.importorskip("dbos", reason="dbos is not installed: pip install 'podium[distributed]'")
    if server_programs() is None:
        pytest.skip(TO_INSTALL)


@pytest.mark.soak  # half a minute of waiting
async def test_waking_is_measured_for_hosted_and_for_unloaded_runs_and_idling_for_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waking_many, "QUICK_ROUNDS", 3)
    figures = await waking_many.measure(quick=True)
    assert [figure.name for figure in figures if figure.most is not None] == [
        "approve -> hosted run goes on, p50",
        "approve -> unloaded run goes on, p50",
        "idle worker of 2 queues, of a core",
    ]
    assert all(figure.ours > 0 for figure in figures if figure.name.startswith("approve"))


@pytest.mark.soak
async def test_aging_compares_with_a_young_database_and_forgets_while_another_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aging_many, "QUICK_RUNS", 100)
    figures = await aging_many.measure(quick=True)
    assert [figure.name for figure in figures if figure.most_ratio == 2.0] == [
        "open, 100 past runs",
        "list newest 50, 100 past runs",
        "show a run, 100 past runs",
        "a run of 10 steps, 100 past runs",
    ]
    assert figures[4].name == "forget 10 runs while another works"
    assert all(figure.ours > 0 for figure in figures)


def test_a_benchmark_that_is_none_is_named_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["nope", MANY[0]])
    assert "unknown benchmarks: nope" in capsys.readouterr().err


@pytest.mark.soak
async def test_a_worker_and_dbos_by_itself_both_get_through_what_was_queued() -> None:
    curve = await measure_curve((1,), runs=3)
    [point] = curve.points
    assert point.workers == 1
    assert point.prefect is None
    for paced in (point.podium, point.dbos):
        assert paced.steps_per_second > 0
        assert paced.runs_per_second > 0
