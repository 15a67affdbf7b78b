"""Lists of subcommands say all they have to say."""

from __future__ import annotations

import re

import pytest

from podium.cli.app import GROUPS, all_commands
from tests.integration.cli.command_runner import CommandRunner


def test_commands_are_listed_in_groups_with_the_job_of_a_newcomer_in_the_example(
    cli: CommandRunner,
) -> None:
    page = cli.run("--help", env={"COLUMNS": "100"}).out
    assert 'podium run "Fix the failing test"' in page.partition("Options:")[0]
    groups = {
        heading: re.findall(r"^  ([a-z]+)  ", lines, re.MULTILINE)
        for heading, lines in re.findall(r"^([A-Z][a-z ]+):\n((?:  .*\n)+)", page, re.MULTILINE)
    }
    assert tuple(groups)[1:] == GROUPS, "the first are the options"
    assert groups["Jobs"] == ["run", "intake", "ask", "sense", "playbook", "duet"]
    assert {name for names in groups.values() for name in names} == set(all_commands())
    assert all(command.help.endswith(".") for command in all_commands().values())


@pytest.mark.parametrize("command", ["workspaces", "agents"])
def test_a_group_of_commands_alone_lists_what_there_is(cli: CommandRunner, command: str) -> None:
    assert cli.run(command, "--json").json == cli.run(command, "list", "--json").json


@pytest.mark.parametrize(
    "command",
    [
        "workspaces",
        "receipts",
        "policy",
        "agents",
        "config",
        "db",
        "pack",
        "habits",
        "sense",
        "plan",
    ],
)
def test_a_list_of_subcommands_is_not_cut(cli: CommandRunner, command: str) -> None:
    result = cli.run(command, "--help", env={})
    assert result.code == 0
    listed = result.out.partition("Commands:")[2]
    assert listed.strip()
    assert "..." not in listed
