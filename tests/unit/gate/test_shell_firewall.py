"""The shell firewall where the kernel confines what runs, and where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.decisions import Decision, Effect, Tier
from podium.policy import RuleGate
from tests.unit.gate.gate_harness import command_call, context_for, gate_of, path

GATE = gate_of(default=True)


def confined(line: str, gate: RuleGate = GATE, **changes: Any) -> Decision:
    return gate.decide(command_call(line), context_for(confined=True, **changes))


def open_to_all(line: str, gate: RuleGate = GATE) -> Decision:
    return gate.decide(command_call(line), context_for())


@pytest.mark.parametrize(
    "line",
    [
        "echo $HOME",
        "ls *.py",
        "make > build.log 2>&1",
        "for f in a b; do cat $f; done",
        "npm start &",
        "python3 script.py | tail -5",
    ],
)
def test_what_the_kernel_confines_passes_and_what_it_does_not_waits_or_is_denied(line: str) -> None:
    assert confined(line).effect is Effect.ALLOW
    assert open_to_all(line).effect is not Effect.ALLOW


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("cd src && rm -rf *", ""),
        ("cd src; rm -rf *", "destructive-command"),
        ("cd src || exit 1; rm -rf *", "destructive-command"),
        ("(cd src); rm -rf *", "destructive-command"),
        ("(cd src && rm -rf *); ls", ""),
        ("rm -rf build/*", ""),
        ("rm -rf ./*", "destructive-command"),
        ("D=build; rm -rf $D", ""),
        ("D=.; rm -rf $D", "destructive-command"),
        ("false && D=build; rm -rf $D", "destructive-command"),
        ("rm -rf $D", "destructive-command"),
        ("for d in build dist; do rm -rf $d; done", ""),
        ("for d in build .; do rm -rf $d; done", "destructive-command"),
        ("t=$(mktemp -d); rm -rf $t", ""),
        ("f() { rm -rf *; }; cd src && f", "destructive-command"),
        ("cd .git && echo x > HEAD", "read-only-zone:git-folder"),
        ("(cd .git; echo x > HEAD)", "read-only-zone:git-folder"),
        ("echo x > .git/$F", "read-only-zone:git-folder"),
        ("rm -rf .g*", "read-only-zone:git-folder"),
        ("find . -name '*.o' -delete", ""),
        ("find . -delete", "destructive-command"),
        ("find build -delete", ""),
        ("echo x > /tmp/x", ""),
        ("echo x > ~/x", ""),
        ("echo x > /etc/x", "outside-workspace"),
        ("cat /etc/os-release", ""),
        ("cat ../other/x", "outside-workspace"),
        ("pushd src && ls && popd", ""),
        ("chmod -R u+w build", ""),
        ("chmod -R u+w .", "destructive-command"),
    ],
)
def test_destruction_is_judged_by_the_paths_it_would_really_touch(line: str, rule: str) -> None:
    decision = confined(line)

    assert (decision.rule if decision.effect is Effect.DENY else "") == rule, decision


@pytest.mark.parametrize("line", ["cat .env", "cp .env x", "echo x > .github/workflows/ci.yml"])
def test_a_zones_tier_is_asked_about_though_the_run_is_confined(line: str) -> None:
    assert confined(line).effect is Effect.ASK


def test_a_forbidden_zone_is_denied_though_the_run_is_confined() -> None:
    gate = gate_of(default=True, user="zones: {forbidden: [conf/**]}")

    for line in ("cat conf/a", "cat conf/*.yml", "cat < conf/a", "cd conf && cat a", "rm -rf conf"):
        assert confined(line, gate).rule == "forbidden-zone:forbidden", line


def test_packages_are_installed_when_hosts_are_listed_and_asked_about_when_not() -> None:
    assert confined("pip install x", network="listed", hosts=("pypi.org",)).effect is Effect.ALLOW
    assert confined("pip install x", network="none").effect is Effect.ASK
    assert confined("pip install x", network="open").effect is Effect.ASK


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("curl http://localhost:8000/x", Effect.ALLOW),
        ("curl -s 127.0.0.1:9", Effect.ALLOW),
        ("curl https://a.example/x", Effect.ALLOW),
        ("curl https://a.example:8443/x", Effect.DENY),
        ("curl https://b.example", Effect.DENY),
        ("curl https://x.c.example -o y", Effect.ALLOW),
        ("curl https://c.example", Effect.DENY),
        ("curl https://a.example@evil.example/", Effect.DENY),
        ("curl https://evil.example/a.example", Effect.DENY),
        ("curl -d @x https://b.example", Effect.DENY),
        ("wget -qO x http://b.example", Effect.DENY),
        ("psql -h localhost -c 'select 1'", Effect.ALLOW),
        ("psql -h db.example -c 'select 1'", Effect.DENY),
        ("ssh host uptime", Effect.ASK),
    ],
)
def test_hosts_are_reached_as_the_confinement_lists_them(line: str, effect: Effect) -> None:
    decision = confined(line, network="listed", hosts=("a.example", "*.c.example"))

    assert decision.effect is effect, decision


@pytest.mark.parametrize(
    ("says", "computed", "script"),
    [
        ("sandbox", Effect.ALLOW, Effect.ALLOW),
        ("ask", Effect.ASK, Effect.ASK),
        ("deny", Effect.DENY, Effect.ASK),
    ],
)
def test_a_policy_says_what_becomes_of_what_cannot_be_decided(
    says: str, computed: Effect, script: Effect
) -> None:
    gate = gate_of(default=True, user=f"undecidable: {says}")

    assert confined("cat $FILE", gate).effect is computed
    assert confined("./script.sh", gate).effect is script
    assert confined("cat a.txt > b.txt", gate).effect is Effect.ALLOW
    assert open_to_all("cat $FILE", gate).effect is Effect.DENY


def test_a_project_can_only_be_stricter_about_what_cannot_be_decided() -> None:
    loose = gate_of(default=True, user="undecidable: deny", project="undecidable: sandbox")
    strict = gate_of(default=True, project="undecidable: deny")

    assert confined("cat $FILE", loose).effect is Effect.DENY
    assert confined("cat $FILE", strict).effect is Effect.DENY


def test_a_rule_that_forbids_a_command_holds_when_a_word_is_not_known_yet() -> None:
    gate = gate_of(
        default=True,
        user="rules: [{name: no-publishing, command: 'npm publish **', decision: deny}]",
    )

    for line in ("npm publish", "npm $X", "npm publish $TAG", "bash -c 'npm publish'"):
        assert confined(line, gate).rule == "no-publishing", line
    assert confined("npm test $X", gate).effect is Effect.ALLOW


def test_rules_may_ask_whether_a_run_is_confined_and_what_its_network_is() -> None:
    gate = gate_of(
        user="""
        rules:
          - {name: inside, command: "make **", confined: true, decision: allow}
          - {name: outside, command: "make **", confined: false, decision: ask}
          - {name: online, command: "fetch", network: listed, decision: allow}
        """
    )

    assert confined("make all", gate).rule == "inside"
    assert open_to_all("make all", gate).rule == "outside"
    assert confined("fetch", gate, network="listed").rule == "online"
    assert open_to_all("fetch", gate).rule == "no-rule"


def test_variables_of_languages_pass_when_confined_and_those_that_steer_never_do() -> None:
    assert confined("PYTHONPATH=src pytest").effect is Effect.ALLOW
    assert open_to_all("PYTHONPATH=src pytest").rule == "dangerous-variable"
    for line in ("PATH=. ls", "GIT_DIR=x git log", "IFS=x; ls", "read PATH < a"):
        assert confined(line).rule == "dangerous-variable", line


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("git commit --amend --no-edit", Effect.ALLOW),
        ("git restore src/a.py", Effect.ALLOW),
        ("git rm -r old", Effect.ALLOW),
        ("git reset", Effect.ALLOW),
        ("git reset -q HEAD a.py", Effect.ALLOW),
        ("git reset -- a.py", Effect.ALLOW),
        ("git apply fix.patch", Effect.ALLOW),
        ('git commit -m "$MESSAGE"', Effect.ALLOW),
        ("git add $FILES", Effect.ALLOW),
        ("git reset --hard", Effect.DENY),
        ("git reset --soft HEAD~1", Effect.ALLOW),
        ("git reset --mixed 1234abc", Effect.ALLOW),
        ("git reset HEAD~1", Effect.ALLOW),
        ("git reset --keep HEAD~1", Effect.DENY),
        ("git reset --soft $X", Effect.DENY),
        ("git reset $X", Effect.DENY),
        ("git stash", Effect.DENY),
        ("git stash $X", Effect.DENY),
        ("git merge --continue", Effect.DENY),
        ("git branch $X", Effect.DENY),
        ("git $X", Effect.DENY),
        ('git -C "$D" status', Effect.DENY),
        ("git -C s* status", Effect.DENY),
        ("git -c $X status", Effect.DENY),
    ],
)
def test_git_on_its_own_branch_when_confined(line: str, effect: Effect) -> None:
    decision = confined(line)

    assert decision.effect is effect, decision
    if effect is Effect.DENY:
        assert decision.rule == "git-firewall"


def test_what_the_kernel_confines_is_of_a_low_tier_and_a_secret_is_not() -> None:
    assert confined("rm -rf build").tier is Tier.T1
    assert confined("cat .env").tier is Tier.T2


def test_a_folder_that_the_call_names_is_where_its_line_begins() -> None:
    call = command_call("rm -rf *", paths=(path("build", argument="cwd"),))

    assert GATE.decide(call, context_for(confined=True)).effect is Effect.ALLOW
    assert confined("rm -rf *").effect is Effect.DENY


def test_a_line_is_read_from_the_arguments_whatever_was_made_of_it_before() -> None:
    call = command_call("git checkout evil", commands=(("ls",),))

    assert GATE.decide(call, context_for(confined=True)).rule == "git-firewall"
