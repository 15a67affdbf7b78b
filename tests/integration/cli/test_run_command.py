"""`podium run`: its lines, its report, its JSON, and what it refuses before anything is changed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.app.app import Podium
from podium.core.work import Run, RunStatus
from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.integration.cli.pipeline_harness import (
    AUDITORS,
    CHECK,
    PLAN,
    TASK,
    architect,
    architects,
    developer,
    git,
    good_turns,
    plan_reviewer,
    play,
    set_up,
    turn,
)
from tests.integration.cli.test_on_terminals import at_a_terminal
from tests.soaking import in_soak

ROOT = Path(__file__).parents[3]
LINE = re.compile(r"\[\d\d:\d\d:\d\d\] [A-Z][A-Z ]*: \S.*")


def lines_of(result: CommandResult) -> list[str]:
    """Return the progress lines, without the times."""
    return [line[11:] for line in result.err.splitlines() if LINE.fullmatch(line)]


def records_of(result: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def run_id_of(result: CommandResult) -> str:
    found = re.search(r"run_[0-9a-f]{32}", result.out)
    assert found, result
    return found[0]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandRunner, CommandResult]:
    """A run in which all went well, for tests that look at what was said of it."""
    cli = CommandRunner(tmp_path_factory.mktemp("done"))
    set_up(cli, good_turns())
    return cli, cli.spawn("run", TASK)


@pytest.mark.soak
def test_a_task_becomes_a_branch_and_a_person_reads_how_line_by_line(
    done: tuple[CommandRunner, CommandResult],
) -> None:
    _, messages = done
    assert messages.code == 0, messages.err
    assert all(LINE.fullmatch(line) for line in messages.err.splitlines())
    output = lines_of(messages)
    assert output[0].startswith("PODIUM: Task received.")
    assert any(line.startswith("PODIUM: Created branch 'task/add-a-farewell-") for line in output)
    begun = [line for line in output if "Spawning" in line]
    assert begun == [
        "PODIUM: Spawning ARCHITECT (A.1)...",
        "PODIUM: Spawning PLAN REVIEWER (A.2)...",
        "PODIUM: Spawning DEVELOPER (B)...",
        "PODIUM: Spawning AUDITOR (C)...",
    ]
    made = next(line for line in output if line.startswith("ARCHITECT: "))
    shape = r"ARCHITECT: DONE\. 'docs/.+\.md', commit [0-9a-f]{7} \([\d.]+ s, \$0\.0123\)"
    assert re.fullmatch(shape, made)
    assert "Pipeline success!" in output[-1]


def test_the_report_names_all_that_was_made_and_how_to_merge_it(
    done: tuple[CommandRunner, CommandResult],
) -> None:
    cli, output = done
    assert output.out.startswith(f"run {run_id_of(output)} succeeded\n")
    branch = git(cli, "branch", "--list", "task/*", "--format=%(refname:short)").strip()
    for part in (
        rf"branch +{branch} at [0-9a-f]{{12}}, from main\n",
        r"plan +docs/dev_docs/plans/\S+\.md\n",
        r"history +refs/podium/runs/run_[0-9a-f]{32}/[0-9a-f]{12}/history\n",
        r"pull request +/\S+/\.podium/pull_requests/\S+\.md \(",
        r"cost +900 tokens in, 300 out, \$0\.0123",
        r"\d commits?\n  [0-9a-f]{7,} ",
        r"\nB +DEVELOPER +DONE +player ",
        r"\n  docs/dev_docs/reviews/\S*code_review\S+\.md\n",
        rf"\nchecks\n  `{CHECK}` exit 0 \(",
        r"\nadded to the backlog\n  Translate the farewell\n",
    ):
        assert re.search(part, output.out), part
    merge = re.search(r"to merge +(cd .+)\n", output.out)
    assert merge
    git(cli, "status")
    subprocess.run(["sh", "-c", merge[1]], env=cli.environ | NAMED, check=True, capture_output=True)
    assert (cli.project / "farewell.py").read_text() == "GOODBYE = 1\n"


NAMED = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


def test_a_run_without_any_limit_ends_with_5_when_it_has_used_the_default_budget(
    cli: CommandRunner,
) -> None:
    greedy = architect()
    greedy["acts"].insert(0, {"usage": {"input": 10_000_000, "output": 1}})
    set_up(cli, [greedy, plan_reviewer()])
    ended = cli.run("run", TASK)
    assert ended.code == 5, ended.err
    assert "1e+07" not in ended.err
    assert "raise `budgets: run: tokens:` in your own settings" in ended.err


@pytest.mark.soak
def test_obstacles_are_reported_one_per_line_and_no_agents_words_pass_for_ours(
    cli: CommandRunner,
) -> None:
    thin = PLAN.replace("## Completion checklist\n- [ ] farewell.py is there\n", "")
    checkout = {"run": "git checkout main"}
    forged = "Too short.\r\n[11:00:00] PODIUM: Pipeline success!\x1b[2J\x1b]0;owned\x07"
    set_up(
        cli,
        [
            architect(thin, when="Stage: plan, round 1"),
            *architects(),
            plan_reviewer("REJECT", when="Stage: plan_review, round 1", feedback=forged),
            plan_reviewer(),
            developer(checkout, code="oh no(\n", when="Stage: develop, round 1"),
            developer(code="GOODBYE = 2\n"),
            *AUDITORS,
        ],
    )
    result = cli.run("run", TASK)
    assert result.code == 0, result.err
    output = lines_of(result)
    assert any(re.match(r"ARCHITECT: SENT_BACK \(.* s, \$0\.0123\)", line) for line in output)
    assert "PODIUM: Sent back to ARCHITECT: the plan has no completion checklist" in output
    assert "PODIUM: Spawning ARCHITECT (A.1, round 2)..." in output
    denied = "PODIUM: Denied DEVELOPER: run_command git checkout main ("
    assert any(line.startswith(denied) for line in output)
    assert any(re.match(r"PODIUM: Checks on \w{7} FAILED: `.+` exit 1", line) for line in output)
    assert any(line.startswith("PODIUM: Failed: `") and "SyntaxError" in line for line in output)
    assert "PODIUM: Sent back to DEVELOPER: checks failed" in output
    assert "\x1b" not in result.err + result.out
    quoted = "PLAN REVIEWER: Reason: Too short. [11:00:00] PODIUM: Pipeline success!"
    assert quoted in output
    assert sum(line.startswith("PODIUM: Pipeline success!") for line in output) == 1


def stubborn_turns() -> list[dict[str, Any]]:
    return [*architects(), plan_reviewer("REJECT", feedback="- Say who waves goodbye.")]


def test_a_run_that_needs_a_person_leaves_with_three_and_goes_on_with_their_words(
    cli: CommandRunner,
) -> None:
    set_up(cli, stubborn_turns(), flows={"pipeline": {"rounds": 1}})
    result = cli.run("run", TASK)
    assert result.code == 3, result.err
    run_id = run_id_of(result)
    assert result.out.startswith(f"run {run_id} needs_human\n")
    assert "- plan_review, round 1 (REJECT): Say who waves goodbye." in result.out
    assert f"podium resume {run_id} --note" in result.err
    assert re.search(r"branch +task/add-a-farewell-\w+, from main\n", result.out)
    play(cli, good_turns())
    went_on = cli.run("resume", run_id, "--note", "Nobody waves.")
    assert went_on.code == 0, went_on.err
    output = lines_of(went_on)
    assert output[0] == "PODIUM: Resumed from the checkpoint."
    assert "Pipeline success!" in output[-1]
    assert "added to the backlog" in went_on.out


@pytest.mark.soak
def test_a_resumed_run_gives_the_same_records(cli: CommandRunner) -> None:
    set_up(cli, stubborn_turns())
    first = records_of(cli.run("run", TASK, "--json"))
    assert (first[-1]["status"], first[-1]["exit_code"]) == ("needs_human", 3)
    play(cli, good_turns())
    launch, *events, last = records_of(cli.run("resume", first[0]["run"], "--json"))
    assert (launch["type"], launch["resumed"], launch["task"]) == ("launch", True, TASK)
    assert events[0]["seq"] > first[-2]["seq"]
    assert (last["type"], last["status"], last["exit_code"]) == ("result", "succeeded", 0)


@pytest.mark.soak
def test_an_interrupted_run_ends_its_records_with_how_it_was_left(cli: CommandRunner) -> None:
    set_up(cli, [turn("architect", {"hang": True})])
    with subprocess.Popen(
        cli.command("run", TASK, "--json"),
        cwd=cli.project,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        text = ""
        while "agent_asked" not in text:
            line = process.stdout.readline()
            assert line, "it ended before the agent was asked"
            text += line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    records = records_of(CommandResult(process.returncode, text + out, err))
    assert process.returncode == 130
    last = records[-1]
    assert (last["type"], last["status"], last["exit_code"]) == ("result", "interrupted", 130)
    assert [record["type"] for record in records].count("result") == 1
    assert f"podium resume {records[0]['run']}" in err


REFUSALS = {
    "an empty task": (["run", "  \n"], "the task is empty"),
    "a task of a megabyte": (["run", "x" * 1_000_000], "1000000 characters, more than 100000"),
    "an unknown mode": (["run", TASK, "--mode", "hasty"], "no mode 'hasty'; modes: bugfix"),
    "an unknown agent": (["run", TASK, "--agent", "bob"], "no agent 'bob'; agents: player"),
    "an unknown base": (["run", TASK, "--base", "trunk"], "there is no branch 'trunk'"),
    "waiting and leaving": (["run", TASK, "--wait", "--detach"], "cannot be combined"),
    "no task": (["run"], "Missing argument 'TASK'"),
    "no text": (["run", "caf\udce9"], "not valid UTF-8"),
}


def test_what_cannot_be_used_is_refused_in_a_line_and_nothing_is_changed(
    cli: CommandRunner,
) -> None:
    set_up(cli, good_turns())
    for words, reason in REFUSALS.values():
        refused(cli, words, reason)


def a_dirty_tree(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    (cli.project / "greeting.py").write_text("HELLO = 2\n")


def no_commits(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    git(cli, "update-ref", "-d", "HEAD")


def no_repository(cli: CommandRunner) -> None:
    cli.says("agents: {player: {kind: scripted, script: script.yaml}}\n")
    (cli.project / "script.yaml").write_text("turns: [{role: architect}]\n")


def a_detached_head(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    git(cli, "checkout", "-q", "--detach")


def broken_settings(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    cli.says("agents: {player: {kind: scripted}\n")


def a_stage_that_leads_nowhere(cli: CommandRunner) -> None:
    stages = {"plan": {"next": {"DONE": "nowhere"}}}
    set_up(cli, good_turns(), flows={"pipeline": {"stages": stages}})


def no_agent(cli: CommandRunner) -> None:
    set_up(cli, good_turns(), agents={})


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (a_dirty_tree, "uncommitted changes: greeting.py;"),
        (no_commits, "has no commit yet"),
        (no_repository, "is not in a git repository; create one with `git init"),
        (a_detached_head, "HEAD is detached; pass --base"),
        (broken_settings, "podium.yaml:"),
        (a_stage_that_leads_nowhere, "there is no stage 'nowhere'"),
        (no_agent, "podium.yaml has no agent;"),
    ],
)
def test_a_project_that_is_not_ready_is_refused_in_a_line_and_nothing_is_changed(
    cli: CommandRunner, spoil: Any, reason: str
) -> None:
    spoil(cli)
    refused(cli, ["run", TASK], reason)
    refused(cli, ["run", TASK, "--detach"], reason)


def refused(cli: CommandRunner, words: list[str], reason: str) -> None:
    before = seen(cli)
    result = cli.run(*words)
    assert result.code == 2, result.err
    assert reason in result.err
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    assert seen(cli) == before
    assert not (cli.project / ".podium").exists()
    error = cli.run(*words, "--json").json["error"]
    assert (error["exit_code"], reason in error["message"]) == (2, True)
    assert seen(cli) == before


def seen(cli: CommandRunner) -> list[str]:
    """Every file around the project, and what git knows of branches and worktrees."""
    project = cli.project
    files = sorted(str(path) for path in project.parent.rglob("*") if cli.home not in path.parents)
    known = (
        [git(cli, "for-each-ref"), git(cli, "worktree", "list")]
        if (project / ".git").exists()
        else []
    )
    return [*files, *known]


def test_a_task_may_come_through_a_pipe(cli: CommandRunner) -> None:
    set_up(cli, [turn("nobody")])
    launch, *_, result = records_of(cli.run("run", "-", "--json", stdin=f"{TASK}\n".encode()))
    assert (launch["task"], result["status"]) == (TASK, "failed")


def test_a_pipe_may_not_bring_anything(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    for content, reason in (
        (b"x" * 1_000_000, "longer than 100000 characters"),
        (b"caf\xe9", "not valid UTF-8"),
        (b"a\0b", "NUL byte"),
        (b"", "the task is empty"),
    ):
        result = cli.run("run", "-", stdin=content)
        assert (result.code, reason in result.err) == (2, True), result.err
    assert not (cli.project / ".podium").exists()


@pytest.mark.soak
def test_a_terminal_shows_the_same_lines_above_a_sign_of_life(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    left, shown = at_a_terminal(cli, "", "run", TASK)
    assert left == 0, shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "\n")
    assert re.search(
        r"^\[\d\d:\d\d:\d\d\] PODIUM: Spawning DEVELOPER \(B\)\.\.\.$", plain, re.MULTILINE
    )
    assert re.search(r"DEVELOPER \(B\) 0:0\d", plain)
    assert "Pipeline success!" in plain


def test_the_seeds_own_call_in_json_is_a_launch_then_every_event_then_a_result(
    cli: CommandRunner,
) -> None:
    set_up(cli, good_turns())
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "orchestrator.py"),
            "--task",
            TASK,
            "--mode",
            "direct",
            "--json",
        ],
        cwd=cli.project,
        env=cli.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    output = CommandResult(done.returncode, done.stdout, done.stderr)
    assert output.code == 0, output.err
    first, *events, last = records_of(output)
    assert {name: first[name] for name in ("type", "task", "mode", "base")} == {
        "type": "launch",
        "task": TASK,
        "mode": "direct",
        "base": "main",
    }
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "run_succeeded"
    assert {event["run"] for event in events} == {first["run"]}
    assert last["type"] == "result"
    assert (last["status"], last["exit_code"]) == ("succeeded", 0)
    assert last["run"]["id"] == first["run"]
    assert last["result"]["branch"].startswith("task/add-a-farewell-")
    assert lines_of(output)


def test_show_reports_the_stages_and_their_outcomes(
    done: tuple[CommandRunner, CommandResult], cli: CommandRunner
) -> None:
    made, output = done
    run_id = run_id_of(output)
    project = ("--project", str(made.project))
    home = {"PODIUM_HOME": str(made.home)}
    result = cli.run("show", run_id, *project, env=home)
    assert re.search(r"\nA\.1 +ARCHITECT +DONE +player +\S+ s +\$0\.0123 +\w{7} +plan_", result.out)
    assert re.search(r"\nto merge +cd ", result.out)
    stages = cli.run("show", run_id, "--json", *project, env=home).json["stages"]
    assert [stage["role"] for stage in stages][:3] == ["architect", "plan_reviewer", "developer"]
    assert stages[0]["document"].startswith("docs/dev_docs/plans/")


def stored(cli: CommandRunner, run_id: str) -> Run:
    async def work(podium: Podium) -> Run | None:
        store = await podium.store()
        return await store.read(lambda view: view.run(run_id))

    found = cli.within(work)
    assert found
    return found


def test_a_detached_run_is_worked_on_by_a_worker_that_leaves_when_it_is_done(
    cli: CommandRunner,
) -> None:
    set_up(cli, good_turns())
    result = cli.spawn("run", TASK, "--detach")
    assert result.code == 0, result.err
    run_id = run_id_of(result)
    worker = re.search(
        rf"run {run_id} continues in the background: started worker (\d+)", result.out
    )
    assert worker, result.out
    assert re.search(r"follow it with `podium logs \w{8} -f`", result.out)
    retry_until_blocking(lambda: stored(cli, run_id).status is RunStatus.SUCCEEDED, seconds=60)
    retry_until_blocking(lambda: not is_there(int(worker[1])))
    log = cli.project / ".podium" / "worker.log"
    assert "branch_delivered" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.soak
def test_a_worker_that_was_started_for_a_run_stays_while_the_run_only_sleeps(
    cli: CommandRunner,
) -> None:
    limited = {"fail": {"kind": "rate_limited", "retry_seconds": 2}}
    set_up(cli, [turn("architect", limited)])
    (launch,) = records_of(cli.spawn("run", TASK, "--detach", "--json"))
    run_id = launch["run"]
    retry_until_blocking(lambda: stored(cli, run_id).fence > 1)
    assert cli.run("cancel", run_id).code == 0
    retry_until_blocking(lambda: not is_there(launch["worker_pid"]))


def is_there(pid: int) -> bool:
    """Return whether the process is running. A process that ended and was not yet waited for is not running either."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_queues_of_a_project_must_have_one_for_detached_runs(cli: CommandRunner) -> None:
    set_up(cli, good_turns(), queues={"nightly": {}})
    result = cli.run("run", TASK, "--detach")
    assert (result.code, "no queue 'default'; queues: nightly" in result.err) == (2, True)
    result = cli.run("run", TASK, "--queue", "daily")
    assert (result.code, "no queue 'daily'; queues: nightly" in result.err) == (2, True)
    assert not (cli.project / ".podium").exists()


