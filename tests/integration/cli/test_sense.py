"""`podium sense`: one tick, and the loop."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium.cli.error_report import run
from podium.jobs.sense.io.safe_files import exclusive_lock
from podium.platform.system_clock import SystemClock
from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner
from tests.integration.cli.sense_harness import SUMMARY_END, break_down, delivered, lay_out, ticked

LOOP_SECONDS = 200.0


@pytest.fixture(autouse=True)
def _no_mode_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GMX_ORCH_MODE", "PODIUM_SENSE_SCHEDULED"):
        monkeypatch.delenv(name, raising=False)


def last_line(cli: CommandRunner, file: str) -> str:
    return (cli.project / file).read_text().splitlines()[-1]


def test_tick_reports_what_was_sensed_planned_and_proposed_and_ends_with_the_log_line(
    cli: CommandRunner,
) -> None:
    lay_out(cli, failing=("opal_api",))
    (cli.project / "bridge/outbox/LIAM/torn.ack.json").write_text('{"wo_id": ')
    result = cli.run("sense", "--once")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0].startswith("tick        1, mode sensing, ")
    assert "sensed      health 1, acks 0, sessions 1" in lines
    assert any(line.startswith("missing     bridge/outbox/LIAM/torn.ack.json: ") for line in lines)
    assert "planner     rules OK" in lines
    assert "changed     new: create_wo opal_api/FIX-OPAL_API (high)" in lines
    assert any(line.startswith("logged      WO-FIX-OPAL_API-") for line in lines)
    assert lines[-1].endswith(SUMMARY_END.format(status="OK"))
    assert last_line(cli, "logs/gmx_clc_orchestrator.log").endswith(lines[-1])
    assert json.loads(last_line(cli, "g/telemetry/gmx_clc_orch.jsonl"))["status"] == "OK"
    assert delivered(cli) == []


def test_an_unchanged_root_asks_nobody_and_leaves_the_database_alone(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(cli)
    assert ticked(cli)["status"] == "OK"
    before = record_files(cli.project)
    assert ticked(cli, "--if-changed")["status"] == "SKIPPED"
    monkeypatch.setenv("PODIUM_SENSE_SCHEDULED", "1")
    idle = ticked(cli)
    assert (idle["status"], idle["idle_ticks"], idle["tokens"]) == ("SKIPPED", 2, 0)
    assert record_files(cli.project) == before
    break_down(cli, "opal_api")
    assert ticked(cli)["status"] == "OK"
    monkeypatch.setenv("PODIUM_SENSE_SCHEDULED", "0")
    assert ticked(cli)["status"] == "OK", "a manual tick always plans"


def record_files(project: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in (project / ".podium").rglob("*") if path.is_file())
    kept = [path for path in found if path.parent.name != "sense"]
    assert kept
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in kept}


def test_the_variable_lowers_the_mode_and_never_raises_it(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(cli, mode="supervised")
    monkeypatch.setenv("GMX_ORCH_MODE", "dry-run")
    assert ticked(cli, "--if-changed")["mode"] == "dry-run"
    monkeypatch.setenv("GMX_ORCH_MODE", "autonomous")
    assert ticked(cli, "--if-changed")["mode"] == "supervised"
    monkeypatch.setenv("GMX_ORCH_MODE", "dry-run")
    assert ticked(cli, "--if-changed", "--mode", "autonomous")["mode"] == "dry-run"
    monkeypatch.setenv("GMX_ORCH_MODE", "dryrun")
    result = cli.run("sense", "--once", "--if-changed", "--json")
    assert result.json["mode"] == "sensing"
    assert "GMX_ORCH_MODE='dryrun' is not a mode; using sensing" in result.err


def test_where_nobody_set_a_mode_the_loop_only_watches_and_a_person_may_say_more(
    cli: CommandRunner,
) -> None:
    lay_out(cli)
    assert ticked(cli)["mode"] == "sensing"
    assert ticked(cli, "--mode", "supervised")["mode"] == "supervised"
    assert cli.run("sense", "--once", "--mode", "bold").code == 2


def test_a_planner_that_is_not_there_gives_an_empty_plan_and_one_that_fails_leaves_with_1(
    cli: CommandRunner,
) -> None:
    lay_out(cli)
    cli.says("flows: {sense: {planner: none}}\n")
    mocked = ticked(cli)
    assert (mocked["status"], mocked["why"]) == ("MOCK", "podium.yaml sets `planner: none`")
    cli.says("flows: {sense: {planner: rules, rules: nowhere.yaml}}\n")
    result = cli.run("sense", "--once")
    assert result.code == 1
    assert "planner     rules ERROR: " in result.out
    assert "nowhere.yaml" in result.out


def test_the_root_can_be_named(
    cli: CommandRunner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lay_out(cli)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    assert run(["sense", "--once", "--root", str(cli.project), "--json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["counts"] == {"health": 1, "acks": 0, "sessions": 1}
    assert list(elsewhere.iterdir()) == []
    assert cli.run("sense", "--once", "--root", str(tmp_path / "no")).code == 2


def test_words_for_a_tick_are_refused_where_none_is_made(cli: CommandRunner) -> None:
    assert cli.run("sense", "--if-changed").code == 2
    result = cli.run("sense", "--once", "status")
    assert result.code == 2
    assert "`status`" in result.err


def test_a_root_that_another_loop_holds_is_left_alone(cli: CommandRunner) -> None:
    lay_out(cli)
    ticked(cli)
    state = os.open(cli.project / ".podium/sense", os.O_RDONLY)
    held = exclusive_lock(state, "lock", what="the loop", since=SystemClock().now())
    try:
        with held:
            for words in (("--once",), ()):
                result = cli.run("sense", *words)
                assert result.code == 7
                assert f"process {os.getpid()} " in result.err
    finally:
        os.close(state)
    assert ticked(cli)["tick"] == 2


@pytest.mark.soak
def test_the_loop_ticks_on_and_ends_cleanly(cli: CommandRunner) -> None:
    lay_out(cli, more="    every_seconds: 0.3\n")
    with started(cli, "--json") as loop:
        assert loop.stdout
        ticks = [json.loads(loop.stdout.readline()) for _ in range(3)]
        second = cli.run("sense")
        assert second.code == 7
        assert f"process {loop.pid} " in second.err
        loop.send_signal(signal.SIGINT)
        assert loop.wait(LOOP_SECONDS) == 130
    assert [tick["status"] for tick in ticks] == ["OK", "SKIPPED", "SKIPPED"]
    assert [tick["tick"] for tick in ticks] == [1, 2, 3]


def test_the_loop_says_what_waits_when_it_begins_and_acts_on_an_approval_between_ticks(
    cli: CommandRunner,
) -> None:
    lay_out(cli, mode="supervised", more="    every_seconds: 3600\n", failing=("opal_api",))
    (only,) = (candidate["wo_id"] for candidate in ticked(cli)["candidates"])
    break_down(cli, "opal_api", "redis")
    with started(cli, stderr=subprocess.STDOUT) as loop:
        assert loop.stdout
        lines = [loop.stdout.readline() for _ in range(3)]
        assert "sensing " in lines[0]
        assert lines[1] == f"waiting: {only}; list them with `podium candidates`\n"
        assert "  tick 2  OK  waiting: WO-FIX-REDIS-" in lines[2]
        result = cli.run("approve", only, env=AS_OS_USER)
        assert "delivers it to" in result.err
        assert f"bridge/inbox/CLC/{only}" in result.err
        line = loop.stdout.readline()
        assert (
            f"  delivered: {only}  to bridge/inbox/CLC/{only}.yaml; execute it with `podium worker"
            in line
        )
        assert delivered(cli) == [f"{only}.yaml"]
        loop.send_signal(signal.SIGTERM)
        assert loop.wait(LOOP_SECONDS) == 130


def test_missing_planner_is_not_reported_as_thinking_and_rules_are_named(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lay_out(cli)
    cli.says("flows: {sense: {planner: gemini}}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = cli.run("sense", "--once")
    assert "planner     gemini MOCK: " in result.out
    file = cli.project / "podium.yaml"
    assert f" set `planner: rules` (no model) under `flows: sense:` in {file}\n" in result.out
    cli.says("flows: {sense: {planner: gemini}}\nagents: {brain: {kind: claude}}\n")
    assert " set `planner: brain` or `planner: rules` (no " in cli.run("sense", "--once").out
    cli.says("flows: {sense: {planner: gemini}}\n")
    assert "waiting for planner" not in result.err
    assert "no plan was made: the planner is missing\n" in result.out
    assert "No_Plan=planner_is_missing, GMX_Call_Status=MOCK" in result.out
    status = cli.run("sense", "status")
    assert "no plan was made: the planner is missing: agent 'gemini' needs" in status.out
    last = cli.run("sense", "status", "--json").json["last_tick"]
    assert last["no_plan"].startswith("no plan was made: the planner is missing")


def commands_in(text: str) -> list[list[str]]:
    """Return the commands that are printed on lines of their own."""
    lines = (line.strip() for line in text.splitlines())
    return [shlex.split(line)[1:] for line in lines if line.startswith("podium ")]


def test_the_commands_that_a_tick_prints_work_as_printed(cli: CommandRunner) -> None:
    """Although the mode that is set would refuse them."""
    lay_out(cli, failing=("opal_api",))
    result = cli.run("sense", "--once", "--mode", "supervised")
    deploy, refuse = commands_in(result.out)
    wo_id = deploy[1]
    assert deploy[:4] == ["deploy", wo_id, "--mode", "supervised"]
    assert refuse[:2] == ["reject", wo_id]
    again = commands_in(cli.run("candidates", "show", wo_id).err)
    assert [item[:4] for item in again] == [deploy[:4], refuse[:4]]
    assert cli.run(*deploy).code == 0
    assert delivered(cli) == [f"{wo_id}.yaml"]


def test_where_the_mode_is_set_no_command_names_it(cli: CommandRunner) -> None:
    lay_out(cli, mode="supervised", failing=("opal_api",))
    assert "--mode" not in cli.run("sense", "--once").out


def test_alert_reported_as_a_notice_is_not_reported_as_skipped_too(cli: CommandRunner) -> None:
    lay_out(cli)
    (cli.project / "rules.yaml").write_text(ALERTING)
    cli.says("flows: {sense: {planner: rules, rules: rules.yaml}}\n")
    break_down(cli, "opal_api")
    result = cli.run("sense", "--once")
    assert "notices     [high] opal_api: " in result.out
    assert "\nskipped " not in result.out
    assert all(line.strip() for line in result.out.splitlines() if line)


ALERTING = """\
version: 1
rules:
  - name: failing
    about: A check that failed.
    when: {source: health, for_each: [checks], where: [{path: status, equals: failed}]}
    item: {type: health_fix, priority: high, target: "{name}", action: alert}
    examples:
      - sensed: [{content: {checks: [{name: web, status: failed}]}}]
        expect: 1
      - sensed: [{content: {checks: [{name: web, status: ok}]}}]
        expect: 0
