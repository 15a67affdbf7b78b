"""The edge: words and exit codes for whatever goes wrong."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from types import ModuleType

import pytest

from podium.cli.app import KERNEL_COMMANDS, OTHER_NAMES, all_commands, build, command_app
from podium.core.errors import (
    BudgetSpent,
    CallRefused,
    Interrupted,
    LockHeld,
    NeedsHuman,
    StoreBusy,
    TimedOut,
)
from podium.core.job import Command
from tests.integration.cli.command_runner import CommandRunner


def test_an_unknown_command_is_a_usage_error_with_a_hint(cli: CommandRunner) -> None:
    result = cli.run("shwo")
    assert result.code == 2
    assert result.out == ""
    assert "podium: No such command 'shwo'. Did you mean 'show'" in result.err


@pytest.mark.parametrize(
    ("typed", "command"), [("status", "runs"), ("ui", "serve"), ("stop", "cancel")]
)
def test_a_name_that_other_tools_use_is_answered_with_the_command(
    cli: CommandRunner, typed: str, command: str
) -> None:
    result = cli.run(typed)
    assert (result.code, result.out) == (2, "")
    assert f"podium: No such command '{typed}'. Use `podium {command}" in result.err


def test_every_other_name_leads_to_a_command_that_exists() -> None:
    names = all_commands()
    for typed, (command, _) in OTHER_NAMES.items():
        assert typed not in names
        assert command.split()[0] in (*names, "--version"), typed


def test_a_bare_podium_shows_its_help_on_stderr(cli: CommandRunner) -> None:
    result = cli.spawn()
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Usage: podium")


def test_a_bare_group_shows_its_help_on_stderr(cli: CommandRunner) -> None:
    result = cli.run("receipts")
    assert (result.code, result.out) == (2, "")
    assert "verify" in result.err


def test_a_wrong_option_is_a_usage_error_in_json_too(cli: CommandRunner) -> None:
    result = cli.run("runs", "--limit", "many", "--json")
    assert result.code == 2
    assert result.json["error"]["exit_code"] == 2
    assert "--limit" in result.err


def test_words_behind_the_double_dash_are_not_ours(cli: CommandRunner) -> None:
    result = cli.run("runs", "--", "--json")
    assert result.code == 2
    assert result.out == ""


def test_global_options_may_stand_before_or_after_the_command(cli: CommandRunner) -> None:
    assert cli.run("--json", "runs").json["runs"] == []
    assert cli.run("runs", "--json").json["runs"] == []
    assert cli.run("receipts", "list", "--json").json == {"receipts": []}
    before = cli.run("--project", "nowhere", "runs")
    after = cli.run("runs", "--project", "nowhere")
    assert before.code == after.code == 2
    assert "folder 'nowhere' does not exist" in after.err


def test_a_podium_error_is_one_line_and_its_exit_code(cli: CommandRunner) -> None:
    result = cli.run("show", "abcd1234")
    assert result.code == 2
    assert result.out == ""
    assert result.err == "podium: no run 'abcd1234'; list them with `podium runs`\n"


def test_in_json_an_error_is_an_object_on_stdout_and_words_on_stderr(cli: CommandRunner) -> None:
    result = cli.run("show", "abcd1234", "--json")
    assert result.json["error"]["kind"] == "UnknownId"
    assert result.json["error"]["exit_code"] == result.code == 2
    assert result.err.startswith("podium: ")


def test_broken_settings_are_reported_with_file_line_and_key(cli: CommandRunner) -> None:
    cli.says("mode: supervised\nagnets: {}\nmode: sensing\n")
    result = cli.run("config", "show")
    assert result.code == 2
    assert f"{cli.project.resolve()}/podium.yaml:3:1: mode: is a duplicate key" in result.err
    cli.says("mode: supervised\nagnets: {}\n")
    assert "podium.yaml:2:1: agnets: unknown key" in cli.run("config", "show").err
    assert not (cli.project / ".podium").exists()


def test_a_traceback_is_shown_only_when_asked_for(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Traceback" not in cli.run("show", "abcd1234").err
    assert "Traceback" in cli.run("show", "abcd1234", "--debug").err
    monkeypatch.setenv("PODIUM_DEBUG", "1")
    assert "Traceback" in cli.run("show", "abcd1234").err


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (ZeroDivisionError("by zero"), 1, "podium: ZeroDivisionError: by zero; run it again"),
        (KeyboardInterrupt(), 130, "podium: interrupted\n"),
        (Interrupted("asked to end"), 130, "podium: interrupted\n"),
        (LockHeld("held"), 7, "podium: held\n"),
        (TimedOut("late"), 6, "podium: late\n"),
        (BudgetSpent("spent"), 5, "podium: spent\n"),
        (CallRefused("no"), 4, "podium: no\n"),
        (NeedsHuman("you"), 3, "podium: you\n"),
        (StoreBusy("busy"), 1, "podium: busy\n"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/x/.podium"),
            1,
            "podium: '/x/.podium': Permission denied; give yourself read and write access (ls -ld, chmod, chown), "
            "or use a folder you own (cd, or --project DIR)\n",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/nonexistent"),
            1,
            "podium: '/nonexistent': Permission denied; give yourself read and write access (ls -ld, chmod, chown), "
            "or set HOME or PODIUM_HOME to a folder you own\n",
        ),
    ],
)
def test_whatever_a_command_raises_has_its_exit_code(
    cli: CommandRunner,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    code: int,
    words: str,
) -> None:
    app = command_app()

    @app.command()
    def burst() -> None:
        raise raised

    module = ModuleType("podium.cli.commands.burst")
    module.__dict__["app"] = app
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(
        KERNEL_COMMANDS, "burst", Command("podium.cli.commands.burst:app", "Bursts.")
    )
    monkeypatch.setattr(
        "podium.cli.error_report.build", build.__wrapped__
    )  # another command each time
    monkeypatch.setenv("HOME", "/nonexistent")
    result = cli.run("burst")
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert "Traceback" not in result.err


def test_a_reader_that_goes_away_ends_the_command_quietly(cli: CommandRunner) -> None:
    for _ in range(3):
        cli.add_run(task="x" * 2000)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        cli.command("runs", "--json"),
        cwd=cli.project,
        env=cli.environ,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert done.stderr == b""


def test_failure_to_keep_the_record_is_reported_beside_the_answer(cli: CommandRunner) -> None:
    run = cli.add_run()
    approval = cli.add_approval(run)
    (cli.project / ".podium" / "runs").write_text("a file where the folder should be")
    result = cli.run("approve", approval.id, "--json")
    assert result.code == 0
    assert result.json["approval"]["status"] == "granted"
    assert f"podium: trace of run {run.id} not written" in result.err
    assert "podium doctor" in result.err


def test_fault_is_reported_even_when_the_command_fails(cli: CommandRunner) -> None:
    run = cli.add_run()
    approval = cli.add_approval(run, seconds=-1)
    (cli.project / ".podium" / "runs").write_text("a file where the folder should be")
    result = cli.run("approve", approval.id)
    assert result.code != 0
    assert f"podium: trace of run {run.id} not written" in result.err


def test_search_path_of_a_missing_program_is_printed_with_debug_alone(cli: CommandRunner) -> None:
    nowhere = {"PATH": "/nowhere-at-all"}
    assert "/nowhere-at-all" not in cli.run("demo", env=nowhere).err
    assert "PATH=/nowhere-at-all\n" in cli.run("demo", "--debug", env=nowhere).err
