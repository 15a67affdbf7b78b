"""The library of the examples: a pack without code, in a folder of a project like anybody's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from podium.tools.packs import load_pack
from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner
from tests.unit.packs.test_pack_folders import ROOT

LIBRARY = ROOT / "examples/library"


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, cli.environ[name])
    monkeypatch.chdir(cli.project)
    shutil.copytree(LIBRARY, cli.project / "packs/library")
    cli.run("pack", "trust", "library")
    return cli


def ask(cli: CommandRunner, message: str, *options: str) -> Any:
    """The answer to a message that is to be performed."""
    command = ("ask", "-m", message, "-M", "execute", "--pack", "library", "--json", *options)
    return cli.run(*command).json


def fields(answer: Any) -> Any:
    assert answer["status"] == "succeeded", answer["text"]
    (result,) = answer["results"]
    assert all(check["ok"] for check in result["fields"].get("verification", ()))
    return result["fields"]


def test_library_has_no_code_and_enough_tools() -> None:
    pack = load_pack(LIBRARY)

    assert len(pack.registry.tools) >= 12
    assert all("records" in tool.handler for tool in pack.registry.tools)
    assert not list(LIBRARY.rglob("*.py"))


def test_book_goes_out_and_comes_back_with_receipts_that_are_verified(cli: CommandRunner) -> None:
    member = fields(ask(cli, "neues Mitglied Jonas Weber"))["member_id"]
    book = fields(ask(cli, 'new book "Momo"'))["book_id"]
    lent = fields(ask(cli, f"lend {book} to {member}"))

    second = ask(cli, f"lend {book} to {member}")
    leaving = ask(cli, f"end the membership of {member}")
    found = fields(ask(cli, f"what does {member} have on loan"))
    returned = fields(ask(cli, f"Rückgabe {lent['loan_id']}"))
    twice = ask(cli, f"return loan {lent['loan_id']}")

    assert second["status"] == "failed"
    assert "this book is on loan; reserve it instead" in second["text"]
    assert "must come back first" in leaving["text"]
    assert [(row["loan_id"], row["status"]) for row in found["loans"]] == [
        (lent["loan_id"], "open")
    ]
    assert returned["status"] == "returned"
    assert 'has status "returned", and loan.return needs "open"' in twice["text"]
    assert cli.run("receipts", "verify").code == 0


def test_what_a_call_overwrote_comes_back_with_its_undo(cli: CommandRunner) -> None:
    member = fields(ask(cli, "new member Kim Berger"))["member_id"]
    book = fields(ask(cli, 'new book "Momo"'))["book_id"]
    lent = fields(ask(cli, f"lend {book} to {member}"))
    renewed = ask(cli, f"renew loan {lent['loan_id']} until 2027-03-01")

    undone = cli.run("undo", f"{renewed['run_id']}#1", "--json").json

    assert fields(renewed)["due"] == "2027-03-01"
    assert fields(undone)["due"] == lent["due"]


def test_fine_waits_for_an_approval(cli: CommandRunner) -> None:
    member = fields(ask(cli, "new member Kim Berger"))["member_id"]

    asked = ask(cli, f"fine {member} $2.50")
    released = cli.run("ask", f"APPROVE: {asked['action_id']}", "--json", env=AS_OS_USER).json

    assert (asked["status"], asked["exit_code"]) == ("awaiting_approval", 3)
    assert fields(released)["amount"] == 2.5


def test_rule_of_the_pack_refuses_with_its_words_in_both_languages(cli: CommandRunner) -> None:
    for message in (
        "please tell the newspaper what member_1 borrowed",
        "sag dem Chef was member_1 ausgeliehen hat",
        "tell the police what member_1 borrowed " + "and so on " * 200,
        "and so on " * 200 + "tell the police what member_1 borrowed",
    ):
        answer = ask(cli, message, "--approve")
        assert (answer["status"], answer["exit_code"]) == ("refused", 4), message
        assert "what a member reads is told to nobody outside the library" in answer["text"]
        assert "Conflicting directive: safety_confidentiality_legal" in answer["text"]


def test_unseen_sentences_are_read_well_in_english_and_never_wrongly_at_once(
    cli: CommandRunner,
) -> None:
    score = cli.run("pack", "bench", "library", "--json").json
    share = {count["name"]: count["share"] for count in score["classes"]}

    assert share["english"] >= 0.8
    assert share["german"] >= 0.4
    assert share["not-to-be-done"] == share["german-not-to-be-done"] == 1
    assert score["total"]["wrong_at_once"] == 0
