"""Runs of every job that Podium 0.2.0 left: they are read, told, proved, answered, resumed and replayed.

`PODIUM_WRITE_GOLDEN=1 pytest tests/integration/deploy/test_frozen_project.py` writes anew what is told of them.
`freeze.py` makes such a project with another version.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.deploy.frozen_project import FROZEN, FrozenProject

VERSION = "0.2.0"
RUNS = [
    ("demo-of-the-test", "succeeded"),
    ("duet", "succeeded"),
    ("playbook", "running"),
    ("playbook", "succeeded"),
    ("work_order", "succeeded"),
    ("candidate", "waiting"),
    ("candidate", "succeeded"),
    ("sense", "succeeded"),
    ("operator", "waiting"),
    ("operator", "succeeded"),
    ("pipeline", "waiting"),
    ("pipeline", "running"),
    ("pipeline", "succeeded"),
]
"""Flow and status of every run, newest first."""

IN_ONE_PROCESS = """
import contextlib, io, json, sys
from podium.cli.start import run_command
for arguments in json.load(sys.stdin):
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command(arguments)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    print(json.dumps([code, *texts]), flush=True)
"""


@pytest.fixture
def frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandRunner]:
    cli = CommandRunner(tmp_path, capsys)
    FrozenProject(tmp_path).extract(VERSION)
    for name, value in (cli.environ | {"TZ": "UTC"}).items():
        monkeypatch.setenv(name, value)
    time.tzset()
    yield cli
    monkeypatch.undo()
    time.tzset()


def listed(cli: CommandRunner, *command: str) -> list[dict[str, Any]]:
    answer: dict[str, Any] = cli.run(*command, "--json").json
    rows: list[dict[str, Any]] = answer[command[0]]
    return rows


def test_runs_of_every_job_are_listed_reported_and_proved(frozen: CommandRunner) -> None:
    runs = listed(frozen, "runs")
    assert [(run["flow"], run["status"]) for run in runs] == RUNS
    killed = [run["flow"] for run in listed(frozen, "runs", "--status", "interrupted")]
    assert killed == ["playbook", "pipeline"]
    assert frozen.run("db", "check").out.endswith(": sound\n")
    assert frozen.run("receipts", "verify").out.endswith(": sound\n")
    commands = [("runs",), ("approvals",), ("candidates", "--all"), ("receipts", "list")]
    commands += [("approvals", approval["id"]) for approval in listed(frozen, "approvals", "--all")]
    commands += [("show", run["id"]) for run in runs]
    commands += [("logs", runs[0]["id"]), ("trace", runs[0]["id"]), ("trace", runs[3]["id"])]
    text = ""
    for command in commands:
        result = frozen.run(*command)
        assert result.code == 0, result.err
        text += f"$ podium {' '.join(command)}\n{result.out}{result.err}\n"
    text = text.replace(str(frozen.project.parent), "/mnt")
    text = "".join(f"{line[:200]}\n" for line in text.splitlines())
    golden = FROZEN / f"podium-{VERSION}.txt"
    if os.environ.get("PODIUM_WRITE_GOLDEN"):
        golden.write_text(text)
    assert text.splitlines() == golden.read_text().splitlines()


def test_every_event_in_the_database_and_in_the_traces_is_read_back_as_it_was_written(
    frozen: CommandRunner,
) -> None:
    with sqlite3.connect(f"file:{frozen.project}/.podium/podium.db?mode=ro", uri=True) as database:
        rows = database.execute("SELECT run_id, seq, type, body FROM events ORDER BY run_id, seq")
        stored = [(run, seq, kind, json.loads(body)) for run, seq, kind, body in rows]
    assert len({kind for _, _, kind, _ in stored}) == 56, "one of every type of that version"
    read = []
    for run in sorted(run["id"] for run in listed(frozen, "runs")):
        events = frozen.run("logs", run, "--json").json["events"]
        trace = frozen.project / ".podium/runs" / run / "execution_trace.jsonl"
        if trace.exists():
            lines = [json.loads(line) for line in trace.read_text().splitlines()]
            response = frozen.run("trace", str(trace), "--json").json["events"]
            # The trace of a run that was killed may be behind the database.
            assert response == lines == events[: len(lines)]
        read += events
    for (run, seq, kind, body), event in zip(stored, read, strict=True):
        assert (event.pop("run"), event.pop("seq"), event["type"]) == (run, seq, kind)
        assert event.pop("at")
        assert event == body


def test_runs_that_wait_or_were_killed_come_to_their_end_and_a_playbook_is_replayed(
    frozen: CommandRunner,
) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed, which puts the project where it was")
    runs = listed(frozen, "runs")
    (finished,) = (r["id"] for r in runs if (r["flow"], r["status"]) == ("playbook", "succeeded"))
    waiting = [approval["id"] for approval in listed(frozen, "approvals")]
    assert len(waiting) == 3
    going_on = [run["id"] for run in runs if run["status"] in ("waiting", "running")]
    acts = [
        ("replay", finished),
        *(("approve", approval) for approval in waiting),
        *(("resume", run) for run in going_on),
        ("receipts", "verify"),
        ("db", "check"),
        ("workspaces", "list", "--json"),
    ]
    project = FrozenProject(frozen.project.parent)
    done = project.run(sys.executable, "-c", IN_ONE_PROCESS, stdin=json.dumps(acts))
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    (refused,) = (answer for answer in answers if answer[0])
    # Its pack came with that version, and what it would do now is not what was approved.
    assert refused[0] == 4
    assert "pack 'roofing' was changed after the plan was made; ask again" in refused[1]
    workspaces = json.loads(answers[-1][1])["workspaces"]
    assert {"record", "kept", "because", "bytes", "changed_at", "snapshots"} == set(workspaces[0])
    assert [workspace["kept"] for workspace in workspaces] == ["unknown"] * 3, workspaces
    assert answers[0][1].endswith(" events replayed, all the same, byte for byte\n")
    failed = [run["flow"] for run in listed(frozen, "runs") if run["status"] != "succeeded"]
    assert failed == ["operator"]
    approvals = listed(frozen, "approvals", "--all")
    assert sorted(approval["status"] for approval in approvals) == [*["consumed"] * 3, "granted"]
    assert (frozen.project / "version.txt").read_text() == "2.0\n", "the playbook's work"
    delivered = [*frozen.project.glob("bridge/inbox/CLC/WO-FIX-*.yaml")]
    assert len(delivered) == 1, "the order whose candidate waited"
    branches = [file.read_text() for file in frozen.project.glob(".podium/pull_requests/run_*.md")]
    assert len(branches) == 3, "each run of the pipeline has its branch"
    for worktree in (frozen.project.parent / ".worktrees").iterdir():
        assert (worktree / "farewell.py").read_text() == "GOODBYE = 1\n"
