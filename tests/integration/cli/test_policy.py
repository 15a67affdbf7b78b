"""`podium policy check`."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.command_runner import CommandRunner


@pytest.mark.parametrize(
    ("command", "code", "decision"),
    [
        (("git", "status"), 0, "allow"),
        (("git", "checkout", "main"), 4, "deny"),
        (("pip", "install", "x"), 3, "ask"),
        (("git status && git checkout main",), 4, "deny"),
        (("echo $(id)",), 0, "allow"),
        (("git", "status", "--json"), None, None),
    ],
)
def test_a_command_is_judged_with_rule_tier_and_reason(
    cli: CommandRunner, command: tuple[str, ...], code: int | None, decision: str | None
) -> None:
    result = cli.run("policy", "check", "--json", "--", *command)
    assert set(result.json) >= {"decision", "rule", "tier", "reason", "arithmetic"}
    if code is not None:
        assert (result.code, result.json["decision"]) == (code, decision)
    assert not (cli.project / ".podium").exists()


PIPED = "make test 2>&1 | tail -20"


def test_the_answer_is_for_the_confinement_that_is_set_and_says_which(cli: CommandRunner) -> None:
    held = cli.run("policy", "check", "--", PIPED)
    assert held.code == 0
    assert "confined   by the kernel, as in a workspace; network model-only\n" in held.out
    words = cli.run("policy", "check", "--unconfined", "--json", "--", PIPED)
    assert (words.code, words.json["confinement"], words.json["network"]) == (4, "none", "open")
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text("sandbox: none\n")
    switched_off = cli.run("policy", "check", "--", PIPED)
    assert switched_off.code == 4
    assert "confined   no: only the command line is judged" in switched_off.out
    assert cli.run("policy", "check", "--confined", "--", PIPED).code == 0


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("git checkout -- a.txt", "git restore -- a.txt"),
        ("git checkout HEAD~1 -- a.txt b.txt", "git restore '--source=HEAD~1' -- a.txt b.txt"),
        ("git checkout a.txt", "git restore FILE"),
    ],
)
def test_a_refused_checkout_names_the_command_that_takes_a_file_back(
    cli: CommandRunner, command: str, instead: str
) -> None:
    denied = cli.run("policy", "check", "--json", "--", command)
    assert (denied.code, f"`{instead}`" in denied.json["reason"]) == (4, True)
    assert cli.run("policy", "check", "--", instead).code == 0


def test_a_tool_call_is_judged_by_its_arguments(cli: CommandRunner) -> None:
    inside = json.dumps({"path": "a.txt", "content": "x"})
    result = cli.run("policy", "check", "--tool", "write_file", "--args", inside)
    assert result.code == 0
    assert "decision   allow\n" in result.out
    outside = json.dumps({"path": "../a.txt", "content": "x"})
    assert cli.run("policy", "check", "--tool", "write_file", "--args", outside).code == 4


def test_a_tool_nobody_registered_is_denied(cli: CommandRunner) -> None:
    result = cli.run("policy", "check", "--tool", "launch", "--json")
    assert (result.code, result.json["decision"]) == (4, "deny")


def test_a_projects_rule_counts_and_can_only_tighten(cli: CommandRunner) -> None:
    cli.says(
        "policy:\n"
        "  rules:\n"
        "    - {name: no-status, command: ['git status'], decision: deny, why: we do not look}\n"
        "    - {name: all-git, command: ['git checkout *'], decision: allow}\n"
    )
    denied = cli.run("policy", "check", "--json", "--", "git", "status")
    assert (denied.code, denied.json["rule"]) == (4, "no-status")
    assert cli.run("policy", "check", "--", "git", "checkout", "main").code == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "pass either"),
        (("--tool", "finish", "--", "ls"), "pass either"),
        (("--args", "{}", "--", "ls"), "--args requires --tool"),
        (("--tool", "write_file", "--args", "{"), "--args is not JSON"),
        (("--tool", "write_file", "--args", "[]"), "must be a JSON object"),
        (("--tool", "write_file", "--args", "{}"), "invalid arguments"),
        (("",), "the command is empty"),
        (("--", " "), "the command is empty"),
        (
            ("--tool", "run_command", "--args", '{"command": 3}'),
            "'command': must be text or a list",
        ),
        (("--tool", "run_command", "--args", '{"command": ""}'), "a list, and not empty"),
        (
            ("--tool", "run_command", "--args", '{"command": "ls", "env": {"a b": "x"}}'),
            "'env': 'a b' is not a valid name here",
        ),
    ],
)
def test_a_question_that_makes_no_sense_is_a_usage_error(
    cli: CommandRunner, arguments: tuple[str, ...], words: str
) -> None:
    result = cli.run("policy", "check", *arguments)
    assert result.code == 2
    assert words in result.err


def test_list_of_cases_passes_or_is_reported_case_by_case(cli: CommandRunner) -> None:
    cases = cli.project / "cases.yaml"
    cases.write_text(
        "- {command: git status, decision: allow}\n"
        "- {command: 'rm -rf build', decision: allow, confined: true}\n"
        "- {command: [git, push], decision: deny, rule: git-firewall}\n"
    )
    assert cli.run("policy", "test", str(cases)).code == 0
    cases.write_text(
        "- {command: git push, decision: allow, why: we wish it were so}\n- {command: ls, decision: allow}\n"
    )
    result = cli.run("policy", "test", str(cases))
    assert result.code == 1
    assert "expected allow, got deny by git-firewall: git push" in result.out
    assert "why: we wish it were so" in result.out
    assert "1 of 2 cases hold" in result.out
    assert "wrongly stopped: 50.00%" in result.out


def test_list_of_cases_is_printed_as_json(cli: CommandRunner) -> None:
    cases = cli.project / "cases.yaml"
    cases.write_text("defaults: {decision: deny, confined: true}\ncases: [git push, ls]\n")
    result = cli.run("policy", "test", "--json", str(cases))
    assert result.code == 1
    assert (result.json["cases"], result.json["held"]) == (2, 1)
    assert result.json["wrong"][0]["command"] == "ls"


def test_the_shipped_lists_hold(cli: CommandRunner) -> None:
    result = cli.run("policy", "test", "--json")
    assert (result.code, result.json["wrong"]) == (0, [])
    assert result.json["cases"] > 700


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write a list of cases"),
        ("3", "write a list of cases"),
        ("[]", "write a list of cases"),
        ("a: [", "is not valid YAML"),
        ("- {command: ls}", "case 1: 'decision'"),
        ("- {command: ls, decision: perhaps}", "case 1: 'decision'"),
        ("- {command: ls, decision: allow, colour: red}", "case 1: 'colour'"),
        ("- {command: ls, decision: allow}\n- 7", "case 2"),
        ("- ls", "case 1: 'decision'"),
        ("{cases: 1}", "'cases'"),
        ("\xff", "is not"),
    ],
)
def test_a_list_that_is_no_list_of_cases_is_a_usage_error(
    cli: CommandRunner, text: str, words: str
) -> None:
    cases = cli.project / "cases.yaml"
    cases.write_bytes(text.encode("latin-1"))
    result = cli.run("policy", "test", str(cases))
    assert result.code == 2
    assert words in result.err


def test_a_list_that_is_not_there_is_a_usage_error(cli: CommandRunner) -> None:
    result = cli.run("policy", "test", str(cli.project / "none.yaml"))
    assert result.code == 2
    assert "cannot be read: No such file" in result.err
