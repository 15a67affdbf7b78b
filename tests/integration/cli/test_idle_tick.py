"""An idle tick that is made from the note of the last one, and what sends it back to the ordinary tick."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.config.configuration import load_configuration
from podium.config.folders import find_folders
from podium.config.trust import TrustBook
from podium.core.decisions import Tier
from podium.jobs.sense.composition import trust_of
from podium.jobs.sense.idle_tick import IdleTick, answer_idle_tick, make_idle_tick, parse_arguments
from podium.jobs.sense.io.safe_files import exclusive_lock
from podium.jobs.sense.trust import TrustEntry
from podium.platform.system_clock import SystemClock
from podium.testing import FixedClock
from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.integration.cli.sense_harness import HEALTH, break_down, lay_out, ticked

NOTE = ".podium/sense/idle.json"
MEMORY = ".podium/sense/memory.json"
LOG = "logs/gmx_clc_orchestrator.log"
TELEMETRY = "g/telemetry/gmx_clc_orch.jsonl"
COMMAND = ("sense", "--once", "--if-changed")
PASSING = {"tick", "at", "seconds", "idle_ticks", "summary"}
"""What differs between two idle ticks."""


@pytest.fixture(autouse=True)
def _no_words_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GMX_ORCH_MODE", "PODIUM_SENSE_SCHEDULED", "PODIUM_MODE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def idle(cli: CommandRunner) -> CommandRunner:
    """A root whose last tick found nothing to do."""
    return idling(cli)


def idling(cli: CommandRunner, *, more: str = "", mode: str = "") -> CommandRunner:
    lay_out(cli, more=more, mode=mode)
    settle(cli)
    assert ticked(cli)["status"] == "OK"
    assert ticked(cli, "--if-changed")["status"] == "SKIPPED"
    return cli


def settle(cli: CommandRunner) -> None:
    """Let files be older than the two seconds in which their times may not tell another change."""
    minute_ago = datetime.now(UTC).timestamp() - 60
    for path in cli.project.rglob("*"):
        if path.is_file() and ".podium" not in path.parts:
            os.utime(path, (minute_ago, minute_ago))


def made(
    cli: CommandRunner, clock: Any = None, environ: dict[str, str] | None = None
) -> IdleTick | None:
    variables = {**os.environ, **(environ or {})}
    folders = find_folders(variables, project=cli.project)
    return make_idle_tick(folders, variables, clock or SystemClock())


def later(seconds: float) -> FixedClock:
    return FixedClock(datetime.now(UTC) + timedelta(seconds=seconds))


def memory_of(cli: CommandRunner) -> dict[str, Any]:
    return dict(json.loads((cli.project / MEMORY).read_text()))


def last_line(cli: CommandRunner, file: str) -> str:
    return (cli.project / file).read_text().splitlines()[-1]


def answered(
    cli: CommandRunner, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int | None, CommandResult]:
    capsys.readouterr()
    code = answer_idle_tick([*COMMAND, "--project", str(cli.project), *options])
    output = capsys.readouterr()
    return code, CommandResult(code or 0, output.out, output.err)


def lasting(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in PASSING}


def test_tick_from_the_note_answers_and_records_what_an_ordinary_idle_tick_does(
    idle: CommandRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    ordinary = idle.run(*COMMAND, "--json")
    written = {file: last_line(idle, file) for file in (LOG, TELEMETRY)}
    remembered = memory_of(idle)
    code, quick = answered(idle, capsys, "--json")
    assert (code, quick.err) == (ordinary.code, ordinary.err) == (0, "")
    assert list(quick.json) == list(ordinary.json)
    assert lasting(quick.json) == lasting(ordinary.json)
    assert (quick.json["tick"], quick.json["idle_ticks"]) == (4, 3)
    assert re.sub(r"Tick=4|Idle_Ticks=3", "", quick.json["summary"]) == re.sub(
        r"Tick=3|Idle_Ticks=2", "", ordinary.json["summary"]
    )
    assert memory_of(idle) == {**remembered, "ticks": 4, "idle_ticks": 3}
    assert last_line(idle, LOG).endswith(f" [INFO] {quick.json['summary']}")
    before, after = json.loads(written[TELEMETRY]), json.loads(last_line(idle, TELEMETRY))
    assert list(after) == list(before)
    assert lasting(after) == lasting(before)
    assert {**after, "summary": quick.json["summary"]} == {**quick.json, "event": "tick"}
    assert len(last_line(idle, LOG)) == len(written[LOG])


def test_tick_from_the_note_reports_the_same_to_people(
    idle: CommandRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    ordinary = idle.run(*COMMAND)
    code, quick = answered(idle, capsys)
    assert (code, quick.err) == (0, "")

    def without_numbers(text: str) -> str:
        return re.sub(r"\d+", "N", text)

    assert without_numbers(quick.out) == without_numbers(ordinary.out)
    assert "so far      4 ticks, 3 of them idle; 0 tokens\n" in quick.out


def test_ordinary_ticks_go_on_counting_where_quick_ones_ended(idle: CommandRunner) -> None:
    assert made(idle) is not None
    assert made(idle) is not None
    after = ticked(idle, "--if-changed")
    assert (after["tick"], after["idle_ticks"], after["status"]) == (5, 4, "SKIPPED")


def test_note_and_memory_are_private(idle: CommandRunner) -> None:
    assert made(idle) is not None
    for file in (NOTE, MEMORY):
        assert stat.S_IMODE((idle.project / file).stat().st_mode) == 0o600


def another_ack(cli: CommandRunner) -> None:
    (cli.project / "bridge/outbox/LIAM/new.ack.json").write_text("{}")


def same_size_and_time(cli: CommandRunner) -> None:
    """Only the time of the last change of its properties tells it."""
    file = cli.project / HEALTH
    before = file.stat()
    file.write_text(file.read_text().replace("known", "worse"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def trusted(cli: CommandRunner) -> None:
    configuration = load_configuration(os.environ, project=cli.project)
    TrustBook(configuration.folders.user_state).trust(
        configuration.folders.project_file, configuration.project_digest
    )


def trust_earned(cli: CommandRunner) -> None:
    entry = TrustEntry(
        kind="agreed", target="opal_api", zone="g/tools", tier=Tier.T1, wo_id="WO-1", at=datetime.now(UTC)
    )  # fmt: skip

    async def add(podium: Any) -> None:
        trust_of(podium).add(entry)

    cli.within(add)


def user_file(cli: CommandRunner) -> None:
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text("mode: dry-run\n")


CHANGES: dict[str, Callable[[CommandRunner], object]] = {
    "file of a source": lambda cli: break_down(cli, "opal_api"),
    "file of a source with its size and time": same_size_and_time,
    "file of a source gone": lambda cli: (cli.project / HEALTH).unlink(),
    "new file in a watched folder": another_ack,
    "project's settings": lambda cli: cli.says("flows: {sense: {planner: none}}\n"),
    "project's settings gone": lambda cli: (cli.project / "podium.yaml").unlink(),
    "user's settings": user_file,
    "trust of the project's file": trusted,
    "trust that was earned": trust_earned,
    "a plan made since": lambda cli: ticked(cli),
    "memory gone": lambda cli: (cli.project / MEMORY).unlink(),
    "memory of nobody": lambda cli: (cli.project / MEMORY).write_text("[]"),
    "note gone": lambda cli: (cli.project / NOTE).unlink(),
    "note of nobody": lambda cli: (cli.project / NOTE).write_text('{"conditions": 1}'),
    "note cut off": lambda cli: (cli.project / NOTE).write_text('{"cond'),
    "record on a server": lambda cli: (cli.project / ".podium/database").write_text("db\n"),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("what", CHANGES)
def test_every_change_takes_an_ordinary_tick(idle: CommandRunner, what: str) -> None:
    assert made(idle) is not None
    CHANGES[what](idle)
    before = last_line(idle, LOG)
    assert made(idle) is None
    assert last_line(idle, LOG) == before


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "variables",
    [
        {"PODIUM_MODE": "dry-run"},
        {"GMX_ORCH_MODE": "sensing"},
        {"PODIUM_DATABASE_URL": "postgresql://nowhere/db"},
        {"HOME": "/elsewhere"},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_another_environment_takes_an_ordinary_tick(
    idle: CommandRunner, variables: dict[str, str]
) -> None:
    assert made(idle) is not None
    assert made(idle, environ=variables) is None


def test_variables_of_others_do_not_matter(idle: CommandRunner) -> None:
    assert made(idle, environ={"INVOCATION_ID": "7", "LANG": "C"}) is not None


def test_another_version_takes_an_ordinary_tick(
    idle: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.jobs.sense.idle_tick.__version__", "999")
    assert made(idle) is None


def test_what_becomes_due_by_itself_takes_an_ordinary_tick(cli: CommandRunner) -> None:
    idling(cli, more="    replan_seconds: 1800\n    health_stale_seconds: 900\n")
    assert made(cli, later(600)) is not None
    assert made(cli, later(1000)) is None, "the health file is stale"
    settle(cli)
    cli.says((cli.project / "podium.yaml").read_text().replace("900", "9000"))
    assert ticked(cli)["status"] == "OK"
    assert ticked(cli, "--if-changed")["status"] == "SKIPPED"
    assert made(cli, later(1700)) is not None
    assert made(cli, later(1900)) is None, "it is time to plan again"


def test_clock_that_was_set_back_takes_an_ordinary_tick(idle: CommandRunner) -> None:
    assert made(idle, later(-3600)) is None


def test_file_written_just_now_is_looked_at_once_more(idle: CommandRunner) -> None:
    """A second write within the same step of its time would not be seen."""
    break_down(idle, "opal_api")
    assert ticked(idle)["status"] == "OK"
    ticked(idle, "--if-changed")
    assert made(idle, later(10)) is None


def test_root_that_another_loop_holds_is_left_to_the_ordinary_tick(idle: CommandRunner) -> None:
    state = os.open(idle.project / ".podium/sense", os.O_RDONLY)
    with exclusive_lock(state, "lock", what="the loop", since=SystemClock().now()):
        assert made(idle) is None
    os.close(state)
    assert made(idle) is not None


def test_note_behind_a_link_is_not_read(idle: CommandRunner, tmp_path: Path) -> None:
    (idle.project / NOTE).rename(tmp_path / "note")
    (idle.project / NOTE).symlink_to(tmp_path / "note")
    assert made(idle) is None
    (idle.project / NOTE).unlink()
    os.link(tmp_path / "note", idle.project / NOTE)
    assert made(idle) is None


def test_work_in_the_record_and_the_inbox_is_no_business_of_an_idle_tick(
    idle: CommandRunner,
) -> None:
    """As of an ordinary one, which opens neither while no candidate waits."""
    idle.add_run()
    (idle.project / "bridge/inbox/CLC/WO-1.yaml").write_text("x: 1\n")
    assert ticked(idle, "--if-changed")["status"] == "SKIPPED"
    assert made(idle) is not None


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "more",
    [
        "    sources: [{name: git, kind: git}]\n",
        "    sources: [{name: load, kind: figures}]\n",
        "    sources: [{name: asked, kind: command, command: [date]}]\n",
    ],
    ids=["git", "figures", "command"],
)
def test_source_that_has_to_be_asked_leaves_no_note(cli: CommandRunner, more: str) -> None:
    lay_out(cli, more=more)
    settle(cli)
    ticked(cli)
    ticked(cli, "--if-changed")
    assert not (cli.project / NOTE).exists()


def test_candidate_that_waits_leaves_no_note(cli: CommandRunner) -> None:
    lay_out(cli, mode="supervised", failing=("opal_api",))
    settle(cli)
    assert ticked(cli)["candidates"][0]["state"] == "waiting"
    assert ticked(cli, "--if-changed")["status"] == "SKIPPED"
    assert not (cli.project / NOTE).exists()


def test_tick_in_a_mode_of_the_command_line_leaves_no_note(cli: CommandRunner) -> None:
    lay_out(cli)
    settle(cli)
    ticked(cli)
    assert ticked(cli, "--if-changed", "--mode", "dry-run")["status"] == "SKIPPED"
    assert not (cli.project / NOTE).exists()


def test_patterns_to_redact_leave_no_note(cli: CommandRunner) -> None:
    lay_out(cli)
    cli.says((cli.project / "podium.yaml").read_text() + "redact: ['Tick=4']\n")
    settle(cli)
    ticked(cli)
    assert ticked(cli, "--if-changed")["status"] == "SKIPPED"
    assert not (cli.project / NOTE).exists()


def test_unwritable_log_is_reported_and_the_tick_counts(
    idle: CommandRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    (idle.project / LOG).unlink()
    (idle.project / LOG).mkdir()
    code, quick = answered(idle, capsys, "--json")
    assert (code, quick.json["tick"]) == (0, 3)
    assert quick.err.startswith(f"podium: {LOG}: ")
    assert json.loads(last_line(idle, TELEMETRY))["tick"] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["sense", "--once"],
        ["sense", "--if-changed"],
        ["--once", "sense", "--if-changed"],
        ["--root", "x", "sense", "--once", "--if-changed"],
        ["sense", "--once", "--if-changed", "--mode", "sensing"],
        ["sense", "--once", "--if-changed", "--debug"],
        ["sense", "--once", "--if-changed", "--project"],
        ["sense", "--once", "--if-changed", "--project", "a", "--root", "b"],
        ["sense", "--once", "--if-changed", "status"],
        ["ask", "sense", "--once", "--if-changed"],
        ["sense", "--once", "--if-changed", "--help"],
    ],
    ids=" ".join,
)
def test_other_command_lines_are_left_to_typer(arguments: list[str]) -> None:
    assert parse_arguments(arguments) is None


def test_command_line_of_a_scheduler_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_SENSE_SCHEDULED", "1")
    parsed = parse_arguments(["sense", "--once", "--root", "/srv/x", "--json"])
    assert parsed is not None
    assert (parsed.project, parsed.json) == (Path("/srv/x"), True)
    monkeypatch.setenv("PODIUM_SENSE_SCHEDULED", "0")
    assert parse_arguments(["sense", "--once"]) is None
    parsed = parse_arguments(["--json", "--project=/srv/y", "sense", "--if-changed", "--once"])
    assert parsed is not None
    assert (parsed.project, parsed.json) == (Path("/srv/y"), True)
