"""Streams that are closed, full or left by their reader."""

from __future__ import annotations

import subprocess

import pytest

from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.soaking import in_soak


def in_a_shell(cli: CommandRunner, line: str) -> CommandResult:
    """A line of bash, in which `podium` is ours."""
    program = cli.command()[0]
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; podium() {{ {program} "$@"; }}; {line}'],
        cwd=cli.project,
        env=cli.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-", *map(in_soak, ("2>&-", "<&-"))])
@pytest.mark.parametrize("words", ["runs --json", *map(in_soak, ("--version", "runs --help"))])
def test_a_closed_stream_is_like_one_that_leads_nowhere(
    cli: CommandRunner, words: str, closed: str
) -> None:
    cli.add_run()
    result = in_a_shell(cli, f"podium {words} {closed}")
    assert (result.code, result.err) == (0, "")


@pytest.mark.soak
def test_error_has_its_exit_code_even_when_nobody_can_be_notified(cli: CommandRunner) -> None:
    assert in_a_shell(cli, "podium show abcd1234 --json >&- 2>&-").code == 2
    assert in_a_shell(cli, "podium show abcd1234 2>/dev/full").code == 2


@pytest.mark.parametrize("words", ["runs --json", "--help", *map(in_soak, ("runs", "--version"))])
def test_a_full_disk_is_one_line_and_a_failure(cli: CommandRunner, words: str) -> None:
    cli.add_run()
    result = in_a_shell(cli, f"podium {words} >/dev/full")
    assert result.code == 1
    assert len(result.err.splitlines()) == 1
    assert "No space left on device" in result.err


@pytest.mark.parametrize("words", ["runs --json", *map(in_soak, ("runs", "--help"))])
def test_a_reader_that_has_enough_is_no_failure(cli: CommandRunner, words: str) -> None:
    for _ in range(20):
        cli.add_run(task="x" * 6000)
    result = in_a_shell(cli, f"podium {words} | head -c 1")
    assert (result.code, result.err) == (0, "")


@pytest.mark.soak
def test_a_command_that_fails_still_fails_when_its_reader_is_gone(cli: CommandRunner) -> None:
    result = in_a_shell(cli, "podium policy check -- git checkout main | true")
    assert (result.code, result.err) == (4, "")


def test_what_is_no_text_is_a_usage_error(cli: CommandRunner) -> None:
    cli.add_run()
    result = in_a_shell(cli, "podium show $'\\xff'")
    assert result.code == 2
    assert result.err.startswith("podium: an argument is not valid UTF-8")


def test_vanished_folder_is_reported_as_gone(cli: CommandRunner) -> None:
    result = in_a_shell(cli, "mkdir gone && cd gone && rmdir ../gone && podium runs")
    assert result.code == 2
    assert "the current folder no longer exists" in result.err
