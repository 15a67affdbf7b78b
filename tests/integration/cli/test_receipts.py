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
from tests.integration.cli.desk import Desk

RUN = "run_00000000000070008000feedface0001"


def perform(desk: Desk, *names: str, run_id: str = RUN) -> None:
    async def work(podium: Podium) -> None:
        toolbox = await podium.toolbox()
        for name in names:
            arguments = {"path": name, "content": "x"}
            call = toolbox.normalise("write_file", arguments, run_id=run_id, step_key=name, index=0)
            assert isinstance(await toolbox.perform(call), CallOutcome)

    desk.within(work)


def test_receipts_are_listed_and_proved(desk: Desk) -> None:
    perform(desk, "a", "b")
    desk.add_run(run_id=RUN)
    listed = desk.run("receipts", "list", "feedface", "--json").json["receipts"]
    assert [(receipt["number"], receipt["tool"]) for receipt in listed] == [
        (1, "write_file"),
        (2, "write_file"),
    ]
    said = desk.run("receipts", "verify")
    assert (said.code, said.out) == (0, "2 receipts of 1 run: sound\n")


def test_a_run_is_shown_with_keys_that_resolve_takes(desk: Desk) -> None:
    perform(desk, "a")
    desk.add_run(run_id=RUN)
    key = next(word for word in desk.run("show", RUN).out.split() if word.startswith("feedface:a:"))
    said = desk.run("resolve", key, "--happened")
    assert "is completed; only calls in doubt" in said.err


def test_a_receipt_that_was_cut_off_is_found(desk: Desk) -> None:
    perform(desk, "a", "b")
    with sqlite3.connect(desk.project / ".podium" / "podium.db") as database:
        database.execute("DELETE FROM receipts WHERE number = 2")
    database.close()
    said = desk.run("receipts", "verify", "--json")
    assert said.code == 1
    assert said.json["sound"] is False
    assert said.json["faults"][0]["run_id"] == RUN


@pytest.mark.soak
def test_followed_receipts_come_as_json_lines_until_interrupted(desk: Desk) -> None:
    perform(desk, "a")
    following = subprocess.Popen(
        desk.command("receipts", "follow", "--json"),
        cwd=desk.project,
        env=desk.environ,
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
                perform(desk, f"f{number}")
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
    desk: Desk, command: str
) -> None:
    said = desk.run("receipts", command)
    assert said.code == (1 if command == "follow" else 0)
    assert list(desk.project.iterdir()) == []
    assert not desk.home.exists()


def test_a_missing_key_is_said_to_be_missing_and_no_receipt_called_forged(desk: Desk) -> None:
    perform(desk, "a")
    key = next(desk.home.rglob("receipt.key"))
    key.unlink()
    said = desk.run("receipts", "verify")
    assert (said.code, said.out) == (1, "")
    assert f"the key of the receipts is missing: '{key}'; restore it" in said.err
    assert not key.exists()


def test_verifying_a_record_without_receipts_makes_no_key(desk: Desk) -> None:
    desk.add_run()
    assert desk.run("receipts", "verify").out == "0 receipts of 0 runs: sound\n"
    assert not list(desk.home.rglob("receipt.key"))


def test_a_lost_database_is_not_taken_for_a_sound_one(desk: Desk) -> None:
    perform(desk, "a")
    for file in (desk.project / ".podium").glob("podium.db*"):
        file.unlink()
    assert desk.run("receipts", "verify").code == 1
