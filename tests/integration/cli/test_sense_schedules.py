"""Environment variables that a schedule takes over from the person who installs it."""

from __future__ import annotations

import plistlib

import pytest

from tests.integration.cli.desk import Desk


def test_a_schedule_names_the_home_in_which_its_project_is_trusted(desk: Desk) -> None:
    said = desk.run("sense", "install", "launchd", "--print")
    variables = plistlib.loads(said.out.encode())["EnvironmentVariables"]
    assert variables["PODIUM_HOME"] == str(desk.home.resolve())


def test_a_password_of_a_database_is_not_written_down_and_installing_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:9/db")
    said = desk.run("sense", "install", "cron", "--print")
    assert "not written to the schedule" in said.err
    assert "hunter2" not in said.out + said.err
    assert "DATABASE" not in said.out