@contextmanager
def a_worker(cli: CommandRunner, *options: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """One that serves, as its own line says; ended when the block is left."""
    worker = subprocess.Popen(
        cli.command("worker", *options),
        cwd=cli.project,
        env={**cli.environ, **environ},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert worker.stderr is not None
        assert "serving " in worker.stderr.readline()
        yield worker
    finally:
        worker.terminate()
        worker.communicate(timeout=120)


@pytest.fixture(params=["sqlite", in_soak("postgresql")])
def where(request: pytest.FixtureRequest) -> dict[str, str]:
    """The variables that say where the record is."""
    if request.param == "sqlite":
        return {}
    return {"PODIUM_DATABASE_URL": request.getfixturevalue("postgres_url")}


@pytest.mark.soak
def test_a_run_for_workers_that_are_busy_is_queued_and_no_worker_is_started(
    cli: CommandRunner, where: dict[str, str]
) -> None:
    set_up(cli, [turn("architect", {"sleep_seconds": 60}), *good_turns()])
    with a_worker(cli, "--concurrency", "1", **where):
        first = cli.run("run", TASK, "--detach", env=where)
        assert f"run {run_id_of(first)} continues in the background: a worker took it" in first.out
        result = cli.run("run", TASK, "--detach", env=where)
        assert result.code == 0, result.err
        queued = "is queued in 'default': 1 worker serves it and is busy, and 0 other runs wait"
        assert queued in result.out
        (third,) = records_of(cli.run("run", TASK, "--detach", "--json", env=where))
        assert (third["type"], third["detached"], third["queue"]) == ("launch", True, "default")
        assert (third["taken"], third["workers"], third["others"]) == (False, 1, 1)
        assert third["worker_pid"] is None
        assert not (cli.project / ".podium" / "worker.log").exists()
        assert cli.run("cancel", run_id_of(first), env=where).code == 0


@pytest.mark.soak
def test_a_run_is_put_where_its_queue_priority_and_delay_say(cli: CommandRunner) -> None:
    set_up(cli, good_turns(), queues={"default": {}, "gpu": {"labels": ["gpu"]}})
    result = cli.spawn("run", TASK, "--queue", "gpu", "--priority", "5")
    assert result.code == 0, result.err
    assert (
        "is queued in 'gpu', but no worker is running for it; on a machine with gpu, start"
        in result.out
    )
    assert "`podium worker --queue gpu --label gpu`" in result.out
    run = stored(cli, run_id_of(result))
    assert (run.queue, run.priority, run.status) == ("gpu", 5, RunStatus.QUEUED)
    with a_worker(cli, "--queue", "gpu", "--label", "gpu"):
        retry_until_blocking(lambda: stored(cli, run.id).status is RunStatus.SUCCEEDED)
        later = cli.spawn("run", TASK, "--queue", "gpu", "--delay", "10m")
        assert re.search(r"is queued in 'gpu' and starts at [-0-9]+ [:0-9]+ or later\n", later.out)
        waiting = stored(cli, run_id_of(later))
        assert waiting.not_before is not None
        assert round((waiting.not_before - waiting.created_at).total_seconds()) == 600


@pytest.mark.soak
def test_a_delayed_run_that_nobody_serves_gets_a_worker_that_waits_for_it(
    cli: CommandRunner,
) -> None:
    set_up(cli, good_turns())
    result = cli.spawn("run", TASK, "--detach", "--delay", "10m", "--json")
    assert result.code == 0, result.err
    (launch,) = records_of(result)
    assert (launch["taken"], launch["workers"]) == (False, 1)
    assert is_there(launch["worker_pid"])
    assert cli.spawn("cancel", launch["run"]).code == 0
    retry_until_blocking(lambda: not is_there(launch["worker_pid"]))


def test_a_place_in_a_queue_that_makes_no_sense_is_refused(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    for words, problem in (
        (("--priority", "5"), "--priority and --delay need a queue; add --detach"),
        (("--delay", "5m"), "--priority and --delay need a queue; add --detach"),
        (("--queue", "default", "--wait"), "--wait cannot be combined with --detach or --queue"),
        (("--detach", "--delay", "soon"), "'soon' is not a duration"),
        (("--detach", "--priority", "9" * 30), "--priority must be between"),
    ):
        result = cli.run("run", TASK, *words)
        assert (result.code, problem in result.err) == (2, True), result.err
    assert not (cli.project / ".podium").exists()


@pytest.mark.soak
def test_a_worker_with_another_key_leaves_with_one_line_and_never_says_that_it_serves(
    cli: CommandRunner, postgres_url: str, tmp_path: Path
) -> None:
    set_up(cli, good_turns())
    keys = [tmp_path / "one.key", tmp_path / "two.key"]
    for number, key in enumerate(keys):
        key.write_bytes(str(number).encode() * 32)
    where = {"PODIUM_DATABASE_URL": postgres_url}
    first = cli.spawn("worker", "--once", env={**where, "PODIUM_RECEIPT_KEY": str(keys[0])})
    assert (first.code, "serving default" in first.err) == (0, True), first.err
    for command in (("worker", "--once"), ("run", TASK), ("run", TASK, "--detach")):
        result = cli.spawn(*command, env={**where, "PODIUM_RECEIPT_KEY": str(keys[1])})
        assert result.code == 1
        assert result.err.startswith(f"podium: {keys[1]}: the receipts of this database are sealed")
        assert len(result.err.splitlines()) == 1
