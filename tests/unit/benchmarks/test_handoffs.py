"""The handoff bench is worth something only if its clocks and its block are right."""

from __future__ import annotations

import pytest

from benchmarks.handoff_harness import LINES, a_block
from benchmarks.handoff_pane import is_submitted
from podium.agents.contract.messages import read_messages


def test_its_block_is_one_that_is_read_whole() -> None:
    (message,) = read_messages(a_block(7)).messages
    assert (message.type, message.id, message.body.count("\n")) == ("plan", "T-00000007", LINES - 1)


@pytest.mark.parametrize(
    ("given", "submitted"),
    [
        (b"[[/POLI:MSG]]", False),
        (b"[[/POLI:MSG]]\x1b[201~", False),
        (b"[[/POLI:MSG]]\x1b[201~\r", True),
        (b"[[/POLI:MSG]]\r", True),
        (b"half of it\r", False),
    ],
)
def test_a_blockis_submitted_by_the_enter_after_its_end(given: bytes, submitted: bool) -> None:
    assert is_submitted(given) is submitted
