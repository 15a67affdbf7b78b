"""`podium pack` at the door."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.desk import Desk
from tests.unit.packs.bikes import registry_with, write_pack


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    desk = Desk(tmp_path, capsys)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, desk.environ[name])
    monkeypatch.chdir(desk.project)
    return desk


def test_a_sound_pack_is_told_in_a_line(desk: Desk) -> None:
    write_pack(desk.project / "packs/bikes")

    said = desk.run("pack", "check", "packs/bikes")

    assert (said.code, said.out) == (0, "packs/bikes: sound; 4 tools, 1 skill\n")


def test_every_fault_has_a_line_and_the_exit_code_is_2(desk: Desk) -> None:
    registry = registry_with("/tools/0/undo", "repair.forget")
    registry["tools"][2]["tier"] = "T1"
    write_pack(desk.project / "packs/bikes", registry)

    said = desk.run("pack", "check", "packs/bikes")
    as_json = desk.run("pack", "check", "bikes", "--json")

    assert said.code == as_json.code == 2
    first, second = said.out.splitlines()
    assert first.startswith("packs/bikes/tools.registry.json:")
    assert ": /tools/0/undo: this registry has no tool 'repair.forget'" in first
    assert ": /tools/2/tier: T1 is below T2" in second
    assert "2 problems" in said.err
    assert [fault["pointer"] for fault in as_json.json["faults"]] == [
        "/tools/0/undo",
        "/tools/2/tier",
    ]
    assert as_json.json["sound"] is False


def test_escapes_in_a_registry_do_not_reach_the_terminal(desk: Desk) -> None:
    write_pack(desk.project / "packs/bikes", registry_with("/tools/0/tier", "T1\x1b[2J"))

    assert "\x1b" not in desk.run("pack", "check", "bikes").out


def test_a_pack_that_is_not_there_is_told_with_those_that_are(desk: Desk) -> None:
    write_pack(desk.project / "packs/bikes")

    said = desk.run("pack", "check", "rockets")

    assert said.code == 2
    assert "unknown pack 'rockets'; packs: bikes" in said.err


def test_show_names_tier_domain_undo_and_an_example_of_each_tool(desk: Desk) -> None:
    write_pack(desk.project / "packs/bikes")

    rows = {
        line.split()[0]: line.split()
        for line in desk.run("pack", "show", "bikes").out.splitlines()
        if line
    }
    shown = desk.run("pack", "show", "bikes", "--json").json

    assert rows["repair.book"][1:4] == ["T1", "repair", "repair.drop"]
    assert rows["skill"][1:] == ["repair.with_part:", "repair.book", "→", "parts.order"]
    assert shown["tools"][0]["example"] == "book in a Brompton for Kim"
    assert shown["tools"][2]["because"] == "domain parts (parts.*) is T2 by default"


def test_a_new_pack_is_listed_as_not_trusted_until_it_is_and_after_an_edit(desk: Desk) -> None:
    def stands() -> str:
        rows = desk.run("pack", "list", "--json").json["packs"]
        return str(next(row["stands"] for row in rows if row["name"] == "bikes"))

    made = desk.run("pack", "new", "packs/bikes")
    assert made.code == 0, made.err
    assert stands() == "not trusted"

    trusted = desk.run("pack", "trust", "bikes")
    assert "runs python handlers" in trusted.out
    assert stands() == "ready"

    file = desk.project / "packs/bikes/handlers.py"
    file.write_text(file.read_text() + "# more\n")
    assert stands() == "not trusted"

    desk.run("pack", "trust", "bikes")
    desk.run("pack", "trust", "bikes", "--forget")
    assert stands() == "not trusted"


def test_a_broken_pack_is_listed_as_broken(desk: Desk) -> None:
    write_pack(desk.project / "packs/bikes", "{")

    said = desk.run("pack", "list")

    assert said.code == 0
    (row,) = [line for line in said.out.splitlines() if line.startswith("bikes")]
    assert "broken" in row


def test_looking_at_packs_makes_nothing(desk: Desk) -> None:
    write_pack(desk.project / "packs/bikes")

    for words in (("list",), ("check", "bikes"), ("show", "bikes")):
        desk.run("pack", *words)

    assert [path.name for path in desk.project.iterdir()] == ["packs"]
    assert not desk.home.exists()
