"""`podium workers`, `queues` and `top`: what is seen, in words and in JSON, at terminals and in pipes."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from podium.app.app import open_podium
from podium.config.configuration import load_configuration
from podium.core.events import StepStarted
from podium.core.ids import short_id
from podium.core.work import Run, RunStatus
from podium.ports import Transaction
from podium.render.work_tables import age, worker_name
from tests.integration.cli.command_runner import CommandRunner

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
HOSTILE = "wipe \x1b[2J\x1b]0;owned\x07 the \u202edisk"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(
    request: pytest.FixtureRequest, cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Choose the database in which the desk's project keeps its record."""
    if request.param == "postgresql":
        monkeypatch.setenv("PODIUM_DATABASE_URL", request.getfixturevalue("postgres_url"))
    yield
    is_file = (cli.project / ".podium" / "podium.db").exists()
    assert is_file == (request.param == "sqlite")


def put(cli: CommandRunner, **changes: Any) -> Run:
    """A run in the store as somebody would have left it there."""
    complete: dict[str, Any] = {"flow": "demo", "task": HOSTILE, "created_at": datetime.now(UTC)}
    run = Run(id=cli.ids.new("run"), **complete | changes)

    def work(tx: Transaction) -> None:
        tx.save_run(run)
        if run.status is RunStatus.RUNNING:
            tx.append(run.id, StepStarted(step="plan#0"))

    async def within() -> None:
        configuration = load_configuration(os.environ, project=cli.project)
        async with open_podium(configuration, os.environ) as podium:
            await (await podium.store()).write(work)

    asyncio.run(within())
    return run


def put_left_behind(cli: CommandRunner) -> Run:
    """A running run whose worker is gone."""
    owner = cli.ids.new("wrk")
    claimed = datetime.now(UTC)
    return put(cli, status=RunStatus.RUNNING, owner=owner, fence=1, claimed_at=claimed)


@contextmanager
def killed_if_it_hangs(process: subprocess.Popen[Any]) -> Iterator[None]:
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


@pytest.mark.parametrize("command", [["workers"], ["queues"], ["top", "--once"], ["top"]])
def test_looking_where_nothing_was_recorded_makes_nothing(
    cli: CommandRunner, command: list[str]
) -> None:
    result = cli.run(*command)
    assert result.code == 0
    assert result.err or result.out
    assert cli.run(*command, "--json").code == 0
    assert not (cli.project / ".podium").exists()


@pytest.mark.usefixtures("database")
def test_a_dead_worker_is_listed_with_what_it_owns_and_what_is_next(cli: CommandRunner) -> None:
    run = put_left_behind(cli)
    result = cli.run("workers")
    assert result.code == 0
    assert "no workers; start one with `podium worker`" in result.err
    assert f"worker {short_id(run.owner or '')} is gone, and still owns:\n" in result.out
    assert f"  {short_id(run.id)}  demo  wipe the disk\n" in result.out
    assert f"    next: `podium resume {short_id(run.id)}` continues it\n" in result.out
    [worker] = cli.run("workers", "--json").json["workers"]
    assert (worker["id"], worker["alive"]) == (run.owner, False)
    assert worker["holds"][0]["task"] == HOSTILE


@pytest.mark.usefixtures("database")
def test_a_queue_without_workers_says_what_to_start(cli: CommandRunner) -> None:
    cli.says("queues: {gpu: {concurrency: 2, rate_limit: 10, rate_seconds: 60}}\n")
    put(cli, queue="gpu")
    put(cli, queue="gpu", status=RunStatus.NEEDS_HUMAN)
    result = cli.run("queues")
    assert result.code == 0
    head, row = (line.split() for line in result.out.splitlines()[:2])
    assert dict(zip(head, row, strict=True)) | {"OLDEST": "-"} == {
        "QUEUE": "gpu",
        "QUEUED": "1",
        "DELAYED": "0",
        "RUNNING": "0/2",
        "WAITING": "0",
        "PERSON": "1",
        "/MIN": "0",
        "OLDEST": "-",
        "WORKERS": "0",
    }
    assert "gpu  2 at once, 4 per worker, 10 starts in 60 s\n" in result.out
    assert "no worker is running for `gpu`: start `podium worker --queue gpu`\n" in result.err
    assert "1 run needs a person; list them with `podium runs --status needs_human`\n" in result.err
    [record] = cli.run("queues", "--json").json["queues"]
    assert (record["name"], record["queued"], record["served_by"]) == ("gpu", 1, [])
    assert record["trouble"].startswith("no worker is running for `gpu`")


