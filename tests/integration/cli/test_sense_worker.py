"""`podium worker` at the inbox of work orders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from podium.core.ids import short_id
from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.sense_harness import INBOX, delivered, lay_out, ticked

SECONDS = 200.0


def put_order(cli: CommandRunner, wo_id: str, *, path: str = "") -> None:
    order = {
        "id": wo_id,
        "title": f"Note {wo_id}",
        "ops": [{"op": "write", "path": path or f"g/reports/{wo_id}.txt", "content": wo_id}],
    }
    # JSON is YAML, too.
    (cli.project / INBOX / f"{wo_id}.yaml").write_text(json.dumps(order))


def ack(cli: CommandRunner, wo_id: str) -> dict[str, object]:
    file = cli.project / "bridge/outbox/LIAM" / f"{wo_id}.ack.json"
    return dict(json.loads(file.read_text()))


def test_once_the_inbox_is_drained_and_every_order_answered_and_put_away(
    cli: CommandRunner,
) -> None:
    lay_out(cli)
    wanted = [f"WO-{number}" for number in range(3)]
    for wo_id in wanted:
        put_order(cli, wo_id)
    put_order(cli, "WO-BAD", path="CLC/core.md")
    torn = cli.project / INBOX / "torn.yaml"
    torn.write_text("id: [")
    os.utime(torn, (0, 0))  # else it may still be written, and is left alone for a moment
    result = cli.run("worker", "--once", "--json")
    assert result.code == 1, result.err
    payload = {run["wo_id"]: run for run in result.json["runs"]}
    assert set(payload) == {*wanted, "WO-BAD", "torn.yaml"}
    assert "'WO-BAD' is refused: op 1 (write CLC/core.md)" in payload["WO-BAD"]["reason"]
    assert "reason" not in payload["WO-0"]
    for item in payload.values():
        assert f"\n{short_id(item['id'])} " in result.err, "its lines say whose they are"
    assert delivered(cli) == []
    assert [ack(cli, wo_id)["status"] for wo_id in wanted] == ["done"] * 3
    assert [(cli.project / f"g/reports/{item}.txt").read_text() for item in wanted] == wanted
    assert ack(cli, "WO-BAD")["status"] == "refused"
    assert [run["status"] for run in result.json["runs"]].count("succeeded") == 3
    done = sorted(path.name.partition(".")[0] for path in put_away(cli, "done"))
    assert done == wanted
    assert {"WO-BAD", "torn"} == {path.name.partition(".")[0] for path in put_away(cli, "parked")}


def test_once_leaves_at_a_far_timer_and_its_exit_code_shows_that_people_are_waited_for(
    cli: CommandRunner,
) -> None:
    lay_out(cli, mode="supervised", more="    orders_per_hour: 1\n", failing=("opal_api", "redis"))
    first, second = (candidate["wo_id"] for candidate in ticked(cli)["candidates"])
    assert cli.run("deploy", first).code == 0
    assert cli.run("deploy", second).code == 3, "beyond the quota of the hour"
    result = cli.run("worker", "--once", "--json")
    assert result.code == 3, "an order in words waits for its operations"
    (order,) = (run for run in result.json["runs"] if run["wo_id"] == first)
    assert order["status"] == "needs_human"
    assert "has no `ops`" in order["reason"]
    assert cli.run("worker", "--once").code == 0, "it worked on nothing"


def test_an_order_that_was_cancelled_is_cleared_by_the_next_worker(cli: CommandRunner) -> None:
    lay_out(cli)
    words = {"id": "WO-1", "title": "In words", "tasks": ["do it"]}
    (cli.project / INBOX / "WO-1.yaml").write_text(json.dumps(words))
    result = cli.run("worker", "--once", "--json")
    assert cli.run("cancel", result.json["runs"][0]["id"]).code == 0
    assert cli.run("worker", "--once").code == 0
    assert ack(cli, "WO-1")["status"] == "parked"
    assert put_away(cli, "claimed") == []


def put_away(cli: CommandRunner, shelf: str) -> list[Path]:
    return list((cli.project / "bridge" / shelf / "CLC").iterdir())


def test_a_worker_of_other_queues_leaves_the_inbox_alone(cli: CommandRunner) -> None:
    lay_out(cli)
    put_order(cli, "WO-1")
    assert cli.run("worker", "--once", "--queue", "default").code == 0
    assert delivered(cli) == ["WO-1.yaml"]
    assert cli.run("worker", "--once", "--queue", "orders").code == 0
    assert delivered(cli) == []


@pytest.mark.soak
def test_unreadable_inbox_is_reported_and_tended_again_when_possible(
    cli: CommandRunner, tmp_path: Path
) -> None:
    lay_out(cli)
    inbox, away, output = cli.project / INBOX, tmp_path / "away", tmp_path / "heard"
    with (
        output.open("w") as messages,
        subprocess.Popen(
            cli.command("worker"), cwd=cli.project, env=cli.environ, stderr=messages
        ) as worker,
    ):
        try:
            retry_until_blocking(lambda: "serving " in output.read_text(), SECONDS)
            inbox.rename(away)
            inbox.write_text("no folder")
            retry_until_blocking(lambda: "podium: inbox: " in output.read_text(), SECONDS)
            inbox.unlink()
            away.rename(inbox)
            put_order(cli, "WO-LATER")
            acks = cli.project / "bridge/outbox/LIAM"
            retry_until_blocking(lambda: list(acks.glob("WO-LATER*")), SECONDS)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(SECONDS) == 130
        finally:
            worker.kill()
    assert output.read_text().count("put a real folder there") == 1


def test_file_that_cannot_be_an_order_is_left_in_the_inbox_and_reported(cli: CommandRunner) -> None:
    lay_out(cli)
    (cli.project / INBOX / "WO-LINK.yaml").symlink_to(cli.project / "podium.yaml")
    (cli.project / INBOX / "WO-2.json").write_text("{}")
    result = cli.run("worker", "--once")
    assert result.code == 0
    assert "left in the inbox: 'WO-2.json': work orders are YAML files; use a name" in result.err
    assert result.err.count("podium: left in the inbox: 'WO-LINK.yaml': ") == 1
    assert delivered(cli) == ["WO-2.json", "WO-LINK.yaml"]
