from __future__ import annotations

import sys

import pytest

from benchmarks.crew import crew
from podium.testing import retry_until

ECHOING = """
import json, sys
print('{"ready": true}', flush=True)
for line in sys.stdin:
    print(json.dumps({"told": line.strip()}), flush=True)
"""


async def test_members_are_ready_receive_their_input_and_end_with_it() -> None:
    async with crew([sys.executable, "-c", ECHOING], 2) as members:
        for number, member in enumerate(members):
            member.send_line(f"word {number}")
        assert [await item.hear() for item in members] == [{"told": "word 0"}, {"told": "word 1"}]
        for member in members:
            member.check()
    for member in members:
        with pytest.raises(SystemExit, match="ended with 0"):
            member.check()


async def test_a_member_that_ends_before_it_is_ready_is_named_with_its_code() -> None:
    with pytest.raises(SystemExit, match="ended with 7"):
        async with crew([sys.executable, "-c", "raise SystemExit(7)"], 1):
            raise AssertionError("it was never ready")


async def test_a_silent_member_is_not_waited_for_without_end() -> None:
    async with crew([sys.executable, "-c", ECHOING], 1) as [member]:
        with pytest.raises(SystemExit, match=r"silent for 0\.05 s"):
            await member.hear(0.05)


async def test_a_member_that_ends_early_is_found_while_others_are_looked_after() -> None:
    leaving = "print('{}', flush=True); import sys; sys.stdin.readline(); sys.exit(3)"

    def ended() -> bool:
        try:
            member.check()
        except SystemExit:
            return True
        return False

    async with crew([sys.executable, "-c", leaving], 1) as [member]:
        member.send_line("begin")
        await retry_until(ended)
