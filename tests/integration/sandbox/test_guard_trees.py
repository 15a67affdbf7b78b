"""The parts of the guard that can be held alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard.processes import GroupTree, ProcessEntry, descendants_of, entry_of
from podium.sandbox.guard_pool import start_guard
from podium.testing import retry_until_blocking
from tests.unit.sandbox.trees import ESCAPES, alive, new_token, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these look into /proc")

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
LIMIT = st.none() | st.integers(min_value=0, max_value=1 << 40)


@given(
    argv=st.lists(TEXT, min_size=1, max_size=5),
    env=st.dictionaries(TEXT, TEXT, max_size=5),
    cwd=TEXT,
    memory_bytes=LIMIT,
    processes=LIMIT,
    file_bytes=LIMIT,
    seconds=st.none() | st.floats(0, 1e6),
)
def test_an_order_arrives_as_it_was_given(
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    memory_bytes: int | None,
    processes: int | None,
    file_bytes: int | None,
    seconds: float | None,
) -> None:
    order = GuardOrder(
        program="/bin/true",
        argv=argv,
        cwd=cwd,
        env=env,
        owner_pid=7,
        seconds=seconds,
        grace_seconds=5.0,
        linger_seconds=0.2,
        farewell_seconds=0.0,
        memory_bytes=memory_bytes,
        processes=processes,
        file_bytes=file_bytes,
        leaves_server=seconds is None,
    )
    arrived = _sent(order.encode())
    assert arrived is not None
    assert vars(arrived) == vars(order)


def test_half_an_order_is_none() -> None:
    order = _order("/bin/true", ["true"]).encode()
    assert all(_sent(order[:length]) is None for length in range(len(order)))


def test_a_tree_ends_when_its_lifeline_is_cut_though_podium_lives() -> None:
    token = new_token()
    code = ESCAPES + "escape(); forever()"
    guard = start_guard(python(code, token))
    guard.control.setblocking(True)
    order = _order(sys.executable, [sys.executable, "-IS", "-c", code, token])
    guard.control.sendall(order.encode())
    retry_until_blocking(lambda: len(alive(token)) == 2)
    guard.control.close()
    retry_until_blocking(lambda: alive(token) == [])
    for pipe in (guard.stdin, guard.stdout, guard.stderr):
        pipe.close()


def test_a_signal_never_reaches_a_process_that_only_has_the_same_pid() -> None:
    with subprocess.Popen([sys.executable, "-IS", "-c", "input()"], stdin=subprocess.PIPE) as child:
        entry = entry_of(child.pid)
        assert entry is not None
        another = ProcessEntry(entry.pid, entry.parent, entry.state, entry.threads, entry.start - 1)
        another.send(signal.SIGKILL)
        child.communicate(b"\n")
        assert child.returncode == 0


def test_a_process_is_read_whatever_its_name() -> None:
    code = "open('/proc/self/comm', 'w').write('a) R 1 ('); input()"
    with subprocess.Popen([sys.executable, "-IS", "-c", code], stdin=subprocess.PIPE) as child:
        retry_until_blocking(lambda: _comm(child.pid) == "a) R 1 (")
        assert [entry.pid for entry in descendants_of(os.getpid()) if entry.pid == child.pid]
        child.communicate(b"\n")


def test_a_group_can_be_ended_where_nothing_better_is_to_be_had() -> None:
    code = "import os, signal, time; signal.signal(15, 1); print(os.fork(), flush=True); time.sleep(1000)"
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", code], stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        other = max(int(child.stdout.readline()), int(child.stdout.readline()))
        tree = GroupTree()
        assert tree.is_empty()
        tree.first_pid = child.pid
        assert not tree.is_empty()
        tree.ask_to_end()
        tree.kill()
        assert tree.is_empty()
        assert tree.first_status is not None
        assert os.WTERMSIG(tree.first_status) == signal.SIGKILL
        retry_until_blocking(lambda: (entry := entry_of(other)) is None or entry.is_zombie)


def _order(program: str, argv: list[str]) -> GuardOrder:
    return GuardOrder(
        program=program,
        argv=argv,
        cwd="/",
        env={},
        owner_pid=os.getpid(),
        seconds=None,
        grace_seconds=5.0,
        linger_seconds=0.2,
        farewell_seconds=0.0,
        memory_bytes=None,
        processes=None,
        file_bytes=None,
    )


def _sent(data: bytes) -> GuardOrder | None:
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as pipe:
        pipe.write(data)
    try:
        return GuardOrder.read_from(read_end)
    finally:
        os.close(read_end)


def _comm(pid: int) -> str:
    with open(f"/proc/{pid}/comm") as file:
        return file.read().rstrip("\n")