"""


@contextmanager
def started(
    cli: CommandRunner, *words: str, stderr: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """The loop in a process of its own, ended at the latest when this is left."""
    with subprocess.Popen(
        cli.command("sense", *words),
        cwd=cli.project,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as loop:
        try:
            yield loop
        finally:
            loop.kill()


def test_the_queues_of_the_loop_are_listed_where_there_is_one(cli: CommandRunner) -> None:
    names = [queue["name"] for queue in cli.run("queues", "--json").json["queues"]]
    assert names == ["default"]
    lay_out(cli)
    names = [queue["name"] for queue in cli.run("queues", "--json").json["queues"]]
    assert names == ["default", "sense", "orders"]


def test_what_sources_start_or_ask_is_shown_before_it_is_trusted(cli: CommandRunner) -> None:
    lay_out(cli)
    cli.says(
        "flows:\n  sense:\n    planner: none\n    sources:\n"
        "      - {name: disk, kind: command, command: [df, -h]}\n"
        "      - {name: api, kind: http, url: 'http://127.0.0.1:9/health'}\n"
    )
    before = ticked(cli)
    why = "podium.yaml is not trusted in its current form; read it, then run `podium trust`"
    assert before["missing"] == [f"df -h: {why}", f"http://127.0.0.1:9/health: {why}"]
    assert (before["counts"]["health"], before["counts"]["disk"]) == (1, 0), "the others go on"
    shown = cli.run("trust", "--show")
    assert "sense source disk: df -h\n" in shown.out
    assert "sense source api: http://127.0.0.1:9/health\n" in shown.out
    assert set(cli.run("trust", "--yes", "--json").json["sources"]) == {"disk", "api"}
    after = ticked(cli)
    assert after["counts"]["disk"] == 1
    assert not any("podium trust" in item for item in after["missing"])
