"""Tables: plain when piped, drawn within the width of a terminal."""

from __future__ import annotations

import os
import pty
import subprocess

from tests.cli.desk import Desk


def on_a_terminal(desk: Desk, *arguments: str, **extra: str) -> str:
    """What a terminal gets to see."""
    master, slave = pty.openpty()
    done = subprocess.Popen(
        desk.command(*arguments),
        cwd=desk.project,
        env={**desk.environ, "TERM": "xterm-256color", **extra},
        stdout=slave,
        stderr=subprocess.PIPE,
    )
    os.close(slave)
    heard = b""
    try:
        while chunk := os.read(master, 4096):
            heard += chunk
    except OSError:
        pass  # Linux says EIO when the last writer is gone
    done.communicate(timeout=30)
    os.close(master)
    return heard.decode()


def test_a_narrow_terminal_gets_narrow_lines_without_colour_when_unwanted(desk: Desk) -> None:
    desk.add_run(task="[bold]a long task[/bold] " * 5)
    drawn = on_a_terminal(desk, "runs", COLUMNS="60", NO_COLOR="1")
    assert max(len(line) for line in drawn.splitlines()) <= 60
    assert "\x1b" not in drawn
    assert "[bold]" in drawn.replace("\r\n", "")


def test_piped_output_is_whole_and_plain(desk: Desk) -> None:
    task = "word " * 60
    desk.add_run(task=task)
    out = desk.run("runs").out
    assert task.strip() in out
    assert "\x1b" not in out
