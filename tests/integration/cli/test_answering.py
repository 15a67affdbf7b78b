"""Complete display of an approval's content, and instructions for continuing the run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from podium.app.app import Podium
from podium.core.decisions import Approval, Tier, TierTerm
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import Run
from podium.ports import Transaction
from podium.render.text import escaped_json, escaped_line, escaped_text
from tests.integration.cli.desk import Desk

HIDDEN = "first\n\x1b[2Jrm \u202e-rf\u200b /\nlast"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\r\nb", "a\\r\nb"),
        ("no\u00a0break", "no\\xa0break"),
        ("filler\u3164", "filler\\u3164"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("half\ud800", "half\\ud800"),
        ("Grüße, 世界 🎼\ttab\n", "Grüße, 世界 🎼\ttab\n"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert escaped_text(text) == shown


def test_on_one_line_ends_of_lines_are_written_out_too() -> None:
    assert escaped_line("a\nb\tc") == "a\\nb\\tc"
    assert escaped_line("abcdef", 4) == "abc…"


def test_json_hides_nothing_either_and_means_the_same(desk: Desk) -> None:
    assert escaped_json('"\u202e\U000e0041"') == '"\\u202e\\udb40\\udc41"'
    desk.add_run(task="a\u202eb\x9b2J")
    said = desk.run("runs", "--json")
    assert "\u202e" not in said.out
    assert said.json["runs"][0]["task"] == "a\u202eb\x9b2J"


def asked_of(desk: Desk, run: Run, **arguments: Json) -> Approval:
    now = datetime.now(UTC)
    return Approval(
        id=desk.ids.new("apr"),
        run_id=run.id,
        call_key=f"{run.id}:act:0",
        digest="sha256:x",
        tool="write_file",
        summary="write_file\n  path: a.txt\n  writes /real/a.txt",
        arguments=arguments,
        tier=Tier.T3,
        arithmetic=(TierTerm(tier=Tier.T3, because="zone 'production'"),),
        requested_at=now,
        deadline=now + timedelta(hours=1),
    )


def keep(desk: Desk, *approvals: Approval) -> None:
    async def work(podium: Podium) -> None:
        def add(tx: Transaction) -> None:
            for each in approvals:
                tx.save_approval(each)

        await (await podium.store()).write(add)

    desk.within(work)


def ask(desk: Desk, run: Run, **arguments: Json) -> Approval:
    made = asked_of(desk, run, **arguments)
    keep(desk, made)
    return made


@pytest.mark.parametrize(
    "command", [("approvals",), ("approve",), ("reject", "--why", "no\x1b[1m way")]
)
def test_an_approval_is_shown_with_everything_in_it(desk: Desk, command: tuple[str, ...]) -> None:
    asked = ask(desk, desk.add_run(), path="a.txt", content=HIDDEN)
    out = desk.run(command[0], short_id(asked.id), *command[1:]).out
    assert "    content: \n      first\n      \\x1b[2Jrm \\u202e-rf\\u200b /\n      last\n" in out
    assert "  T3: zone 'production'" in out
    assert "writes /real/a.txt" in out
    assert "deadline" in out
    assert "approvers    anybody" in out
    assert asked.id in out


def test_an_approval_is_given_whole_in_json(desk: Desk) -> None:
    asked = ask(desk, desk.add_run(), content=HIDDEN)
    found = desk.run("approvals", asked.id, "--json").json["approval"]
    assert found["arguments"]["content"] == HIDDEN
    assert desk.run("approvals", "deadbeef").code == 2


def test_lists_write_out_what_cannot_be_seen(desk: Desk) -> None:
    run = desk.add_run()
    ask(desk, run, content=HIDDEN)
    for said in (desk.run("approvals"), desk.run("show", run.id)):
        assert "\\u202e-rf\\u200b" in said.out


def test_a_list_says_how_many_approvals_it_leaves_out(desk: Desk) -> None:
    run = desk.add_run()
    keep(desk, *(asked_of(desk, run, path=f"file-{number}") for number in range(203)))
    said = desk.run("approvals")
    assert said.out.count("file-") == 200
    assert "and 3 older ones" in said.err
    assert desk.run("approvals", "--json").json["more"] == 3


def test_what_is_trusted_is_shown_with_everything_in_it(desk: Desk) -> None:
    desk.says('agents: {dev: {kind: scripted, command: ["./tool", "a\\u202eb"]}}\n')
    assert "a\\u202eb" in desk.run("trust", "--show").out


@pytest.mark.parametrize("command", [("approve",), ("reject", "--why", "no")])
def test_an_answer_says_how_a_run_that_nobody_hosts_goes_on(
    desk: Desk, command: tuple[str, ...]
) -> None:
    run = desk.add_run()
    first, second = ask(desk, run, path="a"), ask(desk, run, path="b")
    said = desk.run(command[0], first.id, *command[1:])
    assert f"continue it with `podium resume {short_id(run.id)}`" in said.err
    record = desk.run(command[0], second.id, *command[1:], "--json").json
    assert record["hosted"] is False
    assert "podium resume" in record["next"]
