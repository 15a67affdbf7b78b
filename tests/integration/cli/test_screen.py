"""Tables: plain when piped, drawn within the width of a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from datetime import UTC, datetime

import pytest

from podium.cli.screen import Screen
from podium.core.events import Event, EventBody, NoteTaken, RunNeededHuman
from podium.core.ids import short_id
from podium.render.event import event_line
from tests.integration.cli.command_runner import CommandRunner


def on_a_terminal(cli: CommandRunner, *arguments: str, **extra: str) -> str:
    """Return the output of a command on a terminal."""
    master, slave = pty.openpty()
    done = subprocess.Popen(
        cli.command(*arguments),
        cwd=cli.project,
        env={**cli.environ, "TERM": "xterm-256color", **extra},
        stdout=slave,
        stderr=subprocess.PIPE,
    )
    os.close(slave)
    text = b""
    try:
        while chunk := os.read(master, 4096):
            text += chunk
    except OSError:
        pass  # Linux says EIO when the last writer is gone
    done.communicate(timeout=120)
    os.close(master)
    return text.decode()


def test_a_narrow_terminal_gets_narrow_lines_without_colour_when_unwanted(
    cli: CommandRunner,
) -> None:
    cli.add_run(task="[bold]a long task[/bold] " * 5)
    drawn = on_a_terminal(cli, "runs", COLUMNS="60", NO_COLOR="1")
    assert max(len(line) for line in drawn.splitlines()) <= 60
    assert "\x1b" not in drawn
    assert "[bold]" in drawn.replace("\r\n", "")


def test_below_seventy_columns_a_table_is_a_list_that_cuts_nothing(cli: CommandRunner) -> None:
    run = cli.add_run(task="a task that is rather long " * 4)
    drawn = on_a_terminal(cli, "runs", COLUMNS="40", NO_COLOR="1").replace("\r\n", "\n")
    assert drawn.startswith(f"run: {short_id(run.id)}\nstatus: waiting\n")
    assert max(len(line) for line in drawn.splitlines()) <= 40
    assert drawn.split("task: ")[1].split() == run.task.split()
    assert "RUN " in on_a_terminal(cli, "runs", COLUMNS="90", NO_COLOR="1")


def test_a_narrow_line_of_progress_is_cut_unless_it_says_what_to_do() -> None:
    def line(body: EventBody) -> str:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return event_line(
            Event.model_validate({"run_id": "r", "seq": 7, "position": 7, "at": at, "body": body}),
            60,
        )

    long = "word " * 30
    assert len(line(NoteTaken(text=long))) == 60
    asked = line(RunNeededHuman(reason=f"{long}`podium resolve {'k' * 20}`"))
    assert asked.endswith(f"`podium resolve {'k' * 20}`")
    first, second, *_ = asked.splitlines()
    assert first.split()[1:3] == ["7", "run_needed_human"]
    assert second.startswith(" " * 14 + "word")
    assert max(map(len, asked.splitlines())) <= 60


def test_piped_output_is_whole_and_plain(cli: CommandRunner) -> None:
    task = "word " * 60
    cli.add_run(task=task)
    out = cli.run("runs").out
    assert task.strip() in out
    assert "\x1b" not in out


def test_a_mark_is_coloured_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    Screen().marked_line("fail ", "red", "git\x1b[2J is missing")
    assert capsys.readouterr().out == "fail  git is missing\n"
    monkeypatch.setattr("podium.cli.screen.is_terminal", lambda: True)
    Screen().marked_line("fail ", "red", "git\x1b[2J is missing")
    assert capsys.readouterr().out == "\x1b[31mfail \x1b[0m git is missing\n"
    monkeypatch.setenv("NO_COLOR", "1")
    Screen().marked_line("fail ", "red", "git")
    assert capsys.readouterr().out == "fail  git\n"
