"""`podium worker` at the inbox of work orders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from podium.testing import retry_until_blocking
from tests.cli.desk import Desk
from tests.cli.sense_rig import INBOX, delivered, lay_out

SECONDS = 60.0


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
    assert said.code == 0, said.err
    assert len(said.json["runs"]) == 5
    assert delivered(desk) == []
    assert [ack(desk, wo_id)["status"] for wo_id in wanted] == ["done"] * 3
    assert [(desk.project / f"g/reports/{each}.txt").read_text() for each in wanted] == wanted
    assert ack(desk, "WO-BAD")["status"] == "refused"
    assert [each["status"] for each in said.json["runs"]].count("succeeded") == 3
    done = sorted(path.name.partition(".")[0] for path in put_away(desk, "done"))
    assert done == wanted
    assert {"WO-BAD", "torn"} == {path.name.partition(".")[0] for path in put_away(desk, "parked")}


def put_away(desk: Desk, shelf: str) -> list[Path]:
    return list((desk.project / "bridge" / shelf / "CLC").iterdir())


def test_a_worker_of_other_queues_leaves_the_inbox_alone(desk: Desk) -> None:
    lay_out(desk)
    put_order(desk, "WO-1")
    assert desk.run("worker", "--once", "--queue", "default").code == 0
    assert delivered(desk) == ["WO-1.yaml"]
    assert desk.run("worker", "--once", "--queue", "orders").code == 0
    assert delivered(desk) == []


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
    said = desk.run("worker", "--once")
    assert said.code == 0
    assert said.err.count("podium: left in the inbox: 'WO-LINK.yaml': ") == 1
    assert delivered(desk) == ["WO-LINK.yaml"]
