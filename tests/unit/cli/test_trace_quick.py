"""Rows made the quick way read as those made word by word; whatever is not plain is left to these."""

from __future__ import annotations

from typing import Any

import pytest

from podium.render.trace import _on_one_line, quick_text
from podium.render.trace_rows import Row, Totals

CALL = "run_x:turn#3:00aa.0"
REQUEST: dict[str, Any] = {
    "type": "tool_requested",
    "call": CALL,
    "tool": "read_file",
    "arguments": {"path": "a.py", "first_line": 1},
    "tier": "T0",
    "rule": "reading-tools",
}
ENDED: dict[str, Any] = {"type": "tool_completed", "call": CALL, "tool": "read_file", "receipt": 7}


def call(request: dict[str, Any] | None = None, **ended: Any) -> Row:
    return Row("completed", {**ENDED, **ended}, {**REQUEST, **(request or {})})


@pytest.mark.parametrize(
    "row",
    [
        call(),
        call(receipt=None),
        call({"arguments": {}}),
        call({"arguments": {"command": "make test"}}),
        Row("", {"type": "step_started", "step": "turn#3"}),
        Row("", {"type": "step_completed", "step": "turn#3", "seconds": 1.5}),
    ],
)
def test_a_plain_row_is_made_quickly_and_reads_the_same(row: Row) -> None:
    assert quick_text(row) == _on_one_line(row, Totals())


@pytest.mark.parametrize(
    "row",
    [
        call({"arguments": {"path": "a\x1b[2Jb"}}, tool="\x1b[2J"),
        call(tool="caf\u00e9\u202e"),
        call(tool="two  spaces"),
        call(tool="x" * 61),
        call(tool=""),
        call(tool=7),
        call({"arguments": {"path": "x" * 300}}),
        call({"arguments": [1, 2]}),
        call({"arguments": {"half": "\ud800"}}),
        call({"tier": None}),
        call({"rule": "r" * 61}),
        call({"approval_id": "apr_1"}),
        call(call="no key"),
        call(call="a:b:c:d"),
        call(call=None),
        call(receipt="7"),
        call(receipt=10**20),
        call(receipt=True),
        call(error="it broke"),
        Row("DENIED", {**REQUEST, "type": "tool_refused", "reason": "never"}),
        Row("", {"type": "step_started", "step": "turn#3", "attempt": 2}),
        Row("", {"type": "step_started", "step": "x" * 61}),
        Row("", {"type": "step_started", "step": 3}),
        Row("", {"type": "note_taken", "text": "hello"}),
    ],
)
def test_a_row_that_is_not_plain_is_left_to_the_words_that_take_their_time(row: Row) -> None:
    assert quick_text(row) is None
    assert _on_one_line(row, Totals()).isprintable()
