"""Two loops and two workers on one root: no order is lost and none is done twice, whoever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.sense.race_harness import GitProject, must_be_done_once, race


def raced(tmp_path: Path, orders: int, *, kills: int = 0, seconds: float = 400.0) -> GitProject:
    git_project = GitProject(tmp_path)
    try:
        race(git_project, orders, kills=kills, seconds=seconds)
    finally:
        git_project.end()
    return git_project


@pytest.mark.soak
def test_two_loops_and_two_workers_do_every_order_once_although_they_are_killed(
    tmp_path: Path,
) -> None:
    must_be_done_once(raced(tmp_path, 10, kills=2), 10)


@pytest.mark.soak
def test_thousand_orders_are_all_done_once(tmp_path: Path) -> None:
    must_be_done_once(raced(tmp_path, 1_000, seconds=1_500), 1_000)


@pytest.mark.soak
def test_killed_at_fifty_points_they_do_every_order_once(tmp_path: Path) -> None:
    git_project = raced(tmp_path, 500, kills=50, seconds=1_500)
    assert git_project.kills == 50
    must_be_done_once(git_project, 500)
