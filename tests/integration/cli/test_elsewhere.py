"""A project whose record is on a server says so to whoever forgets the variable."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.cli.desk import Desk
from tests.integration.cli.test_receipts import RUN, perform


def mark(desk: Desk) -> Path:
    return desk.project / ".podium" / "database"


def shown(url: str) -> str:
    parts = urlsplit(url)
    return f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"


def test_whoever_forgets_the_variable_is_told_where_the_record_is(
    desk: Desk, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.run("runs", "--json").err == ""
    monkeypatch.setenv("PODIUM_DATABASE_URL", postgres_url)
    assert desk.run("runs", "--json").err == ""
    assert mark(desk).read_text() == f"{shown(postgres_url)}\n"
    monkeypatch.delenv("PODIUM_DATABASE_URL")
    told = (
        f"podium: this project's record is on {shown(postgres_url)}; set PODIUM_DATABASE_URL, or remove "
        f"{str(mark(desk))!r} to work here\n"
    )
    assert desk.run("runs", "--json").err == told
    assert desk.run("config", "show").err == told
    mark(desk).unlink()
    assert desk.run("runs", "--json").err == ""


def test_a_mark_that_somebody_planted_can_neither_steer_the_terminal_nor_stop_a_command(
    desk: Desk,
) -> None:
    mark(desk).parent.mkdir(mode=0o700)
    mark(desk).write_bytes(b"\x1b[2J\xff" + b"x" * 100_000 + b"\nmore")
    said = desk.run("runs")
    assert said.code == 0
    assert "\x1b" not in said.err
    assert len(said.err) < 1_000
    mark(desk).unlink()
    mark(desk).mkdir()
    assert desk.run("runs", "--json").err == ""


def test_a_copy_leaves_the_mark_and_a_copy_back_takes_it_away(
    desk: Desk, postgres_url: str
) -> None:
    perform(desk, "a")
    desk.add_run(run_id=RUN)
    assert desk.run("db", "copy", "--to", postgres_url).code == 0
    assert mark(desk).exists()
    database = desk.project / ".podium" / "podium.db"
    database.rename(desk.project / "old.db")
    said = desk.run("db", "copy", "--from", postgres_url, "--to", ".podium/podium.db")
    assert said.code == 0, said.err
    assert not mark(desk).exists()
    assert desk.run("show", RUN).err == ""


def test_a_copy_beside_the_project_leaves_no_mark(desk: Desk, postgres_url: str) -> None:
    perform(desk, "a")
    assert desk.run("db", "copy", "--to", str(desk.project / "side.db")).code == 0
    assert not mark(desk).exists()
    assert desk.run("db", "copy", "--from", "side.db", "--to", postgres_url).code == 0
    assert not mark(desk).exists()


def test_the_settings_and_the_doctor_name_the_database_in_use_without_a_password(
    desk: Desk, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(desk.project / ".podium" / "podium.db")
    assert desk.run("config", "show", "--json").json["database"] == here
    monkeypatch.setenv("PODIUM_DATABASE_URL", postgres_url)
    said = desk.run("config", "show", "--origin")
    assert f"database: {shown(postgres_url)}    # PODIUM_DATABASE_URL\n" in said.out
    found = {each["name"]: each for each in desk.run("doctor", "--json").json["checks"]}
    assert found["database"]["says"] == f"{shown(postgres_url)} answers; no runs yet"
