"""`podium trace`: a run's trace as a timeline, of a run or of a file."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest

from podium.app.app import Podium
from podium.core import events as e
from podium.core.decisions import Usage
from podium.core.turns import ModelAnswer, RequestedCall, TurnStop
from podium.core.work import Run, RunStatus
from podium.jobs.playbook.events import PlaybookEnded
from podium.render.trace import TraceTimeline
from podium.render.trace_rows import MAX_OPEN, Folding, Totals
from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandRunner

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\nnext"


def request(tool: str, number: int, **arguments: Any) -> e.ToolRequested:
    return e.ToolRequested(
        call=f"r:act#{number}:aa.0",
        tool=tool,
        arguments=arguments,
        digest="sha256:x",
        tier="T1",
        rule="writing-tools",
        reason="can be undone",
    )


STORY: tuple[e.EventBody, ...] = (
    e.RunQueued(flow="demo", flow_version=1, task="tidy up"),
    request("write_file", 1, path="a.txt"),
    request("run_command", 2, command="make"),
    e.ToolFailed(call="r:act#2:aa.0", tool="run_command", error="exit 2", seconds=3.5, receipt=1),
    e.ToolCompleted(call="r:act#1:aa.0", tool="write_file", seconds=0.02, receipt=2),
    e.ToolRefused(
        call="r:act#3:aa.0",
        tool="run_command",
        arguments={"command": "git push"},
        effect="deny",
        tier="T2",
        rule="git-firewall",
        reason="stay on your branch",
    ),
    e.UsageRecorded(source="agent:x", usage=Usage(input_tokens=10, output_tokens=2, usd=0.5)),
    request("read_file", 4, path="b.txt"),
)


def record(cli: CommandRunner, run: Run, *bodies: e.EventBody) -> None:
    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: [tx.append(run.id, body) for body in bodies])

    cli.within(work)


@pytest.fixture
def run(cli: CommandRunner) -> Run:
    run = cli.add_run(status=RunStatus.SUCCEEDED)
    record(cli, run, *STORY)
    return run


def trace_of(cli: CommandRunner, run: Run) -> Path:
    return cli.project / ".podium/runs" / run.id / "execution_trace.jsonl"


def a_file(cli: CommandRunner, *bodies: dict[str, Any]) -> str:
    """A trace of these events, whatever they are."""
    head = {"run": "run_x", "at": "2026-01-02T10:00:00+00:00"}
    lines = [json.dumps({**head, "seq": seq, **body}) for seq, body in enumerate(bodies, start=1)]
    path = cli.project / "t.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def words(out: str) -> list[list[str]]:
    """Rows without their date and time, between header and totals."""
    return [line.split()[3:] for line in out.splitlines()[1:-1]]


def test_a_call_is_one_row_where_it_ended_and_totals_come_last(
    cli: CommandRunner, run: Run
) -> None:
    result = cli.run("trace", run.id)
    assert result.code == 0
    assert [row[:2] for row in words(result.out)] == [
        ["1", "run_queued"],
        ["4", "FAILED"],
        ["5", "completed"],
        ["6", "DENIED"],
        ["7", "usage_recorded"],
        ["8", "open"],
    ]
    lines = result.out.splitlines()
    assert lines[2].endswith(
        '3.5s run_command {"command":"make"} in act#2 [T1 writing-tools] #1: exit 2'
    )
    assert lines[3].endswith('20ms write_file {"path":"a.txt"} in act#1 [T1 writing-tools] #2')
    assert lines[4].endswith("[T2 git-firewall]: stay on your branch")
    assert lines[-1] == (
        "8 events, 4 calls: 1 completed, 1 failed, 1 refused, 1 not settled; 10 tokens in, 2 out, $0.5000"
    )


def test_every_event_is_shown_when_asked_for(cli: CommandRunner, run: Run) -> None:
    shown = words(cli.run("trace", run.id, "--events").out)
    assert [row[1] for row in shown] == [body.type for body in STORY]


def test_rows_of_one_tool_or_of_failures_are_picked(cli: CommandRunner, run: Run) -> None:
    by_tool = words(cli.run("trace", run.id, "--tool", "run_command").out)
    assert [row[1] for row in by_tool] == ["FAILED", "DENIED"]
    failed = cli.run("trace", run.id, "--failed")
    assert [row[1] for row in words(failed.out)] == ["FAILED", "DENIED"]
    assert failed.out.splitlines()[-1].startswith("8 events, 4 calls")


def test_to_be_asked_is_no_failure_and_red_checks_are_one(cli: CommandRunner) -> None:
    path = a_file(
        cli,
        {"type": "tool_refused", "effect": "ask", "tool": "a", "reason": "ask a person"},
        {"type": "tool_refused", "effect": "deny", "tool": "b", "reason": "never"},
        {"type": "checks_ran", "commit": "c0ffee", "passed": True},
        {"type": "checks_ran", "commit": "c0ffee", "passed": False},
        {"type": "tool_in_doubt", "call": "r:s:a.0", "tool": "c"},
        {"type": "step_broke", "step": "s"},
        {"type": "run_failed"},
    )
    failed = cli.run("trace", path, "--failed", "--json").json["events"]
    assert [event["seq"] for event in failed] == [2, 4, 5, 6, 7]


def test_answers_of_a_model_and_stops_are_rows_and_a_stop_is_a_failure(cli: CommandRunner) -> None:
    run = cli.add_run(status=RunStatus.FAILED)
    answer = ModelAnswer(
        number=0, request="x", text=HOSTILE, calls=(RequestedCall(tool="read_file"),), model="m-1"
    )
    record(
        cli,
        run,
        e.ModelAnswered(step="turn#0", role="playbook", agent="gemini", answer=answer),
        e.AgentStopped(
            role="playbook", agent="gemini", stop=TurnStop(kind="turns", reason="3 of 3 are taken")
        ),
        PlaybookEnded(met=False),
    )
    out = cli.run("trace", run.id).out
    assert "playbook (gemini) m-1 #0 asks for read_file [0 tokens in, 0 out]: evil next" in out
    assert "stopped at the limit of turns: 3 of 3 are taken" in out
    assert out.splitlines()[-1].startswith("3 events, 0 calls, 1 model answer;")
    failed = cli.run("trace", run.id, "--failed")
    assert [row[1] for row in words(failed.out)] == ["agent_stopped", "playbook_ended"]
    followed = cli.run("trace", run.id, "--follow", "--json").out.splitlines()
    assert [json.loads(line)["type"] for line in followed] == [
        *("model_answered", "agent_stopped", "playbook_ended"),
    ]


def test_uncalled_tool_is_reported_with_those_that_were_called(
    cli: CommandRunner, run: Run
) -> None:
    result = cli.run("trace", run.id, "--tool", "wrte_file")
    assert result.err == (
        "no call of 'wrte_file'; called tools: read_file, run_command, write_file\n"
    )


def test_a_page_is_asked_for_by_limit_and_gone_on_with_by_after(
    cli: CommandRunner, run: Run
) -> None:
    first = cli.run("trace", run.id, "--events", "--limit", "3")
    assert [row[0] for row in words(first.out)] == ["1", "2", "3"]
    assert f"`podium trace {run.id} --after 3`" in first.err
    rest = cli.run("trace", run.id, "--events", "--after", "3")
    assert [row[0] for row in words(rest.out)] == ["4", "5", "6", "7", "8"]


def test_time_counts_from_the_first_event_also_when_that_is_not_shown(cli: CommandRunner) -> None:
    later = {"type": "note_taken", "text": "x", "at": "2026-01-02T10:01:05.5+00:00"}
    path = a_file(cli, {"type": "note_taken", "text": "x"}, later)
    assert "+65.500" in cli.run("trace", path, "--after", "1").out


def test_json_is_one_object_with_the_events_as_they_are_in_the_trace(
    cli: CommandRunner, run: Run
) -> None:
    response = cli.run("trace", run.id, "--json").json
    in_trace = [json.loads(line) for line in trace_of(cli, run).read_text().splitlines()]
    assert response["events"] == in_trace
    assert (response["run"], response["shown_status"]) == (run.id, "succeeded")
    assert (response["totals"]["calls"], response["totals"]["usd"]) == (4, 0.5)
    failed = cli.run("trace", run.id, "--json", "--failed").json
    assert [event["seq"] for event in failed["events"]] == [4, 6]
    none = cli.run("trace", run.id, "--json", "--tool", "nothing").json
    assert none["events"] == []


def test_a_file_says_the_same_as_its_run(cli: CommandRunner, run: Run) -> None:
    of_run = cli.run("trace", run.id).out
    path = trace_of(cli, run)
    assert cli.run("trace", str(path)).out == of_run
    assert cli.run("trace", str(path.parent)).out == of_run
    piped = subprocess.run(
        cli.command("trace", "-"),
        input=path.read_bytes(),
        capture_output=True,
        cwd=cli.project,
        env=cli.environ,
        check=True,
        timeout=120,
    )
    assert words(piped.stdout.decode()) == words(of_run)


def test_a_trace_that_is_behind_or_gone_is_brought_up_to_date_first(
    cli: CommandRunner, run: Run
) -> None:
    whole = trace_of(cli, run).read_bytes()
    trace_of(cli, run).write_bytes(whole[: len(whole) // 2])
    assert len(cli.run("trace", run.id, "--json").json["events"]) == len(STORY)
    trace_of(cli, run).unlink()
    assert len(cli.run("trace", run.id, "--json").json["events"]) == len(STORY)
    assert trace_of(cli, run).read_bytes() == whole


def test_a_trace_that_cannot_be_written_is_read_as_it_is(cli: CommandRunner, run: Run) -> None:
    path = trace_of(cli, run)
    kept = path.rename(cli.project / "kept.jsonl")
    path.symlink_to(kept)  # the writer does not go through links, whoever runs the test
    result = cli.run("trace", run.id, "--json")
    assert len(result.json["events"]) == len(STORY)
    assert "could not be updated" in result.err


def test_following_ends_with_the_run_and_shows_what_comes(cli: CommandRunner) -> None:
    run = cli.add_run(status=RunStatus.RUNNING)
    record(cli, run, STORY[0], STORY[7])
    following = subprocess.Popen(
        cli.command("trace", run.id, "-f"),
        cwd=cli.project,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert following.stdout is not None
        assert following.stdout.readline().startswith("AT ")
        assert "run_queued" in following.stdout.readline()
        assert " begun  " in (going_on := following.stdout.readline())
        assert "read_file" in going_on
        record(cli, run, STORY[1])
        assert "write_file" in following.stdout.readline()
        record(cli, run, STORY[4], e.RunSucceeded())

        async def end(podium: Podium) -> None:
            ended = run.model_copy(update={"status": RunStatus.SUCCEEDED})
            store = await podium.store()
            await store.write(lambda tx: tx.save_run(ended))

        cli.within(end)
        out, _ = following.communicate(timeout=120)
    finally:
        following.kill()
        following.communicate()
    assert following.returncode == 0
    shown = [line.split()[4] for line in out.splitlines()]
    assert shown[:-1] == ["completed", "run_succeeded", "open"]
    assert out.splitlines()[-1].startswith("5 events, 2 calls: 1 completed, 1 not settled")


def test_following_gives_one_object_per_event(cli: CommandRunner, run: Run) -> None:
    result = cli.run("trace", run.id, "-f", "--json")
    assert [json.loads(line)["seq"] for line in result.out.splitlines()] == list(range(1, 9))


def test_a_reader_that_has_enough_ends_it(cli: CommandRunner) -> None:
    path = a_file(cli, *({"type": "note_taken", "text": "x" * 200} for _ in range(20_000)))
    reading = subprocess.Popen(
        cli.command("trace", path), cwd=cli.project, env=cli.environ, stdout=subprocess.PIPE
    )
    assert reading.stdout is not None
    first = reading.stdout.readline()
    reading.stdout.close()
    assert reading.wait(120) == 0
    assert first.startswith(b"AT ")


@pytest.mark.parametrize("name", ["deadbeef", "run_00000000000070008000feedface0001"])
def test_an_unknown_run_is_a_usage_error_and_makes_nothing(cli: CommandRunner, name: str) -> None:
    result = cli.run("trace", name)
    assert (result.code, result.out) == (2, "")
    assert f"no run '{name}'" in result.err
    assert list(cli.project.iterdir()) == []


def test_what_is_no_trace_is_refused_in_one_line(cli: CommandRunner) -> None:
    (cli.project / "garbage.jsonl").write_bytes(os.urandom(5000) + b"\n")
    os.mkfifo(cli.project / "pipe.jsonl")
    for name, problem in (
        ("garbage.jsonl", "is not a trace"),
        ("pipe.jsonl", "is not a plain file"),
        ("missing.jsonl", "does not exist"),
        (".", "does not exist"),
    ):
        result = cli.run("trace", name, "--json")
        assert result.code == 2, name
        assert problem in result.json["error"]["message"]
        assert len(result.err.splitlines()) == 1


def test_a_file_cannot_be_followed(cli: CommandRunner) -> None:
    result = cli.run("trace", a_file(cli), "-f")
    assert (result.code, result.out) == (2, "")


def test_an_empty_trace_says_so(cli: CommandRunner) -> None:
    result = cli.run("trace", a_file(cli))
    assert (result.code, result.err) == (0, "no events\n")
    assert cli.run("trace", a_file(cli), "--json").json["events"] == []


def test_damage_is_named_beside_what_can_be_read(cli: CommandRunner) -> None:
    path = a_file(cli, {"type": "note_taken", "text": "one"})
    with Path(path).open("a") as file:
        file.write('garbage\n{"run": "run_x", "se')
    result = cli.run("trace", path)
    assert len(words(result.out)) == 1
    assert result.err.splitlines() == [
        f"podium: {path}: line 2 is not an event",
        f"podium: {path}: the last line is incomplete and was skipped",
    ]


EVENTS_OF_NO_PODIUM: list[dict[str, Any]] = [
    {"type": HOSTILE},
    {"type": "note_taken", "text": HOSTILE},
    {"type": "note_taken", "text": "\x1b[2J\x07"},
    {"type": "tool_requested", "call": 7, "tool": HOSTILE, "arguments": {HOSTILE: HOSTILE}},
    {"type": "tool_failed", "call": 7, "tool": HOSTILE, "error": HOSTILE, "seconds": "long"},
    {"type": "tool_completed", "call": None, "tool": ["x"], "receipt": {}, "seconds": 1e999},
    {"type": "tool_refused", "arguments": "none", "reason": [HOSTILE], "rule": 1, "tier": HOSTILE},
    {"type": "tool_requested", "arguments": {"a": "\ud800"}, "tier": 1, "approval_id": HOSTILE},
    {"type": "usage_recorded", "source": HOSTILE, "usage": {"usd": -1e300, "input_tokens": "x"}},
    {"type": "usage_recorded", "usage": 3},
    {"type": "step_started", "step": HOSTILE, "attempt": HOSTILE},
    {"type": "checks_ran", "passed": HOSTILE},
    {"type": "run_waiting", "at": HOSTILE},
    {"type": "note_taken", "text": "x", "at": "0001-01-01T00:00:00+14:00"},
    {"type": "note_taken", "text": "x", "at": "9999-12-31T23:59:59-14:00"},
    {"type": "run_waiting", "signal": "rate-limit", "deadline": "9999-12-31T23:59:59-14:00"},
    {"type": "note_taken", "text": "\u202e" * 1_000_000},
    {"type": "tool_refused", "tool": "\u202e" * 10**6, "reason": "\u202e" * 10**6},
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("option", ["--failed", "--events", "--limit=100"])
def test_a_trace_of_nobodys_podium_is_shown_and_steers_no_terminal(
    cli: CommandRunner, option: str
) -> None:
    path = Path(a_file(cli, *EVENTS_OF_NO_PODIUM))
    path.write_text(path.read_text().replace("Infinity", "1e999"))
    result = cli.run("trace", str(path), option)
    assert result.code == 0, result.err
    for bad in ("\x1b", "\x07", "\u202e"):
        assert bad not in result.out + result.err
    for line in result.out.splitlines()[1:-1]:
        assert not line.startswith("next")


@pytest.mark.parametrize("columns", [1, 40, 80, 130])
def test_on_a_terminal_of_any_width_nothing_steers_it(columns: int) -> None:
    head = {"run": "run_x", "seq": 1, "at": "2026-01-02T10:00:00+00:00"}
    timeline = TraceTimeline(columns)
    for every_event in (False, True):
        folding = Folding(every_event=every_event)
        for body in EVENTS_OF_NO_PODIUM:
            for row in (*folding.rows({**head, **body}), *folding.rest()):
                shown = timeline.lines(row, Totals())
                assert not {"\x1b", "\x07", "\u202e"} & set(shown)
                assert "\nnext" not in shown


def test_of_calls_nothing_is_left_out_and_what_cannot_be_seen_is_written_out(
    cli: CommandRunner,
) -> None:
    failed = {"type": "tool_failed", "tool": "a\x1b[2Jb", "error": "c\x07d"}
    (row,) = cli.run("trace", a_file(cli, failed)).out.splitlines()[1:-1]
    assert "a\\x1b[2Jb" in row
    assert "c\\x07d" in row


def test_json_of_a_hostile_trace_means_the_same_and_shows_nothing_unseen(
    cli: CommandRunner,
) -> None:
    path = Path(a_file(cli, {"type": "note_taken", "text": HOSTILE + "\x7f"}))
    path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False) + "\n")
    result = cli.run("trace", str(path), "--json")
    assert result.json["events"][0]["text"] == HOSTILE + "\x7f"
    assert not {"\u202e", "\x7f"} & set(result.out)


def test_calls_without_an_end_do_not_fill_the_memory() -> None:
    folding = Folding()
    begun = [{"type": "tool_requested", "call": str(n), "seq": n} for n in range(MAX_OPEN + 5)]
    given_up = [row.data["call"] for data in begun for row in folding.rows(data)]
    assert given_up == ["0", "1", "2", "3", "4"]
    huge = {"type": "tool_requested", "call": "huge", "seq": 1}
    assert len(folding.rows(huge, 10**9)) == MAX_OPEN + 1
    assert list(folding.rest()) == []


def test_at_a_terminal_every_line_fits(cli: CommandRunner, run: Run) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    process = subprocess.Popen(
        cli.command("trace", run.id),
        cwd=cli.project,
        env={**cli.environ, "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    output = bytearray()

    def all_received() -> bool:
        try:
            output.extend(os.read(master, 4096))
        except OSError:  # Linux says EIO when the last writer is gone
            return True
        return False

    retry_until_blocking(all_received)
    os.close(master)
    assert process.wait(120) == 0
    lines = output.decode().splitlines()
    assert max(map(len, lines[:-2])) <= 80
    assert any("run_command make [T1] #1" in line for line in lines)
    assert any(line.strip() == "act#3 git-firewall: stay on your branch" for line in lines)
