"""Streams that are closed, full or left by their reader."""

from __future__ import annotations

import subprocess

import pytest

from tests.integration.cli.desk import Desk, Said
from tests.soaking import in_soak


def in_a_shell(desk: Desk, line: str) -> Said:
    """A line of bash, in which `podium` is ours."""
    program = desk.command()[0]
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; podium() {{ {program} "$@"; }}; {line}'],
        cwd=desk.project,
        env=desk.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-", *map(in_soak, ("2>&-", "<&-"))])
@pytest.mark.parametrize("words", ["runs --json", *map(in_soak, ("--version", "runs --help"))])
def test_a_closed_stream_is_like_one_that_leads_nowhere(
    desk: Desk, words: str, closed: str
) -> None:
    desk.add_run()
    said = in_a_shell(desk, f"podium {words} {closed}")
    assert (said.code, said.err) == (0, "")


@pytest.mark.soak
def test_an_error_has_its_exit_code_also_when_nobody_can_be_told(desk: Desk) -> None:
    assert in_a_shell(desk, "podium show abcd1234 --json >&- 2>&-").code == 2
    assert in_a_shell(desk, "podium show abcd1234 2>/dev/full").code == 2


@pytest.mark.parametrize("words", ["runs --json", "--help", *map(in_soak, ("runs", "--version"))])
def test_a_full_disk_is_one_line_and_a_failure(desk: Desk, words: str) -> None:
    desk.add_run()
    said = in_a_shell(desk, f"podium {words} >/dev/full")
    assert said.code == 1
    assert len(said.err.splitlines()) == 1
    assert "No space left on device" in said.err


@pytest.mark.parametrize("words", ["runs --json", *map(in_soak, ("runs", "--help"))])
def test_a_reader_that_has_enough_is_no_failure(desk: Desk, words: str) -> None:
    for _ in range(20):
        desk.add_run(task="x" * 6000)
    said = in_a_shell(desk, f"podium {words} | head -c 1")
    assert (said.code, said.err) == (0, "")


@pytest.mark.soak
def test_a_command_that_fails_still_fails_when_its_reader_is_gone(desk: Desk) -> None:
    said = in_a_shell(desk, "podium policy check -- git checkout main | true")
    assert (said.code, said.err) == (4, "")


def test_what_is_no_text_is_a_usage_error(desk: Desk) -> None:
    desk.add_run()
    said = in_a_shell(desk, "podium show $'\\xff'")
    assert said.code == 2
    assert said.err.startswith("podium: an argument is not valid UTF-8")


def test_a_folder_that_is_gone_is_said_to_be_gone(desk: Desk) -> None:
    said = in_a_shell(desk, "mkdir gone && cd gone && rmdir ../gone && podium runs")
    assert said.code == 2
    assert "the current folder no longer exists" in said.err
