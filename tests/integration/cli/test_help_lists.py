"""Lists of subcommands say all they have to say."""

from __future__ import annotations

import subprocess
import sys

import pytest


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
def test_a_list_of_subcommands_is_not_cut(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "podium", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    listed = done.stdout.partition("Commands:")[2]
    assert listed.strip()
    assert "..." not in listed
