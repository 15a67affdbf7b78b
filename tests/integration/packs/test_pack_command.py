"""`podium pack` at the door."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.unit.packs.bikes import registry_with, write_pack


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, cli.environ[name])
    monkeypatch.chdir(cli.project)
    return cli


def test_sound_pack_is_reported_in_one_line(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes")

    result = cli.run("pack", "check", "packs/bikes")

    assert (result.code, result.out) == (0, "packs/bikes: sound; 4 tools, 1 skill\n")


def test_every_fault_has_a_line_and_the_exit_code_is_2(cli: CommandRunner) -> None:
    registry = registry_with("/tools/0/undo", "repair.forget")
    registry["tools"][2]["tier"] = "T1"
    write_pack(cli.project / "packs/bikes", registry)

    result = cli.run("pack", "check", "packs/bikes")
    as_json = cli.run("pack", "check", "bikes", "--json")

    assert result.code == as_json.code == 2
    first, second = result.out.splitlines()
    assert first.startswith("packs/bikes/tools.registry.json:")
    assert ": /tools/0/undo: this registry has no tool 'repair.forget'" in first
    assert ": /tools/2/tier: T1 is below T2" in second
    assert "2 problems" in result.err
    assert [fault["pointer"] for fault in as_json.json["faults"]] == [
        "/tools/0/undo",
        "/tools/2/tier",
    ]
    assert as_json.json["sound"] is False


def test_escapes_in_a_registry_do_not_reach_the_terminal(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes", registry_with("/tools/0/tier", "T1\x1b[2J"))

    assert "\x1b" not in cli.run("pack", "check", "bikes").out


def test_missing_pack_is_reported_with_those_available(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes")

    result = cli.run("pack", "check", "rockets")

    assert result.code == 2
    assert "unknown pack 'rockets'; packs: bikes" in result.err


def test_show_names_tier_domain_undo_and_an_example_of_every_tool(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes")

    rows = {
        line.split()[0]: line.split()
        for line in cli.run("pack", "show", "bikes").out.splitlines()
        if line
    }
    shown = cli.run("pack", "show", "bikes", "--json").json

    assert rows["repair.book"][1:4] == ["T1", "repair", "repair.drop"]
    assert rows["skill"][1:] == ["repair.with_part:", "repair.book", "→", "parts.order"]
    assert shown["tools"][0]["example"] == "book in a Brompton for Kim"
    assert shown["tools"][2]["because"] == "domain parts (parts.*) is T2 by default"


def test_a_new_pack_is_listed_as_not_trusted_until_it_is_and_after_an_edit(
    cli: CommandRunner,
) -> None:
    def digest() -> str:
        rows = cli.run("pack", "list", "--json").json["packs"]
        return str(next(row["stands"] for row in rows if row["name"] == "bikes"))

    made = cli.run("pack", "new", "packs/bikes")
    assert made.code == 0, made.err
    assert digest() == "not trusted"

    trusted = cli.run("pack", "trust", "bikes")
    assert "runs python handlers" in trusted.out
    assert digest() == "ready"

    file = cli.project / "packs/bikes/handlers.py"
    file.write_text(file.read_text() + "# more\n")
    assert digest() == "not trusted"

    cli.run("pack", "trust", "bikes")
    cli.run("pack", "trust", "bikes", "--forget")
    assert digest() == "not trusted"


def test_a_broken_pack_is_listed_as_broken(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes", "{")

    result = cli.run("pack", "list")

    assert result.code == 0
    (row,) = [line for line in result.out.splitlines() if line.startswith("bikes")]
    assert "broken" in row


def test_looking_at_packs_makes_nothing(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes")

    for words in (("list",), ("check", "bikes"), ("show", "bikes")):
        cli.run("pack", *words)

    assert [path.name for path in cli.project.iterdir()] == ["packs"]
    assert not cli.home.exists()
