"""Replay of runs that more than one process worked on."""

from __future__ import annotations

import signal
import subprocess

import pytest

from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.playbook.playbook_harness import READ, Stage, call, of_type, trace_of
from tests.integration.playbook.replay_harness import WRITE, same, trace_file

SLOW = "sh -c 'echo once >> effects.txt; while [ ! -e go-on.txt ]; do sleep 0.1; done'"


@pytest.fixture
def stage(cli: CommandRunner) -> Stage:
    return Stage(cli)


def ended_after(stage: Stage, word: str, how: signal.Signals = signal.SIGKILL) -> str:
    """End a run's process as soon as its trace says this, and give the run's id."""
    process = subprocess.Popen(
        stage.cli.command("playbook", "run", "bump.md"),
        cwd=stage.root,
        env=stage.cli.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    runs = stage.root / ".podium" / "runs"
    try:
        retry_until_blocking(
            lambda: any(word in file.read_text() for file in runs.glob("*/execution_trace.jsonl")),
            seconds=60,
        )
    finally:
        process.send_signal(how)
        process.wait()
    (run,) = runs.iterdir()
    return run.name


@pytest.mark.soak
def test_a_run_that_was_killed_between_two_calls_and_resumed(stage: Stage) -> None:
    stage.acts(READ, call("read_file", path="vendor/lib.txt"), WRITE, {"hang": True})
    run_id = ended_after(stage, '"tool": "write_file", "result"')
    stage.acts(READ, call("read_file", path="vendor/lib.txt"), WRITE, call("list_files"), READ)
    assert stage.cli.run("resume", run_id).code == 0
    assert len(of_type(trace_of(stage.root, run_id), "run_started")) == 2
    same(stage, run_id)
    same(stage, trace_file(stage, run_id))


@pytest.mark.soak
def test_a_call_that_was_in_doubt_and_resolved_by_a_person(stage: Stage) -> None:
    stage.acts(READ, call("run_command", command=SLOW), WRITE)
    run_id = ended_after(stage, '"tool": "run_command", "arguments"')
    assert stage.cli.run("resume", run_id).code == 3
    same(stage, run_id)
    (doubt,) = of_type(trace_of(stage.root, run_id), "tool_in_doubt")
    assert stage.cli.run("resolve", doubt["call"], "--happened").code == 0
    assert stage.cli.run("resume", run_id).code == 0
    same(stage, run_id)


@pytest.mark.soak
def test_a_run_that_was_interrupted_in_a_call_and_resumed(stage: Stage) -> None:
    stage.acts(READ, call("run_command", command=SLOW), WRITE)
    run_id = ended_after(stage, '"tool": "run_command", "arguments"', signal.SIGINT)
    lines = trace_of(stage.root, run_id)
    assert [line["type"] for line in lines[-3:]] == ["tool_failed", "usage_recorded", "run_parked"]
    same(stage, run_id)
    (stage.root / "go-on.txt").touch()
    assert stage.cli.run("resume", run_id).code == 0
    same(stage, run_id)
