"""The pictures of the README: small, without traces of the machine, and compared with what a demo prints.

`tests/integration/cli/test_demo.py` compares them with a demo that it runs anyway.
"""

from __future__ import annotations

import re

from tests.pictures import CONSOLE, DEMO, MAX_BYTES, crop, draw, drawn_lines, not_printed

OUTPUT = """\
Created a sample project in /tmp/podium-demo-x1/shop; scripted agents play every role.

  $ podium run 'Discounts are wrong' --mode bugfix --wait

[14:00:01] PODIUM: Task received. Run 80e104d8.

  $ kill -9 3641    # in the middle of the developer's turn

[14:00:14] PODIUM: Denied DEVELOPER: run_command git checkout main (1.4 s, $0.0041)
[14:00:15] PODIUM: Pipeline success! Branch 'task/x-80e104' is ready: /tmp/podium-demo-x1/shop/a.md
checks on a92930b  `python3 -m unittest -q` exit 0 (1.4 s)
pull request       /tmp/podium-demo-x1/shop/a.md (deleted with the sample; keep it with `podium demo --keep DIR`)

1 REJECT; delivered in 118.5 s.
"""


def test_pictures_are_small() -> None:
    assert DEMO.stat().st_size + CONSOLE.stat().st_size <= MAX_BYTES


def test_the_picture_of_the_demo_names_no_machine_and_loads_nothing() -> None:
    svg = DEMO.read_text()
    assert re.findall(r"/(?:work|home|root|Users)/|podium-demo-|url\([\"']?http|<script", svg) == []


def test_a_picture_shows_the_command_the_end_and_what_lies_between_the_kill_and_the_delivery() -> (
    None
):
    lines = drawn_lines(draw(crop(OUTPUT)))
    assert lines[0] == "  $ podium run 'Discounts are wrong' --mode bugfix --wait"
    assert lines.count("⋮") == 2
    assert "Task received" not in "\n".join(lines)
    assert "pull request       /tmp/demo/shop/a.md …" in lines
    assert lines[-1] == "1 REJECT; delivered in 118.5 s."


def test_times_ids_and_costs_may_differ_and_everything_else_may_not() -> None:
    drawn = drawn_lines(draw(crop(OUTPUT)))
    again = (
        OUTPUT.replace("14:00:14", "23:59:59")
        .replace("80e104", "abcdef")
        .replace("/tmp/podium-demo-x1/shop", "/srv/a/sample")
        .replace("$0.0041", "$1.20")
        .replace("118.5 s", "9 s")
        .replace("kill -9 3641", "kill -9 7")
    )
    assert not_printed(drawn, again) == []
    (changed,) = not_printed(drawn, OUTPUT.replace("  $ kill -9", "  $ kill -15"))
    assert changed.startswith("  $ kill -9 3641")


def test_a_picture_with_lines_in_another_order_is_noticed() -> None:
    drawn = drawn_lines(draw(crop(OUTPUT)))
    assert not_printed([*drawn[::-1]], OUTPUT) != []
