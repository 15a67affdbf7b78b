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
from tests.integration.cli.desk import AS_OS_USER, Desk
from tests.integration.cli.sense_rig import SUMMARY_END, break_down, delivered, lay_out, ticked

LOOP_SECONDS = 200.0


@pytest.fixture(autouse=True)
def _no_mode_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GMX_ORCH_MODE", "PODIUM_SENSE_SCHEDULED"):
        monkeypatch.delenv(name, raising=False)


def last_line(desk: Desk, file: str) -> str:
    return (desk.project / file).read_text().splitlines()[-1]


def test_a_tick_tells_what_was_sensed_planned_and_proposed_and_ends_with_the_line_of_the_log(
    desk: Desk,
) -> None:
    lay_out(desk, failing=("opal_api",))
    (desk.project / "bridge/outbox/LIAM/torn.ack.json").write_text('{"wo_id": ')
    said = desk.run("sense", "--once")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("tick        1, mode sensing, ")
    assert "sensed      health 1, acks 0, sessions 1" in lines
    assert any(line.startswith("missing     bridge/outbox/LIAM/torn.ack.json: ") for line in lines)
    assert "planner     rules OK" in lines
    assert "changed     new: create_wo opal_api/FIX-OPAL_API (high)" in lines
    assert any(line.startswith("logged      WO-FIX-OPAL_API-") for line in lines)
    assert lines[-1].endswith(SUMMARY_END.format(status="OK"))
    assert last_line(desk, "logs/gmx_clc_orchestrator.log").endswith(lines[-1])
    assert json.loads(last_line(desk, "g/telemetry/gmx_clc_orch.jsonl"))["status"] == "OK"
    assert delivered(desk) == []


def test_an_unchanged_root_asks_nobody_and_leaves_the_database_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(desk)
    assert ticked(desk)["status"] == "OK"
    before = record_files(desk.project)
    assert ticked(desk, "--if-changed")["status"] == "SKIPPED"
    monkeypatch.setenv("PODIUM_SENSE_SCHEDULED", "1")
    idle = ticked(desk)
    assert (idle["status"], idle["idle_ticks"], idle["tokens"]) == ("SKIPPED", 2, 0)
    assert record_files(desk.project) == before
    break_down(desk, "opal_api")
    assert ticked(desk)["status"] == "OK"
    monkeypatch.setenv("PODIUM_SENSE_SCHEDULED", "0")
    assert ticked(desk)["status"] == "OK", "a manual tick always plans"


def record_files(project: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in (project / ".podium").rglob("*") if path.is_file())
    kept = [path for path in found if path.parent.name != "sense"]
    assert kept
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in kept}


def test_the_variable_lowers_the_mode_and_never_raises_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(desk, mode="supervised")
    monkeypatch.setenv("GMX_ORCH_MODE", "dry-run")
    assert ticked(desk, "--if-changed")["mode"] == "dry-run"
    monkeypatch.setenv("GMX_ORCH_MODE", "autonomous")
    assert ticked(desk, "--if-changed")["mode"] == "supervised"
    monkeypatch.setenv("GMX_ORCH_MODE", "dry-run")
    assert ticked(desk, "--if-changed", "--mode", "autonomous")["mode"] == "dry-run"
    monkeypatch.setenv("GMX_ORCH_MODE", "dryrun")
    said = desk.run("sense", "--once", "--if-changed", "--json")
    assert said.json["mode"] == "sensing"
    assert "GMX_ORCH_MODE='dryrun' is not a mode; using sensing" in said.err


def test_where_nobody_set_a_mode_the_loop_only_watches_and_a_person_may_say_more(
    desk: Desk,
) -> None:
    lay_out(desk)
    assert ticked(desk)["mode"] == "sensing"
    assert ticked(desk, "--mode", "supervised")["mode"] == "supervised"
    assert desk.run("sense", "--once", "--mode", "bold").code == 2


