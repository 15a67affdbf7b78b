"""Matching of rules, and the decision of several layers of them together."""

from __future__ import annotations

import pytest

from podium.core.decisions import Access, Call, Effect, Tier
from tests.unit.gate.gate_harness import command_call, decide, gate_of, path, run, tool_call


def test_no_rule_means_deny() -> None:
    decision = decide(gate_of(), tool_call("read_file"))

    assert (decision.effect, decision.rule) == (Effect.DENY, "no-rule")
    assert "'read_file'" in decision.reason


def test_a_rule_without_why_still_gives_a_reason() -> None:
    gate = gate_of(user="rules: [{name: reading, tool: read_*, decision: allow}]")
    decision = decide(gate, tool_call("read_file"))

    assert decision.effect is Effect.ALLOW
    assert decision.reason == "rule 'reading' of the user policy says allow"


def test_deny_wins_wherever_it_appears() -> None:
    gate = gate_of(
        user="""
        rules:
          - {name: all, tool: "*", decision: allow}
          - {name: never, tool: send_mail, decision: deny, why: nobody is written to}
        """
    )
    decision = decide(gate, tool_call("send_mail"))

    assert (decision.rule, decision.reason) == ("never", "nobody is written to")


def test_of_allow_and_ask_the_first_that_fits_decides() -> None:
    gate = gate_of(
        user="""
        rules:
          - {name: drafts, tool: write_file, arguments: {path: config/drafts/**}, decision: allow}
          - {name: settings, tool: write_file, arguments: {path: config/**}, decision: ask}
        """
    )

    def wrote(name: str) -> Call:
        used = path(name, Access.WRITE)
        return tool_call("write_file", paths=(used,), arguments={"path": name})

    assert decide(gate, wrote("config/drafts/a.yaml")).rule == "drafts"
    assert decide(gate, wrote("config/a.yaml")).effect is Effect.ASK
    assert decide(gate, wrote("src/a.py")).rule == "no-rule"


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("deploy", ["deploy"], ["deploy now", "deployer"]),
        ("deploy *", ["deploy", "deploy now", "deploy a b c"], ["redeploy"]),
        ("deploy * now", ["deploy a now"], ["deploy now", "deploy a b now"]),
        ("deploy ** --dry-run **", ["deploy --dry-run", "deploy a --dry-run b"], ["deploy a"]),
        ("deploy -[ab]*", ["deploy -a", "deploy -bc"], ["deploy -c", "deploy -a b"]),
        ("deploy 'two words'", ["deploy 'two words'"], ["deploy two words"]),
        ("./deploy.sh", ["./deploy.sh"], ["deploy.sh", "bin/deploy.sh"]),
        ("*", ["deploy", "anything at all"], []),
    ],
)
def test_command_patterns_fit_word_by_word(
    pattern: str, fitting: list[str], other: list[str]
) -> None:
    gate = gate_of(user=f'rules: [{{name: it, command: "{pattern}", decision: allow}}]')

    assert [line for line in fitting if run(gate, line).effect is not Effect.ALLOW] == []
    assert [line for line in other if run(gate, line).effect is Effect.ALLOW] == []


def test_every_command_of_a_line_must_be_allowed() -> None:
    gate = gate_of(
        user="""
        rules:
          - {name: build, command: build, decision: allow}
          - {name: ship, command: ship, decision: ask}
          - {name: drop, command: drop, decision: deny}
        """
    )

    assert run(gate, "build && build").rule == "build"
    assert run(gate, "build; ship").effect is Effect.ASK
    assert run(gate, "ship | drop").rule == "drop"
    assert run(gate, "build && other").rule == "no-rule"
    assert "'other'" in run(gate, "build && other").reason


def test_deny_for_a_program_holds_wherever_the_program_appears() -> None:
    gate = gate_of(
        user="""
        rules:
          - {name: anything, command: "*", decision: allow}
          - {name: no-terraform, command: "terraform *", decision: deny}
          - {name: no-timeout, command: "timeout *", decision: deny}
        """
    )

    for line in ("terraform apply", "./bin/terraform apply", "env terraform apply", "timeout 5 ls"):
        assert run(gate, line).effect is Effect.DENY, line
    assert run(gate, "nice ls").effect is Effect.ALLOW


def test_an_allowed_program_is_not_one_of_the_same_name_elsewhere() -> None:
    gate = gate_of(user='rules: [{name: jq, command: "jq *", decision: allow}]')

    assert run(gate, "jq . a.json").effect is Effect.ALLOW
    assert run(gate, "/usr/bin/jq . a.json").effect is Effect.ALLOW
    assert run(gate, "./jq . a.json").rule == "no-rule"


