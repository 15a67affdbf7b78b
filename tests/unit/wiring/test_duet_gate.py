"""Programs on terminals may read the messages that they were handed as files, and nothing else for that."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podium.core.decisions import Call, Effect, GateContext
from podium.jobs.duet.confinement import MessagesGate
from podium.testing import ScriptedGate

CONTEXT = GateContext(tool=None, root="/w", now=datetime(2026, 1, 2, tzinfo=UTC))


def judged(tool: str, path: str) -> Effect:
    gate = MessagesGate(ScriptedGate([Effect.DENY]), "/state/pair")
    call = Call(run_id="r", step_key="s", index=0, tool=tool, arguments={"path": path})
    return gate.decide(call, CONTEXT).effect


def test_a_message_may_be_read() -> None:
    assert judged("read_file", "/state/pair/planner/messages/0-1.txt") is Effect.ALLOW


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("write_file", "/state/pair/planner/messages/0-1.txt"),
        ("read_file", "/state/pair/planner/door/door.json"),
        ("read_file", "/state/pair/planner/messages/../door/door.json"),
        ("read_file", "/state/pair/planner/messages/a/b"),
        ("read_file", "/state/pairs/planner/messages/0-1.txt"),
        ("read_file", "/state/messages/0-1.txt"),
        ("read_file", "planner/messages/0-1.txt"),
        ("read_file", ""),
    ],
)
def test_all_else_follows_the_underlying_gate(tool: str, path: str) -> None:
    assert judged(tool, path) is Effect.DENY
