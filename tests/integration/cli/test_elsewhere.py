"""A project whose record is on a server says so to whoever forgets the variable."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_receipts import RUN, perform


def mark(cli: CommandRunner) -> Path:
    return cli.project / ".podium" / "database"


def shown(url: str) -> str:
    parts = urlsplit(url)
    return f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"


def test_whoever_forgets_the_variable_is_shown_where_the_record_is(
    cli: CommandRunner, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run("runs", "--json").err == ""
    monkeypatch.setenv("PODIUM_DATABASE_URL", postgres_url)
    assert cli.run("runs", "--json").err == ""
    assert mark(cli).read_text() == f"{shown(postgres_url)}\n"
    monkeypatch.delenv("PODIUM_DATABASE_URL")
    text = (
        f"podium: this project's record is on {shown(postgres_url)}; set PODIUM_DATABASE_URL, or remove "
        f"{str(mark(cli))!r} to work here\n"
    )
    assert cli.run("runs", "--json").err == text
    assert cli.run("config", "show").err == text
    mark(cli).unlink()
    assert cli.run("runs", "--json").err == ""


def test_a_mark_that_somebody_planted_can_neither_steer_the_terminal_nor_stop_a_command(
    cli: CommandRunner,
) -> None:
    mark(cli).parent.mkdir(mode=0o700)
    mark(cli).write_bytes(b"\x1b[2J\xff" + b"x" * 100_000 + b"\nmore")
    result = cli.run("runs")
    assert result.code == 0
    assert "\x1b" not in result.err
    assert len(result.err) < 1_000
    mark(cli).unlink()
    mark(cli).mkdir()
    assert cli.run("runs", "--json").err == ""


def test_a_copy_leaves_the_mark_and_a_copy_back_takes_it_away(
    cli: CommandRunner, postgres_url: str
) -> None:
    perform(cli, "a")
    cli.add_run(run_id=RUN)
    assert cli.run("db", "copy", "--to", postgres_url).code == 0
    assert mark(cli).exists()
    database = cli.project / ".podium" / "podium.db"
    database.rename(cli.project / "old.db")
    result = cli.run("db", "copy", "--from", postgres_url, "--to", ".podium/podium.db")
    assert result.code == 0, result.err
    assert not mark(cli).exists()
    assert cli.run("show", RUN).err == ""


def test_a_copy_beside_the_project_leaves_no_mark(cli: CommandRunner, postgres_url: str) -> None:
    perform(cli, "a")
    assert cli.run("db", "copy", "--to", str(cli.project / "side.db")).code == 0
    assert not mark(cli).exists()
    assert cli.run("db", "copy", "--from", "side.db", "--to", postgres_url).code == 0
    assert not mark(cli).exists()


def test_the_settings_and_the_doctor_name_the_database_in_use_without_a_password(
    cli: CommandRunner, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(cli.project / ".podium" / "podium.db")
    assert cli.run("config", "show", "--json").json["database"] == here
    monkeypatch.setenv("PODIUM_DATABASE_URL", postgres_url)
    result = cli.run("config", "show", "--origin")
    assert f"database: {shown(postgres_url)}    # PODIUM_DATABASE_URL\n" in result.out
    found = {check["name"]: check for check in cli.run("doctor", "--json").json["checks"]}
    assert found["database"]["says"] == f"{shown(postgres_url)} answers; no runs yet"