def test_a_project_that_names_no_queue_has_the_default_one(cli: CommandRunner) -> None:
    assert [queue["name"] for queue in cli.run("queues", "--json").json["queues"]] == ["default"]


@pytest.mark.usefixtures("database")
def test_one_frame_shows_running_runs_with_their_step(cli: CommandRunner) -> None:
    run = put_left_behind(cli)
    result = cli.run("top", "--once")
    assert result.code == 0
    assert "0 workers, 1 running, 0 queued" in result.out
    assert re.search(
        rf"^{short_id(run.id)}  nobody .* plan#0 .* wipe the disk$", result.out, re.MULTILINE
    )
    assert "gone with runs; see `podium workers`" in result.out
    assert "\x1b" not in result.out
    frame = cli.run("top", "--json").json
    assert [item["step"] for item in frame["runs"]] == ["plan#0"]
    assert [queue["name"] for queue in frame["queues"]] == ["default"]
    assert frame["workers"][0]["alive"] is False


@pytest.mark.soak
def test_in_a_pipe_lines_come_again_when_something_changed(cli: CommandRunner) -> None:
    put_left_behind(cli)
    top = subprocess.Popen(
        cli.command("top"),
        cwd=cli.project,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert top.stdout
    with killed_if_it_hangs(top):
        output = iter(top.stdout.readline, "")
        assert "1 running, 0 queued" in next(output)
        put(cli, queue="default")
        assert any("1 running, 1 queued" in line for line in output)
        top.send_signal(signal.SIGINT)
        left, err = top.communicate()
    assert "Traceback" not in err
    assert top.returncode == 0, left


@pytest.mark.sample(1)
@pytest.mark.parametrize("ending", [b"q", b"\x03"])
def test_on_a_terminal_it_takes_the_screen_and_gives_it_back(
    cli: CommandRunner, ending: bytes
) -> None:
    put_left_behind(cli)
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    before = termios.tcgetattr(slave)
    process = subprocess.Popen(
        cli.command("top"),
        cwd=cli.project,
        env={**cli.environ, "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        # Ctrl-C reaches whoever the terminal belongs to.
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )
    text = b""
    with killed_if_it_hangs(process):
        typed = False
        while process.poll() is None:
            if select.select([master], [], [], 0.1)[0]:
                text += os.read(master, 4096)
            if b"q quits" in text and not typed:
                typed = bool(os.write(master, ending))
    after = termios.tcgetattr(slave)
    os.close(slave)
    with suppress(OSError):  # Linux says EIO when the last writer is gone
        while chunk := os.read(master, 4096):
            text += chunk
    os.close(master)
    assert process.returncode == 0
    assert after == before
    shown = text.decode()
    assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 1
    assert "wipe the disk" in shown
    assert "owned" not in shown
    assert "\x1b[?25h" in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (86399, "23h59m"),
        (86400 * 3 + 3600, "3d01h"),
    ],
)
def test_ages_are_shown_in_two_units(seconds: float, words: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == words


def test_a_worker_is_called_by_its_short_id_or_by_the_name_it_was_given() -> None:
    assert worker_name("wrk_01a1e0122a757ace9027d9172c0b2ee5") == "d9172c0b"
    assert worker_name("host-7") == "host-7"
    assert worker_name("evil\x1b[2J" + "x" * 99) == "evil" + "x" * 19 + "…"