def test_but_not_takes_commands_away_again() -> None:
    gate = gate_of(
        user='rules: [{name: go, command: "go test *", but_not: "go ** -exec* **", decision: allow}]'
    )

    assert run(gate, "go test ./...").effect is Effect.ALLOW
    assert run(gate, "go test ./... -exec=./x").rule == "no-rule"


def test_kinds_can_be_spoken_of() -> None:
    gate = gate_of(user="rules: [{name: git, kind: [git-read, git-write], decision: allow}]")

    assert run(gate, "git status && git add a").effect is Effect.ALLOW
    assert run(gate, "ls").rule == "no-rule"


def test_built_in_checks_hold_under_a_policy_that_allows_everything() -> None:
    gate = gate_of(user='rules: [{name: all, tool: "*", decision: allow, up_to_tier: T4}]')

    rules = {
        line: run(gate, line).rule
        for line in ("git push", "sudo ls", "rm -rf a", "eval x", "PATH=x ls", "a $b", "touch ../x")
    }
    assert rules == {
        "git push": "git-firewall",
        "sudo ls": "privilege",
        "rm -rf a": "destructive-command",
        "eval x": "shell-indirection",
        "PATH=x ls": "dangerous-variable",
        "a $b": "undecidable-command",
        "touch ../x": "outside-workspace",
    }
    assert run(gate, "curl https://example.com").effect is Effect.ALLOW


@pytest.mark.parametrize(
    ("condition", "fitting", "other"),
    [
        ("{to: '*@example.com'}", {"to": "ann@example.com"}, {"to": "ann@example.org"}),
        ("{amount: {max: 100}}", {"amount": 100}, {"amount": 100.5}),
        ("{amount: {min: 1, max: 9}}", {"amount": 5}, {"amount": 0}),
        ("{count: 1}", {"count": 1}, {"count": True}),
        ("{dry: true}", {"dry": True}, {"dry": 1}),
        ("{env: [dev, test]}", {"env": "dev"}, {"env": "live"}),
        ("{id: {regex: 'A-[0-9]+'}}", {"id": "A-12"}, {"id": "A-12x"}),
        ("{note: {present: false}}", {}, {"note": "x"}),
        ("{note: {present: true}}", {"note": ""}, {}),
        ("{note: {equals: null}}", {"note": None}, {"note": 0}),
        ("{customer.mail: 'a*'}", {"customer": {"mail": "ann"}}, {"customer": {"mail": "bob"}}),
        ("{tags: [a, b]}", {"tags": ["a", "b"]}, {"tags": ["a", "c"]}),
    ],
)
def test_arguments_are_matched(
    condition: str, fitting: dict[str, object], other: dict[str, object]
) -> None:
    gate = gate_of(
        user=f"rules: [{{name: it, tool: act, arguments: {condition}, decision: allow}}]"
    )

    assert decide(gate, tool_call("act", arguments=fitting)).effect is Effect.ALLOW
    assert decide(gate, tool_call("act", arguments=other)).effect is Effect.DENY


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("{max: 100}", "100"),
        ("{max: 100}", float("nan")),
        ("{regex: 'a+'}", 7),
        ("{regex: 'a+'}", "a" * 10_001),
        ("'safe/*'", "safe/../secret"),
        ("'safe/*'", 7),
    ],
)
def test_what_cannot_be_tested_counts_against_the_call(condition: str, value: object) -> None:
    rule = "{{name: it, tool: act, arguments: {{x: {c}}}, decision: {d}}}"
    call = tool_call("act", arguments={"x": value})
    allowing = gate_of(user=f"rules: [{rule.format(c=condition, d='allow')}]")
    denying = gate_of(
        user=f"rules: [{{name: all, tool: act, decision: allow}}, {rule.format(c=condition, d='deny')}]"
    )

    assert decide(allowing, call).rule == "no-rule"
    assert decide(denying, call).rule == "it"


def test_of_several_values_one_is_enough_to_deny_and_all_are_needed_to_allow() -> None:
    call = tool_call("act", arguments={"to": ["ann@example.com", "eve@example.org"]})
    inside = "arguments: {to: '*@example.com'}"

    allowing = gate_of(user=f"rules: [{{name: it, tool: act, {inside}, decision: allow}}]")
    asking = gate_of(user=f"rules: [{{name: it, tool: act, {inside}, decision: ask}}]")
    assert decide(allowing, call).rule == "no-rule"
    assert decide(asking, call).effect is Effect.ASK


