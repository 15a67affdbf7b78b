"""Processes that are spoken with: their lines, their input, and what happens when one side is slow."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from podium.core.errors import NotPossibleNow
from podium.core.processes import ProcessLimits
from podium.sandbox import LauncherSettings, ProcessLauncher
from tests.unit.sandbox.trees import python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these look into /proc")

LAUNCHER = ProcessLauncher(LauncherSettings(grace_seconds=0.3, linger_seconds=0.01))


async def test_line_is_received_while_the_process_continues() -> None:
    code = "import sys; print('ready', flush=True); print(sys.stdin.readline().upper(), end='')"
    process = await LAUNCHER.start(python(code, interactive=True))
    lines = process.lines()
    assert await anext(lines) == b"ready"
    await process.send(b"go on\n")
    assert [line async for line in lines] == [b"GO ON"]
    assert (await process.wait()).stdout == b""


async def test_content_of_stdin_comes_before_what_is_sent() -> None:
    code = "import sys; print(sys.stdin.read())"
    process = await LAUNCHER.start(python(code, interactive=True, stdin=b"first "))
    await process.send(b"second")
    process.close_input()
    assert [line async for line in process.lines()] == [b"first second"]


async def test_a_megabyte_is_sent_to_a_process_that_reads_slowly() -> None:
    code = "import sys; print(len(sys.stdin.buffer.read()))"
    process = await LAUNCHER.start(python(code, interactive=True))
    for _ in range(10):
        await process.send(b"x" * 100_000)
    process.close_input()
    assert [line async for line in process.lines()] == [b"1000000"]


async def test_sending_to_a_process_that_closed_its_input_is_no_error() -> None:
    code = "import os, sys; os.close(0); print('shut', flush=True); os.read(3, 1) if 0 else None"
    process = await LAUNCHER.start(python(code, interactive=True))
    lines = process.lines()
    assert await anext(lines) == b"shut"
    await process.send(b"x" * 1_000_000)
    assert (await process.wait()).exit_code == 0


async def test_fifty_megabytes_in_one_line_are_read_whole() -> None:
    code = "import sys; sys.stdout.write('x' * 50_000_000 + '\\n')"
    process = await LAUNCHER.start(python(code, interactive=True))
    (line,) = [line async for line in process.lines()]
    assert len(line) == 50_000_000


async def test_a_line_longer_than_the_limit_is_cut_and_the_next_one_is_whole() -> None:
    code = "print('x' * 3_000_000); print('next')"
    limits = ProcessLimits(line_bytes=1_000)
    process = await LAUNCHER.start(python(code, interactive=True, limits=limits))
    messages = [line async for line in process.lines()]
    assert messages == [b"x" * 1_000, b"next"]
    assert (await process.wait()).stdout_dropped_bytes == 2_999_000


@pytest.mark.soak
async def test_a_reader_that_does_not_read_makes_the_process_wait_and_costs_no_memory() -> None:
    code = "import sys\nfor _ in range(40_000): print('y' * 999)\nprint('end')"
    tracemalloc.start()
    try:
        process = await LAUNCHER.start(python(code, interactive=True))
        lines = process.lines()
        assert await anext(lines) == b"y" * 999
        count = 1
        async for _line in lines:
            count += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 40_001
    assert peak < 20_000_000  # of forty million that were written


async def test_a_process_whose_lines_nobody_reads_still_ends_with_its_seconds() -> None:
    code = "while True: print('z' * 999)"
    process = await LAUNCHER.start(
        python(code, interactive=True, limits=ProcessLimits(seconds=0.3))
    )
    assert (await process.wait()).timed_out


async def test_of_a_talking_process_the_last_whole_lines_of_stderr_are_kept() -> None:
    code = "import sys\nfor n in range(10_000): print(f'line {n}', file=sys.stderr)"
    limits = ProcessLimits(output_bytes=1_000)
    process = await LAUNCHER.start(python(code, interactive=True, limits=limits))
    ended = await process.wait()
    kept = ended.stderr.decode().splitlines()
    assert kept[-1] == "line 9999"
    assert all(line.startswith("line ") for line in kept)
    assert len(ended.stderr) + ended.stderr_dropped_bytes == sum(
        len(f"line {n}\n") for n in range(10_000)
    )


async def test_only_an_interactive_process_has_lines() -> None:
    process = await LAUNCHER.start(python("print('all at the end')"))
    with pytest.raises(NotPossibleNow, match="not started as interactive"):
        process.lines()
    assert (await process.wait()).stdout == b"all at the end\n"
