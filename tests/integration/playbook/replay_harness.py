"""Runs to replay: recorded by a scripted agent, and what is said of their replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.cli.command_runner import CommandResult
from tests.integration.playbook.playbook_harness import READ, Stage, call

WRITE = call("write_file", path="version.txt", content="2.0\n")
MIXED = (
    READ,
    call("no_such_tool", x=1),
    call("read_file", wrong=True),
    call("write_file", path="vendor/lib.txt", content="mine\n"),
    call("run_command", command="cat version.txt && false"),
    call("read_file", path="missing.txt"),
    {"say": "Now I change it."},
    WRITE,
    READ,
    call("finish", summary="It is 2.0 now."),
)
"""Calls of every kind: good, unknown, malformed, forbidden, failing, repeated."""

Events = list[dict[str, Any]]


def recorded(stage: Stage, *arguments: str, code: int = 0) -> str:
    """Run the playbook and give the run's id."""
    left, lines = stage.events(*arguments)
    assert left == code, lines[-1]
    return str(lines[0]["run"])


def trace_file(stage: Stage, run_id: str) -> Path:
    return stage.root / ".podium" / "runs" / run_id / "execution_trace.jsonl"


def replayed(stage: Stage, source: str | Path, *arguments: str) -> CommandResult:
    return stage.cli.run("replay", str(source), "--json", *arguments)


def same(stage: Stage, source: str | Path) -> dict[str, Any]:
    """The answer of a replay in which nothing differs."""
    result = replayed(stage, source)
    assert result.code == 0, result.out + result.err
    answer: dict[str, Any] = result.json
    assert answer["verbatim"], answer
    assert answer["same_events"] == answer["recorded_events"]
    return answer


def first_difference(stage: Stage, source: str | Path) -> dict[str, Any]:
    result = replayed(stage, source)
    assert result.code == 1, result.out + result.err
    found: dict[str, Any] = result.json["difference"]
    return found


def edited(file: Path, change: Callable[[Events], object]) -> Path:
    """A copy of a trace in which somebody changed something."""
    events: Events = [json.loads(line) for line in file.read_text().splitlines()]
    change(events)
    copy = file.with_name("edited.jsonl")
    copy.write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events))
    return copy


def first(events: Events, event_type: str) -> dict[str, Any]:
    return next(event for event in events if event["type"] == event_type)
