"""`podium help`, and what the shell is told when somebody presses Tab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podium.cli.app import LazyCommands, all_commands, build
from tests.integration.cli.command_runner import CommandRunner

DOCS = Path(__file__).parents[3] / "docs"
JOBS = ("duet", "operator", "pipeline", "playbook", "sense")


def test_help_lists_a_topic_for_every_job_and_every_guide(cli: CommandRunner) -> None:
    topics = cli.run("help", "--json").json["topics"]
    assert [t["topic"] for t in topics if t["kind"] == "job"] == list(JOBS)
    guides = {page.stem for page in (DOCS / "how-to").glob("*.md")} - {"README"}
    assert {t["topic"] for t in topics if t["kind"] == "how-to"} == guides
    assert "uninstall              how-to  Uninstall\n" in cli.run("help").out


def test_topic_is_the_page_of_the_documentation_with_links_that_work_in_a_terminal(
    cli: CommandRunner,
) -> None:
    page = (DOCS / "how-to" / "resume-after-a-reboot.md").read_text()
    output = cli.run("help", "resume-after-a-reboot").out
    assert output.splitlines()[:3] == page.splitlines()[:3]
    assert "](" not in output
    operator = cli.run("help", "operator").out
    assert "write a pack (`podium help write-a-pack`) with tools" in operator
    assert "Operator has the details." in operator
    assert cli.run("help", "Duet", "--json").json["text"] == cli.run("help", "duet").out


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("pipelines", "unknown topic 'pipelines'; did you mean `podium help pipeline`?"),
        ("reboot", "unknown topic 'reboot'; did you mean `podium help resume-after-a-reboot`?"),
        ("xyzzy", "unknown topic 'xyzzy'; list them with `podium help`"),
        ("approve", "'approve' is a command, not a topic: `podium approve --help`"),
    ],
)
def test_unknown_topic_proposes_the_nearest(cli: CommandRunner, topic: str, message: str) -> None:
    result = cli.run("help", topic)
    assert (result.code, result.out, result.err) == (2, "", f"podium: {message}\n")


Completions = Callable[[str, str], list[str]]


@pytest.fixture
def completions(cli: CommandRunner, capsys: pytest.CaptureFixture[str]) -> Completions:
    """Lines that a shell gets for a command line, which ends where Tab was pressed."""

    def ask(shell: str, line: str) -> list[str]:
        variables = {"_PODIUM_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
        variables |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        variables |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        with pytest.raises(SystemExit):
            cli.run(env=variables)
        return capsys.readouterr().out.splitlines()

    return ask


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_completes_commands_subcommands_options_and_topics(
    completions: Completions, shell: str
) -> None:
    for line, names in {
        "podium app": ["approvals", "approve"],
        "podium receipts v": ["verify"],
        "podium duet sta": ["status"],
        "podium runs --st": ["--status"],
        "podium help pip": ["pipeline"],
    }.items():
        output = "\n".join(completions(shell, line))
        assert all(name in output for name in names), (line, output)
        assert "cancel" not in output, line


def test_tab_after_podium_lists_every_command_and_imports_none(
    completions: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise AssertionError("a command was imported")

    monkeypatch.setattr(build(), "commands", LazyCommands(dict.fromkeys(all_commands(), refuse)))
    assert completions("bash", "podium ") == list(all_commands())