def test_a_planner_that_is_not_there_gives_an_empty_plan_and_one_that_fails_leaves_with_1(
    desk: Desk,
) -> None:
    lay_out(desk)
    desk.says("flows: {sense: {planner: none}}\n")
    mocked = ticked(desk)
    assert (mocked["status"], mocked["why"]) == ("MOCK", "podium.yaml sets `planner: none`")
    desk.says("flows: {sense: {planner: rules, rules: nowhere.yaml}}\n")
    said = desk.run("sense", "--once")
    assert said.code == 1
    assert "planner     rules ERROR: " in said.out
    assert "nowhere.yaml" in said.out


def test_the_root_can_be_named(
    desk: Desk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lay_out(desk)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    assert run(["sense", "--once", "--root", str(desk.project), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counts"] == {"health": 1, "acks": 0, "sessions": 1}
    assert list(elsewhere.iterdir()) == []
    assert desk.run("sense", "--once", "--root", str(tmp_path / "no")).code == 2


def test_words_for_a_tick_are_refused_where_none_is_made(desk: Desk) -> None:
    assert desk.run("sense", "--if-changed").code == 2
    said = desk.run("sense", "--once", "status")
    assert said.code == 2
    assert "`status`" in said.err


def test_a_root_that_another_loop_holds_is_left_alone(desk: Desk) -> None:
    lay_out(desk)
    ticked(desk)
    state = os.open(desk.project / ".podium/sense", os.O_RDONLY)
    held = exclusive_lock(state, "lock", what="the loop", since=SystemClock().now())
    try:
        with held:
            for words in (("--once",), ()):
                said = desk.run("sense", *words)
                assert said.code == 7
                assert f"process {os.getpid()} " in said.err
    finally:
        os.close(state)
    assert ticked(desk)["tick"] == 2


@pytest.mark.soak
def test_the_loop_ticks_on_and_ends_cleanly(desk: Desk) -> None:
    lay_out(desk, more="    every_seconds: 0.3\n")
    with started(desk, "--json") as loop:
        assert loop.stdout
        ticks = [json.loads(loop.stdout.readline()) for _ in range(3)]
        second = desk.run("sense")
        assert second.code == 7
        assert f"process {loop.pid} " in second.err
        loop.send_signal(signal.SIGINT)
        assert loop.wait(LOOP_SECONDS) == 130
    assert [each["status"] for each in ticks] == ["OK", "SKIPPED", "SKIPPED"]
    assert [each["tick"] for each in ticks] == [1, 2, 3]


def test_the_loop_says_what_waits_when_it_begins_and_acts_on_an_approval_between_ticks(
    desk: Desk,
) -> None:
    lay_out(desk, mode="supervised", more="    every_seconds: 3600\n", failing=("opal_api",))
    (only,) = (each["wo_id"] for each in ticked(desk)["candidates"])
    break_down(desk, "opal_api", "redis")
    with started(desk, stderr=subprocess.STDOUT) as loop:
        assert loop.stdout
        lines = [loop.stdout.readline() for _ in range(3)]
        assert "sensing " in lines[0]
        assert lines[1] == f"waiting: {only}; list them with `podium candidates`\n"
        assert "  tick 2  OK  waiting: WO-FIX-REDIS-" in lines[2]
        said = desk.run("approve", only, env=AS_OS_USER)
        assert "delivers it to" in said.err
        assert f"bridge/inbox/CLC/{only}" in said.err
        line = loop.stdout.readline()
        assert (
            f"  delivered: {only}  to bridge/inbox/CLC/{only}.yaml; execute it with `podium worker"
            in line
        )
        assert delivered(desk) == [f"{only}.yaml"]
        loop.send_signal(signal.SIGTERM)
        assert loop.wait(LOOP_SECONDS) == 130


def test_what_nobody_can_think_is_not_said_to_be_thought_and_rules_are_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lay_out(desk)
    desk.says("flows: {sense: {planner: gemini}}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    said = desk.run("sense", "--once")
    assert "planner     gemini MOCK: " in said.out
    file = desk.project / "podium.yaml"
    assert f" set `planner: rules` (no model) under `flows: sense:` in {file}\n" in said.out
    desk.says("flows: {sense: {planner: gemini}}\nagents: {brain: {kind: claude}}\n")
    assert " set `planner: brain` or `planner: rules` (no " in desk.run("sense", "--once").out
    desk.says("flows: {sense: {planner: gemini}}\n")
    assert "waiting for planner" not in said.err
    assert "no plan was made: the planner is missing\n" in said.out
    assert "No_Plan=planner_is_missing, GMX_Call_Status=MOCK" in said.out
    status = desk.run("sense", "status")
    assert "no plan was made: the planner is missing: agent 'gemini' needs" in status.out
    last = desk.run("sense", "status", "--json").json["last_tick"]
    assert last["no_plan"].startswith("no plan was made: the planner is missing")


def commands_in(text: str) -> list[list[str]]:
    """Return the commands that are printed on lines of their own."""
    lines = (line.strip() for line in text.splitlines())
    return [shlex.split(line)[1:] for line in lines if line.startswith("podium ")]


def test_the_commands_that_a_tick_prints_work_as_printed(desk: Desk) -> None:
    """Although the mode that is set would refuse them."""
    lay_out(desk, failing=("opal_api",))
    told = desk.run("sense", "--once", "--mode", "supervised")
    deploy, refuse = commands_in(told.out)
    wo_id = deploy[1]
    assert deploy[:4] == ["deploy", wo_id, "--mode", "supervised"]
    assert refuse[:2] == ["reject", wo_id]
    again = commands_in(desk.run("candidates", "show", wo_id).err)
    assert [each[:4] for each in again] == [deploy[:4], refuse[:4]]
    assert desk.run(*deploy).code == 0
    assert delivered(desk) == [f"{wo_id}.yaml"]


def test_where_the_mode_is_set_no_command_names_it(desk: Desk) -> None:
    lay_out(desk, mode="supervised", failing=("opal_api",))
    assert "--mode" not in desk.run("sense", "--once").out


def test_what_people_are_told_as_a_notice_is_not_told_as_skipped_too(desk: Desk) -> None:
    lay_out(desk)
    (desk.project / "rules.yaml").write_text(ALERTING)
    desk.says("flows: {sense: {planner: rules, rules: rules.yaml}}\n")
    break_down(desk, "opal_api")
    said = desk.run("sense", "--once")
    assert "notices     [high] opal_api: " in said.out
    assert "\nskipped " not in said.out
    assert all(line.strip() for line in said.out.splitlines() if line)


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
    desk: Desk, *words: str, stderr: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """The loop in a process of its own, ended at the latest when this is left."""
    with subprocess.Popen(
        desk.command("sense", *words),
        cwd=desk.project,
        env=desk.environ,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as loop:
        try:
            yield loop
        finally:
            loop.kill()


def test_the_queues_of_the_loop_are_listed_where_there_is_one(desk: Desk) -> None:
    names = [each["name"] for each in desk.run("queues", "--json").json["queues"]]
    assert names == ["default"]
    lay_out(desk)
    names = [each["name"] for each in desk.run("queues", "--json").json["queues"]]
    assert names == ["default", "sense", "orders"]


def test_what_sources_start_or_ask_is_shown_before_it_is_trusted(desk: Desk) -> None:
    lay_out(desk)
    desk.says(
        "flows:\n  sense:\n    planner: none\n    sources:\n"
        "      - {name: disk, kind: command, command: [df, -h]}\n"
        "      - {name: api, kind: http, url: 'http://127.0.0.1:9/health'}\n"
    )
    before = ticked(desk)
    why = "podium.yaml is not trusted in its current form; read it, then run `podium trust`"
    assert before["missing"] == [f"df -h: {why}", f"http://127.0.0.1:9/health: {why}"]
    assert (before["counts"]["health"], before["counts"]["disk"]) == (1, 0), "the others go on"
    shown = desk.run("trust", "--show")
    assert "sense source disk: df -h\n" in shown.out
    assert "sense source api: http://127.0.0.1:9/health\n" in shown.out
    assert set(desk.run("trust", "--yes", "--json").json["sources"]) == {"disk", "api"}
    after = ticked(desk)
    assert after["counts"]["disk"] == 1
    assert not any("podium trust" in each for each in after["missing"])