def test_a_path_argument_is_matched_by_its_real_path() -> None:
    gate = gate_of(
        user="""
        rules:
          - {name: writing, tool: write_file, decision: allow}
          - {name: settings, tool: write_file, arguments: {path: config/**}, decision: deny}
        """
    )
    real = "/srv/project/config/a.yaml"
    for given in ("config/a.yaml", "./src/../config/a.yaml", "link.yaml", real):
        used = path(given, Access.WRITE, real=real)
        call = tool_call("write_file", paths=(used,), arguments={"path": given})
        assert decide(gate, call).rule == "settings", given


def test_rules_hold_in_their_modes_and_for_their_roles_only() -> None:
    gate = gate_of(
        user="""
        rules:
          - {name: it, tool: act, modes: [autonomous], roles: "dev*", decision: allow}
        """
    )

    assert decide(gate, tool_call("act", role="developer"), mode="autonomous").rule == "it"
    assert decide(gate, tool_call("act", role="developer"), mode="supervised").rule == "no-rule"
    assert decide(gate, tool_call("act", role="auditor"), mode="autonomous").rule == "no-rule"


def test_an_ask_names_who_must_approve() -> None:
    gate = gate_of(
        user="rules: [{name: pay, tool: pay, decision: ask, approvals: [finance, owner]}]"
    )

    assert decide(gate, tool_call("pay")).approvers == ("finance", "owner")


ALLOW = "rules: [{name: theirs, tool: act, decision: allow}]"
ASK = "rules: [{name: theirs, tool: act, decision: ask, approvals: [ops]}]"
DENY = "rules: [{name: theirs, tool: act, decision: deny}]"


@pytest.mark.parametrize(
    ("user", "project", "effect"),
    [
        (ALLOW, ALLOW, Effect.ALLOW),
        (ALLOW, ASK, Effect.ASK),
        (ALLOW, DENY, Effect.DENY),
        (ASK, ALLOW, Effect.ASK),
        (ASK, DENY, Effect.DENY),
        (DENY, ALLOW, Effect.DENY),
        (DENY, ASK, Effect.DENY),
    ],
)
def test_project_can_only_tighten_what_the_user_set(
    user: str, project: str, effect: Effect
) -> None:
    assert decide(gate_of(user=user, project=project), tool_call("act")).effect is effect


def test_a_projects_question_adds_approvers_to_the_users_and_takes_none_away() -> None:
    project = "rules: [{name: ours, tool: act, decision: ask, approvals: [team]}]"
    decision = decide(gate_of(user=ASK, project=project), tool_call("act"))

    assert decision.approvers == ("ops", "team")
    assert decide(
        gate_of(user=ASK, project="rules: [{name: o, tool: act, decision: ask}]"), tool_call("act")
    ).approvers == ("ops",)


def test_a_user_may_answer_what_the_built_in_policy_asks() -> None:
    line = "./build.sh --fast"
    rule = 'rules: [{name: build, command: "./build.sh *", decision: allow}]'

    assert run(gate_of(default=True), line).effect is Effect.ASK
    assert run(gate_of(default=True, user=rule), line).rule == "build"
    assert run(gate_of(default=True, project=rule), line).rule == "build"


def test_a_project_cannot_lift_built_in_denials_nor_the_tier_limit() -> None:
    rule = 'rules: [{name: all, command: "*", decision: allow}]'
    gate = gate_of(default=True, project=rule)

    assert run(gate, "git push").effect is Effect.DENY
    assert run(gate, "curl https://example.com").rule == "tier:T3"
    assert run(gate, "rm notes.txt").rule == "tier:T2"


def test_a_user_may_lift_the_tier_limit_for_a_rule() -> None:
    rule = 'rules: [{name: api, command: "curl https://api.example.com/*", up_to_tier: T3, decision: allow}]'

    assert run(gate_of(default=True, user=rule), "curl https://api.example.com/v1").rule == "api"
    assert run(gate_of(default=True, user=rule), "curl https://example.com").effect is Effect.ASK


def test_a_rule_can_raise_the_tier() -> None:
    gate = gate_of(user="rules: [{name: act, tool: act, tier: T3, decision: allow}]")
    decision = decide(gate, tool_call("act"))

    assert (decision.effect, decision.rule, decision.tier) == (Effect.ASK, "tier:T3", Tier.T3)


def test_an_undecidable_command_is_denied_even_where_the_tool_is_allowed() -> None:
    gate = gate_of(user="rules: [{name: all, tool: run_command, decision: allow}]")

    assert decide(gate, command_call("ls `id`")).rule == "undecidable-command"
    assert decide(gate, command_call("sh -c 'ls $x'")).rule == "undecidable-command"
