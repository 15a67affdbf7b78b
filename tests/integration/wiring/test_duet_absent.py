"""Pairs of which nothing is there: told without the code that reads terminals, and told the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.core.errors import BadInput
from podium.jobs.duet.claims import pair_folder
from podium.jobs.duet.models import Pair, PairStatus
from podium.jobs.duet.pairs import socket_path
from podium.jobs.duet.project_terminals import absent_pair_status, pair_status
from podium.jobs.duet.task_control import pairs_in_use
from tests.integration.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    return Desk(tmp_path)


def main_pair(podium: Podium) -> Pair:
    (pair,) = pairs_in_use(podium, {})
    return pair


def test_pair_that_is_not_up_is_told_as_its_terminals_tell_it(desk: Desk) -> None:
    async def both(podium: Podium) -> tuple[PairStatus | None, PairStatus]:
        podium.environ = {**podium.environ, "TMUX_TMPDIR": os.environ["TMUX_TMPDIR"]}
        pair = main_pair(podium)
        return absent_pair_status(podium, pair), await pair_status(podium, pair)

    absent, looked_at = desk.within(both)
    assert absent == looked_at
    assert not looked_at.up


def test_pair_with_a_server_or_a_record_is_looked_at(desk: Desk) -> None:
    async def told(podium: Podium) -> list[PairStatus | None]:
        podium.environ = {**podium.environ, "TMUX_TMPDIR": os.environ["TMUX_TMPDIR"]}
        pair = main_pair(podium)
        standings = []
        for place in (socket_path(pair.socket, podium.environ), pair_folder(podium, pair)):
            place.mkdir(parents=True)
            standings.append(absent_pair_status(podium, pair))
            place.rmdir()
        return standings

    assert desk.within(told) == [None, None]


def test_pair_of_calls_has_no_terminals_to_be_absent(desk: Desk) -> None:
    desk.says("flows: {duet: {transport: headless}}\n")

    async def told(podium: Podium) -> PairStatus | None:
        return absent_pair_status(podium, main_pair(podium))

    assert desk.within(told) is None


def test_agent_that_has_no_terminal_is_refused_here_too(desk: Desk) -> None:
    async def told(podium: Podium) -> PairStatus | None:
        pair = main_pair(podium)
        seat = pair.planner.model_copy(update={"agent": "opencode"})
        return absent_pair_status(podium, pair.model_copy(update={"planner": seat}))

    with pytest.raises(BadInput, match="has no terminal"):
        desk.within(told)
