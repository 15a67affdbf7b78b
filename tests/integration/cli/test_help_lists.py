"""Lists of subcommands say all they have to say."""

from __future__ import annotations

import pytest

from tests.integration.cli.desk import Desk


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
def test_a_list_of_subcommands_is_not_cut(desk: Desk, command: str) -> None:
    said = desk.run(command, "--help", env={})
    assert said.code == 0
    listed = said.out.partition("Commands:")[2]
    assert listed.strip()
    assert "..." not in listed
