"""Supervisors that are killed at any moment lose no message and send none twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.agents.tui.tmux_harness import Harness, housed
from tests.unit.sandbox.trees import ROOT

SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from tests.integration.agents.tui.tmux_harness import QUICK, Harness, a_server
async def main():
    root = Path(sys.argv[1])
    harness = Harness(a_server(root), root)
    print("begins", flush=True)
    await harness.server.come_up()
    pane = await harness.open(sys.argv[2])
    # Only of one that swallows Enter may the second come soon: another would take it for an empty message.
    enter_seconds = 0.02 if sys.argv[2] == "swallowing" else 30.0
    injector = harness.injector(pane, patience=QUICK.model_copy(update={"enter_seconds": enter_seconds}))
    number = await injector.ledger.next_number()
    print("works", flush=True)
    while number <= int(sys.argv[3]):
        await injector.deliver(number, f"message {number}\\nof many;")
        number += 1
    harness.activity.close()
    await harness.server.close()
    print("done", flush=True)
asyncio.run(main())
"""


async def test_no_message_is_lost_or_sent_twice_by_supervisors_that_are_killed(root: Path) -> None:
    async with housed(root) as harness:
        kill_and_finish(harness, "swallowing", kills=2)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["composer", "swallowing"])
async def test_the_same_over_a_hundred_kills(root: Path, kind: str) -> None:
    async with housed(root) as harness:
        kill_and_finish(harness, kind, kills=100)


def kill_and_finish(harness: Harness, kind: str, kills: int) -> None:
    """Kill one supervisor after the other, then let one finish: every message was taken once, in order."""
    chance = random.Random(7)
    for number in range(kills):
        # Some of them before they are at work.
        supervisor = start(harness, kind, 1_000_000, "works" if number % 4 else "begins")
        time.sleep(chance.uniform(0.0, 0.3))  # any moment will do: that is what is tried
        supervisor.kill()
        supervisor.communicate()
    last = len(harness.taken()) + 3
    output, _ = start(harness, kind, last, "works").communicate(timeout=200)
    assert output == b"done\n"
    assert harness.taken() == [f"message {number}\nof many;" for number in range(1, last + 1)]
    print(f"{kills} kills, {last} messages, each once")


def start(harness: Harness, kind: str, messages: int, until: str) -> subprocess.Popen[bytes]:
    """A supervisor that has said this."""
    command = [sys.executable, "-c", SUPERVISOR, str(harness.root), kind, str(messages)]
    supervisor = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert supervisor.stdout is not None
    while (output := supervisor.stdout.readline().decode().strip()) != until:
        assert output
    return supervisor
