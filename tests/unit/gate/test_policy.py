"""Policies as people write them: examples that are run, and faults that are found."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from podium.core.decisions import Access, BuiltInRule, Effect
from podium.core.errors import BadInput
from podium.policy import InvalidPolicy, PolicyLayer, default_policy, find_problems
from tests.unit.gate.gate_harness import command_call, decide, gate_of, path, policy, tool_call


def fault(text: str, *, project: bool = False) -> InvalidPolicy:
    with pytest.raises(InvalidPolicy) as caught:
        gate_of(project=text) if project else gate_of(user=text)
    return caught.value


def test_an_example_that_should_fit_and_does_not_is_named() -> None:
    found = fault(
        """
        rules:
          - {name: first, tool: a, decision: allow}
          - name: read-only-git
            command: ["git status", "git diff *"]
            decision: allow
            match: ["git diff", "git status --short"]
        """
    )

    assert isinstance(found, BadInput)
    assert found.rule == "read-only-git"
    assert found.layer == "user"
    assert found.key == ("rules", 1, "match", 1)
    assert found.problem == "should match 'git status --short' but does not"
    assert "rules.1.match.1" in str(found)


def test_an_example_that_should_not_fit_and_does_is_named() -> None:
    found = fault(
        """
        rules:
          - {name: it, command: "git *", decision: allow, not_match: ["git diff", "rm -rf /"]}
        """
    )

    assert found.key == ("rules", 0, "not_match", 0)
    assert found.problem == "should not match 'git diff' but does"


@pytest.mark.parametrize(
    "line", ["git status; rm notes", "git status; rm -rf /", "git $x", "sh -c 'x $y'"]
)
def test_an_allow_rule_fits_no_line_with_something_else_in_it(line: str) -> None:
    gate = gate_of(
        user=f'rules: [{{name: it, command: "git status *", decision: allow, not_match: ["{line}"]}}]'
    )
    assert decide(gate, command_call(line)).rule != "it"
    assert decide(gate, command_call("git status -s")).rule == "it"


def test_a_deny_rule_fits_a_line_that_holds_one_such_command() -> None:
    gate = gate_of(
        user='rules: [{name: it, command: "make *", decision: deny, match: ["ls && make all"]}]'
    )
    assert decide(gate, command_call("ls && make all")).effect is Effect.DENY


def test_examples_can_be_tool_calls_with_paths() -> None:
    gate = gate_of(
        user="""
        zones: {protected: [config/**]}
        rules:
          - name: settings-need-a-person
            tool: [write_file, edit_file]
            arguments: {path: "config/**"}
            zone: protected
            modes: [supervised, autonomous]
            decision: ask
            approvals: [ops, owner]
            match:
              - {tool: write_file, arguments: {path: config/a.yaml}, writes: [config/a.yaml]}
              - {tool: edit_file, arguments: {path: src/../config/a}, writes: [src/../config/a]}
            not_match:
              - {tool: write_file, arguments: {path: src/a.py}, writes: [src/a.py]}
              - {tool: read_file, arguments: {path: config/a.yaml}, reads: [config/a.yaml]}
              - {tool: write_file, arguments: {path: config/a}, writes: [config/a], mode: sensing}
        """
    )
    call = tool_call(
        "write_file",
        arguments={"path": "config/a.yaml"},
        paths=(path("config/a.yaml", Access.WRITE),),
    )
    assert decide(gate, call).rule == "settings-need-a-person"


def test_all_faults_can_be_had_at_once() -> None:
    layer = PolicyLayer(
        origin="project",
        policy=policy(
            """
            rules:
              - {name: it, tool: a, decision: allow, up_to_tier: T3}
              - {name: it, tool: a, zone: nowhere, decision: deny}
              - {name: no-rule, tool: a, decision: deny}
            quotas:
              - {name: q, tool: a, zone: nowhere, limit: 1, seconds: 1}
            """
        ),
    )

    keys = [found.key for found in find_problems([layer])]
    assert keys == [
        ("rules", 1, "name"),
        ("rules", 2, "name"),
        ("quotas", 0, "zone"),
        ("rules", 0, "up_to_tier"),
        ("rules", 1, "zone"),
    ]


def test_a_project_may_not_lift_a_tier_limit() -> None:
    text = "rules: [{name: it, tool: a, decision: allow, up_to_tier: T3}]"
    gate_of(user=text)

    assert "project cannot raise" in fault(text, project=True).problem


@pytest.mark.parametrize("name", BuiltInRule)
def test_no_rule_may_take_a_name_under_which_podium_itself_answers(name: BuiltInRule) -> None:
    found = fault(f"rules: [{{name: {name}, tool: a, decision: allow}}]")

    assert found.problem == f"'{name}' is the name of a built-in check; choose another"


def test_an_unknown_zone_is_answered_with_the_known_ones() -> None:
    found = fault("{zones: {docs: [docs]}, rules: [{name: it, zone: dosc, decision: deny}]}")

    assert found.problem == "unknown zone 'dosc'; zones: docs"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: [{name: it, decision: allow}]", "set at least one of tool"),
        ("rules: [{name: It, tool: a, decision: allow}]", "should match pattern"),
        ("rules: [{name: it, tool: a, decision: maybe}]", "'allow', 'deny' or 'ask'"),
        (
            "rules: [{name: it, tool: a, decision: deny, approvals: [x]}]",
            "`approvals` is only possible",
        ),
        (
            "rules: [{name: it, tool: a, decision: ask, up_to_tier: T2}]",
            "`up_to_tier` is only possible",
        ),
        ("rules: [{name: it, tool: a, decision: ask, tier: T9}]", "'T9' is not a tier"),
        ("rules: [{name: it, tool: a, decision: ask, colour: red}]", "Extra inputs"),
        ("rules: [{name: it, tool: a, but_not: x, decision: ask}]", "`but_not` is only possible"),
        ("rules: [{name: it, command: '', decision: ask}]", "is not a valid command pattern"),
        ('rules: [{name: it, command: "a \'b", decision: ask}]', "is not a valid command pattern"),
        ("rules: [{name: it, kind: fun, decision: ask}]", "git-read"),
        ("rules: [{name: it, tool: a, modes: [yolo], decision: ask}]", "'sensing'"),
        ("rules: [{name: it, tool: a, arguments: {x: {}}, decision: ask}]", "set one of glob"),
        (
            "rules: [{name: it, tool: a, arguments: {x: {regex: '('}}, decision: ask}]",
            "is not a valid regular",
        ),
        ("zones: {a: {paths: ['../x']}}", "contains '..'"),
        ("zones: {a: {paths: ['~/x']}}", "not expanded"),
        ("zones: {a: {paths: ['']}}", "must not be empty"),
        ("quotas: [{name: q, tool: a, limit: -1, seconds: 1}]", "greater than or equal"),
        ("quotas: [{name: q, limit: 1, seconds: 1}]", "set at least one of tool"),
        ("approval_seconds: 0", "greater than 0"),
        ("max_tier_without_asking: {sensing: T1}", "Extra inputs"),
    ],
)
def test_a_policy_of_the_wrong_shape_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        policy(text)

    assert words in str(caught.value)


def test_the_shipped_policy_has_no_faults_and_tries_itself() -> None:
    shipped = default_policy()

    assert list(find_problems([PolicyLayer(origin="built-in", policy=shipped)])) == []
    assert sum(len(rule.match) + len(rule.not_match) for rule in shipped.rules) > 40
    assert shipped.rules[-1].name == "unknown-commands"
