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
from tests.integration.cli.desk import Desk
from tests.integration.cli.sense_rig import INBOX, delivered, lay_out, ticked

SECONDS = 200.0


def put_order(desk: Desk, wo_id: str, *, path: str = "") -> None:
    order = {
        "id": wo_id,
        "title": f"Note {wo_id}",
        "ops": [{"op": "write", "path": path or f"g/reports/{wo_id}.txt", "content": wo_id}],
    }
    # JSON is YAML, too.
    (desk.project / INBOX / f"{wo_id}.yaml").write_text(json.dumps(order))


def ack(desk: Desk, wo_id: str) -> dict[str, object]:
    file = desk.project / "bridge/outbox/LIAM" / f"{wo_id}.ack.json"
    return dict(json.loads(file.read_text()))


def test_once_the_inbox_is_drained_and_every_order_answered_and_put_away(desk: Desk) -> None:
    lay_out(desk)
    wanted = [f"WO-{number}" for number in range(3)]
    for wo_id in wanted:
        put_order(desk, wo_id)
    put_order(desk, "WO-BAD", path="CLC/core.md")
    torn = desk.project / INBOX / "torn.yaml"
    torn.write_text("id: [")
    os.utime(torn, (0, 0))  # else it may still be written, and is left alone for a moment
    said = desk.run("worker", "--once", "--json")
    assert said.code == 1, said.err
    told = {each["wo_id"]: each for each in said.json["runs"]}
    assert set(told) == {*wanted, "WO-BAD", "torn.yaml"}
    assert "'WO-BAD' is refused: op 1 (write CLC/core.md)" in told["WO-BAD"]["reason"]
    assert "reason" not in told["WO-0"]
    for each in told.values():
        assert f"\n{short_id(each['id'])} " in said.err, "its lines say whose they are"
    assert delivered(desk) == []
    assert [ack(desk, wo_id)["status"] for wo_id in wanted] == ["done"] * 3
    assert [(desk.project / f"g/reports/{each}.txt").read_text() for each in wanted] == wanted
    assert ack(desk, "WO-BAD")["status"] == "refused"
    assert [each["status"] for each in said.json["runs"]].count("succeeded") == 3
    done = sorted(path.name.partition(".")[0] for path in put_away(desk, "done"))
    assert done == wanted
    assert {"WO-BAD", "torn"} == {path.name.partition(".")[0] for path in put_away(desk, "parked")}


def test_once_leaves_at_a_far_timer_and_tells_by_its_code_that_people_are_waited_for(
    desk: Desk,
) -> None:
    lay_out(desk, mode="supervised", more="    orders_per_hour: 1\n", failing=("opal_api", "redis"))
    first, second = (each["wo_id"] for each in ticked(desk)["candidates"])
    assert desk.run("deploy", first).code == 0
    assert desk.run("deploy", second).code == 3, "beyond the quota of the hour"
    said = desk.run("worker", "--once", "--json")
    assert said.code == 3, "an order in words waits for its operations"
    (order,) = (each for each in said.json["runs"] if each["wo_id"] == first)
    assert order["status"] == "needs_human"
    assert "has no `ops`" in order["reason"]
    assert desk.run("worker", "--once").code == 0, "it worked on nothing"


def test_an_order_that_was_cancelled_is_cleared_by_the_next_worker(desk: Desk) -> None:
    lay_out(desk)
    words = {"id": "WO-1", "title": "In words", "tasks": ["do it"]}
    (desk.project / INBOX / "WO-1.yaml").write_text(json.dumps(words))
    said = desk.run("worker", "--once", "--json")
    assert desk.run("cancel", said.json["runs"][0]["id"]).code == 0
    assert desk.run("worker", "--once").code == 0
    assert ack(desk, "WO-1")["status"] == "parked"
    assert put_away(desk, "claimed") == []


def put_away(desk: Desk, shelf: str) -> list[Path]:
    return list((desk.project / "bridge" / shelf / "CLC").iterdir())


def test_a_worker_of_other_queues_leaves_the_inbox_alone(desk: Desk) -> None:
    lay_out(desk)
    put_order(desk, "WO-1")
    assert desk.run("worker", "--once", "--queue", "default").code == 0
    assert delivered(desk) == ["WO-1.yaml"]
    assert desk.run("worker", "--once", "--queue", "orders").code == 0
    assert delivered(desk) == []


@pytest.mark.soak
def test_an_inbox_that_cannot_be_read_is_told_and_tended_again_when_it_can(
    desk: Desk, tmp_path: Path
) -> None:
    lay_out(desk)
    inbox, away, heard = desk.project / INBOX, tmp_path / "away", tmp_path / "heard"
    with (
        heard.open("w") as said,
        subprocess.Popen(
            desk.command("worker"), cwd=desk.project, env=desk.environ, stderr=said
        ) as worker,
    ):
        try:
            retry_until_blocking(lambda: "serving " in heard.read_text(), SECONDS)
            inbox.rename(away)
            inbox.write_text("no folder")
            retry_until_blocking(lambda: "podium: inbox: " in heard.read_text(), SECONDS)
            inbox.unlink()
            away.rename(inbox)
            put_order(desk, "WO-LATER")
            acks = desk.project / "bridge/outbox/LIAM"
            retry_until_blocking(lambda: list(acks.glob("WO-LATER*")), SECONDS)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(SECONDS) == 130
        finally:
            worker.kill()
    assert heard.read_text().count("put a real folder there") == 1


def test_what_cannot_be_an_order_is_left_in_the_inbox_and_told(desk: Desk) -> None:
    lay_out(desk)
    (desk.project / INBOX / "WO-LINK.yaml").symlink_to(desk.project / "podium.yaml")
    (desk.project / INBOX / "WO-2.json").write_text("{}")
    said = desk.run("worker", "--once")
    assert said.code == 0
    assert "left in the inbox: 'WO-2.json': work orders are YAML files; use a name" in said.err
    assert said.err.count("podium: left in the inbox: 'WO-LINK.yaml': ") == 1
    assert delivered(desk) == ["WO-2.json", "WO-LINK.yaml"]
