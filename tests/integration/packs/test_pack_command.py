"""`podium pack` at the door."""

from __future__ import annotations

import json
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


def test_misread_example_fails_the_check_with_its_place_and_the_difference(
    cli: CommandRunner,
) -> None:
    wrong = {"say": "book in a Brompton for Kim", "arguments": {"owner": "Sam", "bike": "Brompton"}}
    write_pack(cli.project / "packs/bikes", registry_with("/tools/0/examples/0", wrong))

    result = cli.run("pack", "check", "bikes")
    as_json = cli.run("pack", "check", "bikes", "--json")

    assert result.code == as_json.code == 1
    place, expected, read = result.out.splitlines()
    assert place.startswith("packs/bikes/tools.registry.json:")
    assert "/tools/0/examples/0: 'book in a Brompton for Kim' is misread" in place
    assert 'owner is read as "Kim" instead of "Sam"' in place
    assert expected == '  expected: repair.book owner="Sam", bike="Brompton"'
    assert read == '  read:     repair.book owner="Kim"'
    assert "1 of 1 example of packs/bikes are misread" in result.err
    assert as_json.json["sound"] is False
    (misread,) = as_json.json["misreads"]
    assert misread["read"] == [{"tool": "repair.book", "arguments": {"owner": "Kim"}}]
    assert cli.run("pack", "check", "bikes", "--registry-only").code == 0


def test_rule_is_tested_by_what_it_refuses_and_what_it_allows(cli: CommandRunner) -> None:
    rule = {
        "name": "stolen",
        "directive": "safety_confidentiality_legal",
        "because": "stolen bikes are reported and not repaired",
        "patterns": [r"\bstolen\b"],
        "refuses": ["book in the stolen bike for Kim", "book in a hot bike for Kim"],
        "allows": ["book in a Brompton for Kim", "book in a bike like the stolen one for Kim"],
    }
    write_pack(cli.project / "packs/bikes", registry_with("/rules", [rule]))
    result = cli.run("pack", "check", "bikes")
    slow = {**rule, "patterns": ["(a+)+$"], "allows": []}
    write_pack(cli.project / "packs/bikes", registry_with("/rules", [slow]))
    unusable = cli.run("pack", "check", "bikes")

    problems = [line for line in result.out.splitlines() if "tools.registry.json:" in line]
    assert result.code == 1
    assert len(problems) == 2
    assert "/rules/0/refuses/1: 'book in a hot bike for Kim' is not refused" in problems[0]
    assert (
        "/rules/0/allows/1: 'book in a bike like the stolen one for Kim' is refused because"
        in problems[1]
    )
    assert unusable.code == 2
    assert "/rules/0/patterns/0: '(a+)+$'" in unusable.out
    assert "/rules/0/allows: is empty" in unusable.out


@pytest.mark.parametrize("pack", ["podium", "roofing"])
def test_every_example_of_the_shipped_packs_is_read_as_it_says(
    cli: CommandRunner, pack: str
) -> None:
    result = cli.run("pack", "check", pack)

    assert (result.code, "misread" in result.out) == (0, False), result.out


def test_bench_scores_the_corpus_of_a_pack_by_class(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes")
    lines = (
        "# what people say at the counter",
        '{"say": "book in a bike for Lou", "tool": "repair.book", "arguments": {"owner": "Lou"}}',
        '{"say": "book in a bike for Lou", "class": "hard", "tool": "parts.order", "arguments": {"part": "bike"}}',
        '{"say": "make me a coffee", "class": "hard", "intent": ["refuse", "clarify"]}',
    )
    (cli.project / "packs/bikes/corpus.jsonl").write_text("\n".join(lines))

    result = cli.run("pack", "bench", "bikes", "--json")
    strict = cli.run("pack", "bench", "bikes", "--at-least", "90")

    counts = {count["name"]: count for count in result.json["classes"]}
    assert (counts["plain"]["right"], counts["hard"]["right"]) == (1, 1)
    # It would book a repair, which nobody asked for, and which needs no approval.
    assert (counts["hard"]["wrong"], counts["hard"]["wrong_at_once"]) == (1, 1)
    (misread,) = result.json["misread"]
    assert (misread["line"], misread["read"]) == (3, 'repair.book owner="Lou"')
    assert result.code == strict.code == 1


def test_unusable_lines_of_a_corpus_are_all_reported_with_their_numbers(cli: CommandRunner) -> None:
    write_pack(cli.project / "packs/bikes")
    lines = ('{"say": "x", "tool": "repair.fly"}', "{", '{"say": "x"}', '{"tool": "repair.book"}')
    (cli.project / "packs/bikes/corpus.jsonl").write_text("\n".join(lines))

    result = cli.run("pack", "bench", "bikes")

    assert result.code == 2
    for number, problem in (
        (1, "this pack has no tool 'repair.fly'"),
        (2, "Expecting property name"),
        (3, "a sentence that is to be executed needs `tool` or `calls`"),
        (4, "/say: Field required"),
    ):
        assert f"corpus.jsonl:{number}: {problem}" in result.err


def test_new_pack_has_a_corpus_that_is_not_filled_twice(cli: CommandRunner) -> None:
    made = cli.run("pack", "new", "packs/bikes")
    corpus = cli.project / "packs/bikes/corpus.jsonl"
    before = corpus.read_text()
    again = cli.run("pack", "paraphrase", "bikes", "--json")

    assert "created packs/bikes/corpus.jsonl" in made.out
    assert '"class": "typo"' in before
    assert (again.json["added"], corpus.read_text()) == (0, before)
    assert cli.run("pack", "check", "bikes").code == 0


def test_paraphrases_of_an_agent_are_added_unless_they_lost_a_value(cli: CommandRunner) -> None:
    reply = {
        "paraphrases": [
            {
                "number": 1,
                "sentences": ["Kim comes in on 2026-03-14", "somebody comes in on 2026-03-14"],
            },
            {"number": 9, "sentences": ["nothing of this"]},
        ]
    }
    script = {"turns": [{"role": "paraphraser", "acts": [{"payload": reply}]}]}
    (cli.project / "script.yaml").write_text(json.dumps(script))
    (cli.project / "podium.yaml").write_text(
        "agents: {writer: {kind: scripted, script: script.yaml}}\nsandbox: none\n"
    )
    cli.run("trust", "--yes")

    made = cli.run("pack", "new", "packs/bikes", "--agent", "writer")

    assert made.code == 0, made.err
    text = (cli.project / "packs/bikes/corpus.jsonl").read_text()
    sentences = [json.loads(line) for line in text.splitlines() if not line.startswith("#")]
    assert [one["say"] for one in sentences] == ["Kim comes in on 2026-03-14"]
    assert sentences[0]["arguments"] == {"customer": "Kim", "day": "2026-03-14"}


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
