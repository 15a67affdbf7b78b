"""The kernel tells that a program ended which somebody else started."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from podium.agents.tui.activity import EndWatch
from tests.integration.agents.tui.test_activity import shell
from tests.integration.agents.tui.tmux_harness import Harness


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as started:
        yield started


async def test_end_is_reported_once(program: subprocess.Popen[bytes]) -> None:
    ended = asyncio.Event()
    output = Mock(side_effect=ended.set)
    EndWatch(program.pid, output)
    program.kill()
    async with asyncio.timeout(60):
        await ended.wait()
    await asyncio.sleep(0)
    output.assert_called_once_with()


async def test_end_of_a_vanished_program_is_reported_too() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    ended = asyncio.Event()
    EndWatch(gone.pid, ended.set)
    assert await asyncio.wait_for(ended.wait(), 60)


async def test_after_being_stopped_it_reports_nothing(program: subprocess.Popen[bytes]) -> None:
    messages: list[str] = []
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    for watch in (
        EndWatch(gone.pid, lambda: messages.append("gone")),
        EndWatch(program.pid, lambda: messages.append("killed")),
    ):
        watch.stop()
        watch.stop()
    open_files = len(os.listdir("/proc/self/fd"))
    program.kill()
    program.wait()
    for _ in range(3):
        await asyncio.sleep(0)
    assert messages == []
    assert len(os.listdir("/proc/self/fd")) == open_files


async def test_where_the_kernel_cannot_be_asked_a_pane_is_followed_all_the_same(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    pane = await shell(harness, "exec sleep 1000")
    await harness.activity.expect_end(pane)
    with pytest.raises(OSError, match="not implemented"):
        EndWatch(os.getpid(), lambda: None)
