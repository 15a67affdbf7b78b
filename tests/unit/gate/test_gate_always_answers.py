"""Whatever comes, the gate answers, and never with yes by accident."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.core.decisions import Access, Call, Decision, Effect, PathUse, Tier
from podium.policy import compile_policy
from podium.policy.facts import CallFacts
from podium.policy.rules import PolicyRules, RuleVerdict
from tests.soaking import examples
from tests.unit.gate.gate_harness import (
    ROOT,
    RUN_COMMAND,
    context_for,
    gate_of,
    path,
    spec,
    tool_call,
)

DEFAULT = gate_of(default=True)
EMPTY = gate_of()
ANYTHING = gate_of(user='rules: [{name: all, tool: "*", decision: allow, up_to_tier: T4}]')

_words = st.one_of(
    st.sampled_from(
        [
            "git",
            "bash",
            "-c",
            "env",
            "-C",
            "..",
            "/",
            "cd",
            "rm",
            "find",
            "A=b",
            "--",
            "-",
            "",
            "-o",
        ]
    ),
    st.text(max_size=12),
)
_paths = st.builds(
    PathUse,
    argument=st.sampled_from(["path", "cwd"]),
    given=st.text(max_size=20),
    real=st.one_of(
        st.just(ROOT), st.text(max_size=20), st.text(max_size=9).map(f"{ROOT}/".__add__)
    ),
    access=st.sampled_from(Access),
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
_calls = st.builds(
    Call,
    run_id=st.just("run_1"),
    step_key=st.just("s"),
    index=st.integers(0, 3),
    tool=st.sampled_from(["run_command", "read_file", "write_file", "other"]),
    arguments=st.dictionaries(st.sampled_from(["path", "env", "command"]), _json, max_size=3),
    paths=st.lists(_paths, max_size=3).map(tuple),
    commands=st.lists(st.lists(_words, max_size=6).map(tuple), max_size=3).map(tuple),
    undecidable=st.sampled_from(["", "", "", "odd"]),
    provenance=st.lists(st.text(max_size=5), max_size=2).map(tuple),
)
_tools = st.sampled_from([None, RUN_COMMAND, spec("read_file"), spec("write_file", Tier.T1)])
_modes = st.sampled_from(["sensing", "dry-run", "supervised", "autonomous", "?"])


@settings(max_examples=examples(60))
@given(_calls, _tools, _modes, st.sampled_from([ROOT, "", "/"]))
def test_any_call_gets_a_whole_decision_and_the_checks_do_not_break(
    call: Call, tool: Any, mode: str, root: str
) -> None:
    context = context_for(tool, mode=mode, root=root)
    for gate in (DEFAULT, ANYTHING):
        decision = gate.decide(call, context)
        assert decision.rule
        assert decision.reason
        assert decision.rule != "gate-error", decision
        assert gate.quotas_for(call, context) == ()


@settings(max_examples=examples(40))
@given(_calls, _tools, _modes)
def test_an_empty_policy_never_allows_nor_asks(call: Call, tool: Any, mode: str) -> None:
    assert EMPTY.decide(call, context_for(tool, mode=mode)).effect is Effect.DENY


_wrapping = st.sampled_from(
    [
        "env",
        "nohup",
        "time",
        "timeout",
        "nice",
        "ionice",
        "stdbuf",
        "command",
        "builtin",
        "exec",
        "bash",
        "sh",
        "sudo",
        "xargs",
        "/usr/bin/env",
        "./env",
        "A=b",
        "PATH=x",
        "-i",
        "-u",
        "-n",
        "-c",
        "-p",
        "-s",
        "-k",
        "--",
        "-",
        "5",
        "KILL",
        "--signal=9",
        "--unset=A",
        "-lc",
        "-S",
    ]
)


@settings(max_examples=examples(80))
@given(st.lists(_wrapping, max_size=5), st.sampled_from(["checkout", "push", "reset", "switch"]))
def test_no_wrapping_makes_a_refused_git_command_pass(words: list[str], forbidden: str) -> None:
    bare = tool_call("run_command", commands=((*words, "git", forbidden, "x"),))
    quoted = tool_call("run_command", commands=((*words, f"git {forbidden} x"),))

    assert DEFAULT.decide(bare, context_for()).effect is not Effect.ALLOW
    assert DEFAULT.decide(quoted, context_for()).effect is not Effect.ALLOW


class _BrokenBook(PolicyRules):
    def judge(self, facts: CallFacts) -> list[RuleVerdict | None]:
        raise ZeroDivisionError("a rule went wrong")


def test_a_crashed_check_is_a_denial_that_says_so() -> None:
    gate = compile_policy([])
    gate._rules = _BrokenBook([])
    decision: Decision = gate.decide(tool_call("look"), context_for(spec("look")))

    assert (decision.effect, decision.rule) == (Effect.DENY, "gate-error")
    assert "a rule went wrong" in decision.reason
    assert decision.tier is Tier.T4


def test_a_plain_call_is_judged_quickly() -> None:
    call = tool_call("read_file", paths=(path("src/app.py"),), arguments={"path": "src/app.py"})
    context = context_for(spec("read_file"))
    rounds = 500

    def seconds_per_item() -> float:
        start = time.process_time()
        for _ in range(rounds):
            DEFAULT.decide(call, context)
        return (time.process_time() - start) / rounds

    # The benchmark holds it to 100 µs; here only a blunder should show on a busy machine.
    assert min(seconds_per_item() for _ in range(5)) < 0.0005
