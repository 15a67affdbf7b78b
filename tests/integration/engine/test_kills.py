"""`kill -9` at random moments of a run's life: nothing lost, nothing finished done again."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from podium.core.work import Run, RunStatus, StepRecord
from podium.store import quick_check
from tests.integration.engine.killed_run import RUN_ID, STEPS

SCRIPT = Path(__file__).with_name("killed_run.py")
RESULT = sum(number * number for number in range(STEPS))


def test_run_killed_at_random_times_ends_as_an_unkilled_one(tmp_path: Path) -> None:
    kills = _kill_and_resume(tmp_path, wanted=2, seed=7)
    print(f"{kills} kills")


@pytest.mark.soak
def test_run_killed_at_two_hundred_random_times_ends_as_an_unkilled_one(
    tmp_path: Path,
) -> None:
    kills = _kill_and_resume(tmp_path, wanted=200, seed=11)
    print(f"{kills} kills")


def _kill_and_resume(tmp_path: Path, *, wanted: int, seed: int) -> int:
    chance = random.Random(seed)
    longest = _seconds_unkilled(tmp_path / "unkilled")
    kills = rounds = 0
    while kills < wanted:
        rounds += 1
        kills += _one_life(tmp_path / str(rounds), chance, longest)
    return kills


def _seconds_unkilled(folder: Path) -> float:
    folder.mkdir()
    process = _work_on(folder)
    began = time.monotonic()
    assert process.wait(120) == 0
    _check_the_end(folder, finished={})
    return time.monotonic() - began


def _one_life(folder: Path, chance: random.Random, longest: float) -> int:
    """Kill the run's process at random moments until the run is over; gives how often."""
    folder.mkdir()
    finished: dict[str, int] = {}
    kills = 0
    while True:
        process = _work_on(folder)
        try:
            process.wait(chance.uniform(0, longest))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        else:
            assert process.returncode == 0
        finished |= _finished_and_their_effects(folder, finished)
        run = _stored_run(folder)
        if run is not None and run.status is RunStatus.SUCCEEDED:
            break
    _check_the_end(folder, finished)
    return kills


def _work_on(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdout.close()
    return process


def _finished_and_their_effects(folder: Path, known: dict[str, int]) -> dict[str, int]:
    """Effects of each recorded step, counted when it was first seen recorded."""
    effects = _effects(folder)
    return {key: effects[f"{RUN_ID}:{key}"] for key in _recorded_keys(folder) if key not in known}


def _check_the_end(folder: Path, finished: dict[str, int]) -> None:
    run = _stored_run(folder)
    assert run is not None
    assert (run.status, run.result) == (RunStatus.SUCCEEDED, RESULT)
    assert len(_recorded_keys(folder)) == STEPS
    effects = _effects(folder)
    assert len(effects) == STEPS
    for key, count in finished.items():
        assert effects[f"{RUN_ID}:{key}"] == count, f"{key} was done again after it was finished"
    assert quick_check(folder / "state" / "podium.db") == "ok"
    _check_the_stream(folder)


def _check_the_stream(folder: Path) -> None:
    seqs = [row[0] for row in _rows(folder, "SELECT seq FROM events ORDER BY position")]
    assert seqs == list(range(1, len(seqs) + 1))
    types = Counter(row[0] for row in _rows(folder, "SELECT type FROM events"))
    assert types["step_completed"] == STEPS
    assert types["run_succeeded"] == 1


def _effects(folder: Path) -> Counter[str]:
    path = folder / "effects"
    return Counter(path.read_text().split()) if path.exists() else Counter()


def _stored_run(folder: Path) -> Run | None:
    rows = _rows(folder, "SELECT body FROM runs")
    return Run.model_validate_json(rows[0][0]) if rows else None


def _recorded_keys(folder: Path) -> list[str]:
    rows = _rows(folder, "SELECT body FROM steps")
    return [StepRecord.model_validate_json(row[0]).key for row in rows]


def _rows(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    path = folder / "state" / "podium.db"
    if not path.exists():
        return []
    connection = sqlite3.connect(path)
    try:
        made = connection.execute("PRAGMA user_version").fetchone()[0]
        return connection.execute(statement).fetchall() if made else []
    finally:
        connection.close()
