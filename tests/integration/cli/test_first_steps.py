"""First commands that a newcomer tries: the example, a worker."""

from __future__ import annotations

from tests.integration.cli.command_runner import CommandRunner


def test_the_example_of_init_is_rehearsed_at_once(cli: CommandRunner) -> None:
    assert "next: podium rehearse" in cli.run("init", "--example").out
    result = cli.run("rehearse", "--json")
    assert result.code == 0, result.err
    assert (cli.project / "hello.txt").read_text() == "Hello from a rehearsal.\n"


def test_a_worker_that_had_nothing_to_do_says_so_in_json(cli: CommandRunner) -> None:
    result = cli.run("worker", "--once", "--json")
    assert (result.code, result.json) == (0, {"queues": ["default"], "runs": []})
