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
from tests.integration.cli.command_runner import CommandRunner

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


def test_json_hides_nothing_either_and_means_the_same(cli: CommandRunner) -> None:
    assert escaped_json('"\u202e\U000e0041"') == '"\\u202e\\udb40\\udc41"'
    cli.add_run(task="a\u202eb\x9b2J")
    result = cli.run("runs", "--json")
    assert "\u202e" not in result.out
    assert result.json["runs"][0]["task"] == "a\u202eb\x9b2J"


def asked_of(cli: CommandRunner, run: Run, **arguments: Json) -> Approval:
    now = datetime.now(UTC)
    return Approval(
        id=cli.ids.new("apr"),
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


def keep(cli: CommandRunner, *approvals: Approval) -> None:
    async def work(podium: Podium) -> None:
        def add(tx: Transaction) -> None:
            for approval in approvals:
                tx.save_approval(approval)

        await (await podium.store()).write(add)

    cli.within(work)


def ask(cli: CommandRunner, run: Run, **arguments: Json) -> Approval:
    made = asked_of(cli, run, **arguments)
    keep(cli, made)
    return made


@pytest.mark.parametrize(
    "command", [("approvals",), ("approve",), ("reject", "--why", "no\x1b[1m way")]
)
def test_an_approval_is_shown_with_everything_in_it(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    asked = ask(cli, cli.add_run(), path="a.txt", content=HIDDEN)
    out = cli.run(command[0], short_id(asked.id), *command[1:]).out
    assert "    content: \n      first\n      \\x1b[2Jrm \\u202e-rf\\u200b /\n      last\n" in out
    assert "  T3: zone 'production'" in out
    assert "writes /real/a.txt" in out
    assert "deadline" in out
    assert "approvers    anybody" in out
    assert asked.id in out


def test_an_approval_is_given_whole_in_json(cli: CommandRunner) -> None:
    asked = ask(cli, cli.add_run(), content=HIDDEN)
    found = cli.run("approvals", asked.id, "--json").json["approval"]
    assert found["arguments"]["content"] == HIDDEN
    assert cli.run("approvals", "deadbeef").code == 2


def test_lists_write_out_what_cannot_be_seen(cli: CommandRunner) -> None:
    run = cli.add_run()
    ask(cli, run, content=HIDDEN)
    for item in (cli.run("approvals"), cli.run("show", run.id)):
        assert "\\u202e-rf\\u200b" in item.out


def test_a_list_says_how_many_approvals_it_leaves_out(cli: CommandRunner) -> None:
    run = cli.add_run()
    keep(cli, *(asked_of(cli, run, path=f"file-{number}") for number in range(203)))
    result = cli.run("approvals")
    assert result.out.count("file-") == 200
    assert "and 3 older ones" in result.err
    assert cli.run("approvals", "--json").json["more"] == 3


def test_what_is_trusted_is_shown_with_everything_in_it(cli: CommandRunner) -> None:
    cli.says('agents: {dev: {kind: scripted, command: ["./tool", "a\\u202eb"]}}\n')
    assert "a\\u202eb" in cli.run("trust", "--show").out


@pytest.mark.parametrize("command", [("approve",), ("reject", "--why", "no")])
def test_an_answer_says_how_a_run_that_nobody_hosts_goes_on(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    run = cli.add_run()
    first, second = ask(cli, run, path="a"), ask(cli, run, path="b")
    result = cli.run(command[0], first.id, *command[1:])
    assert f"continue it with `podium resume {short_id(run.id)}`" in result.err
    record = cli.run(command[0], second.id, *command[1:], "--json").json
    assert record["hosted"] is False
    assert "podium resume" in record["next"]
