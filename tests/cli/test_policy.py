"""`podium policy check`."""

from __future__ import annotations

import json

import pytest

from tests.cli.desk import Desk


@pytest.mark.parametrize(
    ("command", "code", "decision"),
    [
        (("git", "status"), 0, "allow"),
        (("git", "checkout", "main"), 4, "deny"),
        (("pip", "install", "x"), 3, "ask"),
        (("git status && git checkout main",), 4, "deny"),
        (("echo $(id)",), 4, "deny"),
        (("git", "status", "--json"), None, None),
    ],
)
def test_a_command_is_judged_with_rule_tier_and_reason(
    desk: Desk, command: tuple[str, ...], code: int | None, decision: str | None
) -> None:
    said = desk.run("policy", "check", "--json", "--", *command)
    assert set(said.json) >= {"decision", "rule", "tier", "reason", "arithmetic"}
    if code is not None:
        assert (said.code, said.json["decision"]) == (code, decision)
    assert not (desk.project / ".podium").exists()


def test_a_tool_call_is_judged_by_its_arguments(desk: Desk) -> None:
    inside = json.dumps({"path": "a.txt", "content": "x"})
    said = desk.run("policy", "check", "--tool", "write_file", "--args", inside)
    assert said.code == 0
    assert "decision   allow\n" in said.out
    outside = json.dumps({"path": "../a.txt", "content": "x"})
    assert desk.run("policy", "check", "--tool", "write_file", "--args", outside).code == 4


def test_a_tool_nobody_registered_is_denied(desk: Desk) -> None:
    said = desk.run("policy", "check", "--tool", "launch", "--json")
    assert (said.code, said.json["decision"]) == (4, "deny")


def test_a_projects_rule_counts_and_can_only_tighten(desk: Desk) -> None:
    desk.says(
        "policy:\n"
        "  rules:\n"
        "    - {name: no-status, command: ['git status'], decision: deny, why: we do not look}\n"
        "    - {name: all-git, command: ['git checkout *'], decision: allow}\n"
    )
    denied = desk.run("policy", "check", "--json", "--", "git", "status")
    assert (denied.code, denied.json["rule"]) == (4, "no-status")
    assert desk.run("policy", "check", "--", "git", "checkout", "main").code == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give either"),
        (("--tool", "finish", "--", "ls"), "give either"),
        (("--args", "{}", "--", "ls"), "--args belongs to --tool"),
        (("--tool", "write_file", "--args", "{"), "--args is not JSON"),
        (("--tool", "write_file", "--args", "[]"), "must be a JSON object"),
        (("--tool", "write_file", "--args", "{}"), "do not fit"),
        (("",), "the command is empty"),
        (("--", " "), "the command is empty"),
        (
            ("--tool", "run_command", "--args", '{"command": 3}'),
            "'command': must be text or a list",
        ),
        (("--tool", "run_command", "--args", '{"command": ""}'), "a list, and not empty"),
        (
            ("--tool", "run_command", "--args", '{"command": "ls", "env": {"a b": "x"}}'),
            "'env': 'a b' cannot be a name here",
        ),
    ],
)
def test_a_question_that_makes_no_sense_is_a_usage_error(
    desk: Desk, arguments: tuple[str, ...], words: str
) -> None:
    said = desk.run("policy", "check", *arguments)
    assert said.code == 2
    assert words in said.err
