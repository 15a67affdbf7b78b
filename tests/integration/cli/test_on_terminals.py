"""Output and questions about trust and about programs in workspaces for a person at a terminal."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest

from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner
from tests.integration.cli.test_workspaces import git


def at_a_terminal(cli: CommandRunner, typed: str, *arguments: str) -> tuple[int, str]:
    """Exit code and all that the terminal showed, with `typed` waiting in it."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        cli.command(*arguments),
        cwd=cli.project,
        env={**cli.environ, **AS_OS_USER, "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    os.write(master, typed.encode())
    text = b""
    try:
        while chunk := os.read(master, 4096):
            text += chunk
    except OSError:
        pass  # Linux says EIO when the last writer is gone
    os.close(master)
    return process.wait(120), text.decode().replace("\r\n", "\n")


def test_a_person_sees_all_of_it_and_is_asked_before_it_is_trusted(cli: CommandRunner) -> None:
    cli.says("workspaces: {after_create: [npm ci, make], ports: [PORT]}\n")
    for typed, code, trusted in (("\n", 1, False), ("y\n", 0, True)):
        left, shown = at_a_terminal(cli, typed, "trust")
        assert left == code, shown
        asked = shown.index("as it is now? [y/N]")
        for line in ("after_create: npm ci\n", "after_create: make\n", "ports: PORT\n"):
            assert shown.index(f"workspaces: {line}") < asked
        assert cli.run("trust", "--show", "--json").json["trusted"] is trusted


@pytest.mark.soak
def test_nobody_who_already_approved_is_asked(cli: CommandRunner) -> None:
    cli.says("workspaces: {after_create: [npm ci]}\n")
    left, shown = at_a_terminal(cli, "", "trust", "--yes")
    assert left == 0
    assert "[y/N]" not in shown
    assert cli.run("trust", "--show", "--json").json["trusted"] is True


@pytest.mark.soak
def test_set_up_is_watched_and_a_programs_colours_are_seen_and_nothing_else_of_it(
    cli: CommandRunner,
) -> None:
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text("workspaces: {after_create: ['echo installing']}\n")
    (cli.project / "a.txt").write_text("a\n")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first")):
        git(cli, *words)
    left, shown = at_a_terminal(cli, "", "workspaces", "create", "fix")
    assert left == 0, shown
    assert "podium: set-up 1/1: echo installing\n" in shown
    assert "podium:   installing\n" in shown
    assert "next: podium workspaces exec fix -- " in shown
    written = r"\033[31mred\033[0m\t\033]0;title\007\033[2Jdone"
    left, shown = at_a_terminal(
        cli, "typed\n", "workspaces", "exec", "fix", "--", "sh", "-c", f"printf '{written}'; cat"
    )
    assert (left, shown.replace("typed\n", "")) == (0, "\x1b[31mred\x1b[0m\tdone")
