"""Three machines and one server, and everything that can happen to them: no run lost, nothing finished done again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.integration.engine.distributed.chaos import Plan
from tests.integration.engine.distributed.chaos_judge import Verdict
from tests.integration.engine.distributed.namespaces import in_a_hub, why_no_namespaces
from tests.postgres import TO_INSTALL, server_programs

TAKEN_OVER_WITHIN_SECONDS = 10.0


@pytest.mark.soak
def test_runs_on_three_machines_survive_a_kill_a_cut_and_a_restart_of_the_server(
    tmp_path: Path,
) -> None:
    _check(
        tmp_path,
        Plan(
            seed=1,
            runs=10,
            kills=1,
            stops=0,
            cuts=1,
            restarts=1,
            outages=0,
            longest_step_seconds=0.2,
            shortest_trouble_seconds=7.0,
            longest_trouble_seconds=8.0,
            concurrency=5,
            worker_concurrency=2,
            bound_seconds=400,
        ),
    )


@pytest.mark.soak
def test_a_thousand_runs_on_three_machines_survive_a_hundred_troubles(tmp_path: Path) -> None:
    verdict = _check(
        tmp_path,
        Plan(
            seed=3,
            runs=1000,
            kills=40,
            stops=25,
            cuts=25,
            restarts=10,
            outages=2,
            longest_step_seconds=0.05,
        ),
    )
    assert verdict.refused_writes > 0, "no zombie has tried to write"


@pytest.mark.soak
def test_the_runs_of_a_worker_that_dies_or_falls_silent_are_taken_over_within_ten_seconds(
    tmp_path: Path,
) -> None:
    verdict = _check(
        tmp_path,
        Plan(
            seed=4,
            runs=350,
            kills=8,
            stops=3,
            cuts=3,
            restarts=0,
            outages=0,
            longest_step_seconds=0.9,
            shortest_trouble_seconds=9.5,
            longest_trouble_seconds=10.0,
            pause_seconds=11.0,
        ),
    )
    assert verdict.after_kill_seconds, "no kill hit a run"
    assert verdict.after_silence_seconds, "no stop and no cut hit a run"
    slowest = max(*verdict.after_kill_seconds, *verdict.after_silence_seconds)
    assert slowest <= TAKEN_OVER_WITHIN_SECONDS, verdict.summary()


def _check(folder: Path, plan: Plan) -> Verdict:
    verdict = _conduct(folder, plan)
    print(verdict.summary())
    assert not verdict.faults, verdict.summary()
    assert sum(verdict.troubles.values()) == len(plan.troubles(Random(plan.seed)))
    return verdict


def _conduct(folder: Path, plan: Plan) -> Verdict:
    if (reason := why_no_namespaces()) is not None:
        pytest.skip(reason)
    if server_programs() is None:
        pytest.skip(TO_INSTALL)
    program = [sys.executable, "-m", "tests.integration.engine.distributed.chaos"]
    done = subprocess.run(
        in_a_hub([*program, plan.model_dump_json(), str(folder)]),
        cwd=Path(__file__).parents[4],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Verdict.model_validate_json(done.stdout)
