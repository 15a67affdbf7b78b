"""`podium receipts`, on calls that were really performed."""

from __future__ import annotations

import json
import selectors
import signal
import sqlite3
import subprocess

import pytest

from podium.app.app import Podium
from podium.core.decisions import CallOutcome
from tests.integration.cli.command_runner import CommandRunner

RUN = "run_00000000000070008000feedface0001"


def perform(cli: CommandRunner, *names: str, run_id: str = RUN) -> None:
    async def work(podium: Podium) -> None:
        toolbox = await podium.toolbox()
        for name in names:
            arguments = {"path": name, "content": "x"}
            call = toolbox.normalise("write_file", arguments, run_id=run_id, step_key=name, index=0)
            assert isinstance(await toolbox.perform(call), CallOutcome)

    cli.within(work)


def test_receipts_are_listed_and_proved(cli: CommandRunner) -> None:
    perform(cli, "a", "b")
    cli.add_run(run_id=RUN)
    listed = cli.run("receipts", "list", "feedface", "--json").json["receipts"]
    assert [(receipt["number"], receipt["tool"]) for receipt in listed] == [
        (1, "write_file"),
        (2, "write_file"),
    ]
    result = cli.run("receipts", "verify")
    assert (result.code, result.out) == (0, "2 receipts of 1 run: sound\n")


def test_a_run_is_shown_with_keys_that_resolve_takes(cli: CommandRunner) -> None:
    perform(cli, "a")
    cli.add_run(run_id=RUN)
    key = next(word for word in cli.run("show", RUN).out.split() if word.startswith("feedface:a:"))
    result = cli.run("resolve", key, "--happened")
    assert "is completed; only calls in doubt" in result.err


def test_a_receipt_that_was_cut_off_is_found(cli: CommandRunner) -> None:
    perform(cli, "a", "b")
    with sqlite3.connect(cli.project / ".podium" / "podium.db") as database:
        database.execute("DELETE FROM receipts WHERE number = 2")
    database.close()
    result = cli.run("receipts", "verify", "--json")
    assert result.code == 1
    assert result.json["sound"] is False
    assert result.json["faults"][0]["run_id"] == RUN


@pytest.mark.soak
def test_followed_receipts_come_as_json_lines_until_interrupted(cli: CommandRunner) -> None:
    perform(cli, "a")
    following = subprocess.Popen(
        cli.command("receipts", "follow", "--json"),
        cwd=cli.project,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    try:
        # It follows from when it is ready, which nobody outside can see: so go on until it speaks.
        number = 0
        with selectors.DefaultSelector() as selector:
            selector.register(following.stdout, selectors.EVENT_READ)
            while not selector.select(timeout=0.2):
                number += 1
                perform(cli, f"f{number}")
        line = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        _, err = following.communicate(timeout=120)
    finally:
        following.kill()
        following.communicate()
    assert json.loads(line)["run_id"] == RUN
    assert following.returncode == 130
    assert err == "podium: interrupted\n"


@pytest.mark.parametrize("command", ["verify", "list", "follow"])
def test_looking_for_receipts_where_nothing_was_recorded_makes_nothing(
    cli: CommandRunner, command: str
) -> None:
    result = cli.run("receipts", command)
    assert result.code == (1 if command == "follow" else 0)
    assert list(cli.project.iterdir()) == []
    assert not cli.home.exists()


def test_missing_key_is_reported_as_missing_and_no_receipt_is_called_forged(
    cli: CommandRunner,
) -> None:
    perform(cli, "a")
    key = next(cli.home.rglob("receipt.key"))
    key.unlink()
    result = cli.run("receipts", "verify")
    assert (result.code, result.out) == (1, "")
    assert f"the key of the receipts is missing: '{key}'; restore it" in result.err
    assert not key.exists()


def test_verifying_a_record_without_receipts_makes_no_key(cli: CommandRunner) -> None:
    cli.add_run()
    assert cli.run("receipts", "verify").out == "0 receipts of 0 runs: sound\n"
    assert not list(cli.home.rglob("receipt.key"))


def test_a_lost_database_is_not_taken_for_a_sound_one(cli: CommandRunner) -> None:
    perform(cli, "a")
    for file in (cli.project / ".podium").glob("podium.db*"):
        file.unlink()
    assert cli.run("receipts", "verify").code == 1
