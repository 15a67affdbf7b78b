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
from tests.integration.cli.command_runner import CommandRunner


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    return CommandRunner(tmp_path)


def main_pair(podium: Podium) -> Pair:
    (pair,) = pairs_in_use(podium, {})
    return pair


def test_pair_that_is_not_up_is_reported_as_by_its_terminals(cli: CommandRunner) -> None:
    async def both(podium: Podium) -> tuple[PairStatus | None, PairStatus]:
        podium.environ = {**podium.environ, "TMUX_TMPDIR": os.environ["TMUX_TMPDIR"]}
        pair = main_pair(podium)
        return absent_pair_status(podium, pair), await pair_status(podium, pair)

    absent, looked_at = cli.within(both)
    assert absent == looked_at
    assert not looked_at.up


def test_pair_with_a_server_or_a_record_is_looked_at(cli: CommandRunner) -> None:
    async def statuses(podium: Podium) -> list[PairStatus | None]:
        podium.environ = {**podium.environ, "TMUX_TMPDIR": os.environ["TMUX_TMPDIR"]}
        pair = main_pair(podium)
        standings = []
        for place in (socket_path(pair.socket, podium.environ), pair_folder(podium, pair)):
            place.mkdir(parents=True)
            standings.append(absent_pair_status(podium, pair))
            place.rmdir()
        return standings

    assert cli.within(statuses) == [None, None]


def test_pair_of_calls_has_no_terminals_to_be_absent(cli: CommandRunner) -> None:
    cli.says("flows: {duet: {transport: headless}}\n")

    async def statuses(podium: Podium) -> PairStatus | None:
        return absent_pair_status(podium, main_pair(podium))

    assert cli.within(statuses) is None


def test_agent_that_has_no_terminal_is_refused_here_too(cli: CommandRunner) -> None:
    async def statuses(podium: Podium) -> PairStatus | None:
        pair = main_pair(podium)
        seat = pair.planner.model_copy(update={"agent": "opencode"})
        return absent_pair_status(podium, pair.model_copy(update={"planner": seat}))

    with pytest.raises(BadInput, match="has no terminal"):
        cli.within(statuses)
