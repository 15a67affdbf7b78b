"""First commands that a newcomer tries: the example, a worker."""

from __future__ import annotations

from tests.integration.cli.desk import Desk


def test_the_example_of_init_is_rehearsed_at_once(desk: Desk) -> None:
    assert "next: podium rehearse" in desk.run("init", "--example").out
    said = desk.run("rehearse", "--json")
    assert said.code == 0, said.err
    assert (desk.project / "hello.txt").read_text() == "Hello from a rehearsal.\n"


def test_a_worker_that_had_nothing_to_do_says_so_in_json(desk: Desk) -> None:
    said = desk.run("worker", "--once", "--json")
    assert (said.code, said.json) == (0, {"queues": ["default"], "runs": []})
