"""Environment variables that a schedule takes over from the person who installs it."""

from __future__ import annotations

import plistlib

import pytest

from tests.integration.cli.command_runner import CommandRunner


def test_a_schedule_names_the_home_in_which_its_project_is_trusted(cli: CommandRunner) -> None:
    result = cli.run("sense", "install", "launchd", "--print")
    variables = plistlib.loads(result.out.encode())["EnvironmentVariables"]
    assert variables["PODIUM_HOME"] == str(cli.home.resolve())


def test_a_password_of_a_database_is_not_written_down_and_installing_says_so(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:9/db")
    result = cli.run("sense", "install", "cron", "--print")
    assert "not written to the schedule" in result.err
    assert "hunter2" not in result.out + result.err
    assert "DATABASE" not in result.out
