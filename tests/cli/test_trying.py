"""What a newcomer tries first: the example, the demo, a worker."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from podium.testing import retry_until_blocking
from tests.cli.desk import Desk


def test_the_example_of_init_is_rehearsed_at_once(desk: Desk) -> None:
    assert "next: podium rehearse" in desk.run("init", "--example").out
    said = desk.run("rehearse", "--json")
    assert said.code == 0, said.err
    assert (desk.project / "hello.txt").read_text() == "Hello from a rehearsal.\n"


def test_a_kept_sample_is_proved_with_the_persons_own_home(desk: Desk) -> None:
    said = desk.spawn("demo", "--keep", "sample")
    assert said.code == 0, said.err
    program = Path(desk.command()[0])
    assert f"Look around: cd sample && {program} show run_" in said.out
    assert desk.spawn("receipts", "verify", "--project", "sample").code == 0


def test_a_sample_that_cannot_be_kept_is_refused_in_words(desk: Desk) -> None:
    said = desk.run("demo", "--keep", "/proc/sample")
    assert said.code == 2
    assert "'/proc/sample' cannot be made: " in said.err


def test_an_interrupted_demo_leaves_no_folder_behind(desk: Desk, tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    demo = subprocess.Popen(
        desk.command("demo"),
        env={**desk.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        retry_until_blocking(
            lambda: list(place.glob("podium-demo-*/.podium/podium.db")), seconds=30
        )
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=30)
    finally:
        demo.kill()
        demo.communicate()
    assert demo.returncode == 130
    assert err == b"podium: interrupted\n"
    assert not list(place.glob("podium-demo-*"))


def test_a_worker_that_had_nothing_to_do_says_so_in_json(desk: Desk) -> None:
    said = desk.run("worker", "--once", "--json")
    assert (said.code, said.json) == (0, {"queues": ["default"], "runs": []})
