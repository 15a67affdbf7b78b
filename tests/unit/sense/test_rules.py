"""Plans without a model: what rules find, what they make of it, and how they are held to their examples."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from podium.config.configuration import load_configuration
from podium.core.errors import BadInput, ConfigInvalid
from podium.core.model import Json
from podium.jobs.sense.models import Bundle, Condition, Look, Sensed, notices_of
from podium.jobs.sense.planning.plan_parser import parse_plan
from podium.jobs.sense.planning.plan_schema import MAX_ITEMS, plan_schema
from podium.jobs.sense.planning.rule_language import PlanningRule, RuleBook
from podium.jobs.sense.planning.rules import (
    MAX_OF_A_RULE,
    load_rules,
    plan_by_rules,
    rule_problems,
    rules_file,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DEFAULTS = load_rules().book


def bundle(*found: Sensed, more: int = 0) -> Bundle:
    names = dict.fromkeys(item.source for item in found)
    looks = [
        Look(source=name, found=part, total=len(part) + more)
        for name in names
        for part in [tuple(item for item in found if item.source == name)]
    ]
    return Bundle(root="/r", looks=tuple(looks))


def health(content: Json = None, **more: Any) -> Sensed:
    return Sensed(source="health", place="g/telemetry/health.json", content=content, **more)


def rule(when: dict[str, Json] | None = None, item: dict[str, Json] | None = None) -> PlanningRule:
    made = {
        "name": "tried",
        "when": {"source": "health", **(when or {})},
        "item": {
            "type": "clc_task",
            "priority": "low",
            "target": "t",
            "action": "create_wo",
            "wo_suggestion": {"wo_id_hint": "A-{$key}", "title": "{name|$key|'none'}"},
            **(item or {}),
        },
        "examples": [{"sensed": [], "expect": 0}],
    }
    return PlanningRule.model_validate(made)


def titles(plan: Json) -> list[str]:
    return [item["wo_suggestion"]["title"] for item in plan["items"]]


def holds(clause: dict[str, Json], content: Json) -> bool:
    return bool(
        plan_by_rules([rule({"where": [clause]})], bundle(health(content)), now=NOW)["items"]
    )


# --- the rules that come with Podium -----------------------------------------------------------


def test_every_rule_that_comes_with_podium_keeps_its_examples() -> None:
    assert rule_problems(DEFAULTS) == []
    assert all(any(example.expect for example in rule.examples) for rule in DEFAULTS.rules)


def test_a_healthy_system_needs_no_plan() -> None:
    found = bundle(
        health({"status": "ok", "checks": [{"name": "web", "status": "ok"}]}),
        Sensed(source="acks", place="a.ack.json", content={"wo_id": "WO-A-1", "status": "done"}),
        Sensed(source="sessions", place="S-1.yaml", content={"status": "active"}),
        Sensed(source="figures", place=".", content={"disk_used_percent": 41}),
    )
    plan = plan_by_rules(DEFAULTS, found, now=NOW)
    assert plan == {
        "timestamp": "2026-03-01T12:00:00Z",
        "source": "podium_rules",
        "context_summary": "No rule found anything that needs work.",
        "items": [],
    }


def test_problems_become_items_with_the_most_urgent_first() -> None:
    found = bundle(
        Sensed(source="sessions", place="S-1.yaml", stale=True, content={"status": "active"}),
        health({"checks": [{"name": "opal api", "status": "failed", "message": "refused"}]}),
        Sensed(source="acks", place="a.ack.json", content={"wo_id": "WO-A-1", "status": "failed"}),
        Sensed(source="figures", place=".", content={"disk_used_percent": 98}),
    )
    parsed = parse_plan(plan_by_rules(DEFAULTS, found, now=NOW))
    assert [candidate.item.priority for candidate in parsed.candidates] == [
        "high",
        "high",
        "high",
        "medium",
    ]
    assert [candidate.wo_id[:-9] for candidate in parsed.candidates] == [
        "WO-FIX-OPAL-API",
        "WO-MEND-WO-A-1",
        "WO-FREE-DISK",
        "WO-WAKE-S-1",
    ]
    assert notices_of(parsed) == ("[high] disk: The disk is almost full: 98 % of it is in use (.)",)
    assert "failing-check (1)" in parsed.context_summary


def test_an_order_that_was_to_mend_another_is_not_mended_again() -> None:
    content = {"wo_id": "WO-MEND-WO-A-1-00000000", "status": "failed"}
    found = bundle(Sensed(source="acks", place="m.ack.json", content=content))
    parsed = parse_plan(plan_by_rules(DEFAULTS, found, now=NOW))
    assert parsed.candidates == ()
    assert len(parsed.alerts) == 1


def test_the_same_state_gives_the_same_plan() -> None:
    found = bundle(health({"checks": {"b": "failed", "a": "failed"}}))
    plans = [plan_by_rules(DEFAULTS, found, now=NOW) for _ in range(2)]
    assert plans[0] == plans[1]
    assert titles(plans[0]) == ["Bring b back to health", "Bring a back to health"]


def test_names_that_only_differ_in_what_ids_cannot_hold_stay_two() -> None:
    found = bundle(health({"checks": {"часы": "failed", "почта": "failed", "x" * 90: "failed", "x" * 91: "failed"}}))  # fmt: skip
    parsed = parse_plan(plan_by_rules(DEFAULTS, found, now=NOW))
    assert len({candidate.suggestion.wo_id_hint for candidate in parsed.candidates}) == 4


def test_a_rule_that_finds_very_much_gives_few_items_and_says_so() -> None:
    checks = {f"c{number}": "failed" for number in range(50)}
    plan = plan_by_rules(DEFAULTS, bundle(health({"checks": checks})), now=NOW)
    assert len(plan["items"]) == MAX_OF_A_RULE
    assert "30 more did not fit into the plan" in plan["context_summary"]


def test_a_plan_of_many_large_items_still_can_be_parsed() -> None:
    payload = {"wo_id_hint": "A-{$key}", "title": "{$key}", "tasks": ["x" * 4_000] * 50}
    rules = [
        rule({"for_each": "checks"}, {"wo_suggestion": payload, "target": f"t{number}"})
        for number in range(10)
    ]
    checks = {f"c{number}": "failed" for number in range(50)}
    parsed = parse_plan(plan_by_rules(rules, bundle(health({"checks": checks})), now=NOW))
    assert parsed.error == ""
    assert 0 < len(parsed.candidates) < MAX_ITEMS
    assert "more did not fit" in parsed.context_summary


# --- the words of a rule -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "yes", "no"),
    [
        ({"path": "a", "equals": "Failed"}, {"a": " FAILED "}, {"a": "ok"}),
        ({"path": "a", "equals": 1}, {"a": 1.0}, {"a": True}),
        ({"path": "a", "equals": True}, {"a": True}, {"a": 1}),
        ({"path": "a", "not": "ok"}, {"a": "bad"}, {"a": "ok"}),
        ({"path": "a", "not": "ok"}, {"a": 0}, {}),
        ({"path": "a", "in": ["x", False]}, {"a": False}, {"a": None}),
        ({"path": "a", "not_in": ["x", "y"]}, {"a": "z"}, {"a": "Y"}),
        ({"path": "a", "matches": "^WO-[0-9]"}, {"a": "WO-1"}, {"a": "x WO-1"}),
        ({"path": "a", "matches": "^12"}, {"a": 123}, {"a": ["123"]}),
        ({"path": "a", "min": 90}, {"a": "91 %"}, {"a": 89.9}),
        ({"path": "a", "min": 90}, {"a": 90}, {"a": "many"}),
        ({"path": "a", "min": 0}, {"a": 0}, {"a": True}),
        ({"path": "a", "min": 1, "max": 2}, {"a": 2}, {"a": 3}),
        ({"path": "a", "missing": True}, {"a": None}, {"a": 0}),
        ({"path": "a.b", "missing": False}, {"a": {"b": ""}}, {"a": "b"}),
        ({"path": "a", "rising": True}, {"a": [1, 1, 3]}, {"a": [1, 3, 2]}),
        ({"path": "a", "rising": True}, {"a": [1, 2]}, {"a": [2, 2]}),
        ({"path": "a", "rising": True}, {"a": [1, "2"]}, {"a": [1, None, 2]}),
        ({"path": "a", "rising": True}, {"a": [1, 2]}, {"a": 2}),
        ({"path": "a", "older_than_seconds": 60}, {"a": "2026-03-01T11:00:00Z"}, {"a": "2026-03-01T12:00:00Z"}),
        ({"path": "a", "older_than_seconds": 60}, {"a": "2026-02-01"}, {"a": "yesterday"}),
        ({"path": "a", "older_than_seconds": 60}, {"a": "2026-03-01 11:00"}, {"a": 5}),
        ({"path": "a", "older_than_seconds": 60}, {"a": "0001-01-01T00:00:00+14:00"}, {"a": "9999-12-31T23:59:59-14:00"}),
        ({"path": "a|b", "equals": 1}, {"b": 1}, {"a": 2, "b": 1}),
        ({"path": "a.*.s", "equals": 1}, {"a": [{"s": 0}, {"s": 1}]}, {"a": {"s": 1}}),
        ({"path": "$place", "matches": "health.json$"}, {}, ...),
        ({"path": "$value", "equals": 5}, 5, {"a": 5}),
    ],
)  # fmt: skip
def test_a_clause_holds_for_what_it_says_and_for_nothing_else(
    clause: dict[str, Json], yes: Json, no: Json
) -> None:
    assert holds(clause, yes)
    assert no is ... or not holds(clause, no)


def test_unless_takes_back_what_where_has_found() -> None:
    when = {
        "for_each": "checks",
        "where": [{"path": "status", "equals": "failed"}],
        "unless": [{"path": "muted", "equals": True}, {"path": "$top.quiet", "equals": True}],
    }
    checks = [
        {"name": "a", "status": "failed", "muted": True},
        {"name": "b", "status": "failed"},
        {"name": "c", "status": "ok"},
    ]
    assert titles(plan_by_rules([rule(when)], bundle(health({"checks": checks})), now=NOW)) == ["b"]
    quiet = bundle(health({"checks": checks, "quiet": True}))
    assert titles(plan_by_rules([rule(when)], quiet, now=NOW)) == []


def test_an_answer_counts_as_absent_only_when_all_answers_are_shown() -> None:
    when = {"where": [{"path": "id", "absent_from": {"source": "acks", "path": "wo_id"}}]}
    ack = Sensed(source="acks", place="x", content={"wo_id": "WO-2"})
    order = health({"id": "WO-1"})
    assert len(plan_by_rules([rule(when)], bundle(order, ack), now=NOW)["items"]) == 1
    assert plan_by_rules([rule(when)], bundle(order, ack, more=1), now=NOW)["items"] == []
    assert plan_by_rules([rule(when)], bundle(order), now=NOW)["items"] == []
    closed = Sensed(source="acks", place="acks", condition="unreadable", why="not trusted")
    assert plan_by_rules([rule(when)], bundle(order, closed), now=NOW)["items"] == []
    theirs = Sensed(source="acks", place="y", content={"wo_id": "wo-1"})
    assert plan_by_rules([rule(when)], bundle(order, ack, theirs), now=NOW)["items"] == []


def test_condition_and_staleness_are_part_of_what_is_looked_for() -> None:
    broken: Condition = "malformed"
    state = bundle(health({}), health(condition=broken), health({}, stale=True))
    assert len([*plan_by_rules([rule()], state, now=NOW)["items"]]) == 1
    named = {"wo_suggestion": {"wo_id_hint": "A", "title": "{$condition}"}}
    assert titles(plan_by_rules([rule({"condition": broken}, named)], state, now=NOW)) == [broken]
    assert titles(plan_by_rules([rule({"stale": True}, named)], state, now=NOW)) == ["ok"]


# --- filling -----------------------------------------------------------------------------------


def test_found_words_are_cleaned_bounded_and_never_filled_again() -> None:
    hostile = "\x1b[31m{$place} {{x}} \u202e'; rm -rf /\n" + "y" * 2_000
    payload = {"wo_id_hint": "A-{name}", "title": "T {name}", "tasks": ["{name}"], "summary": "{{}} {name}"}  # fmt: skip
    state = bundle(health({"checks": [{"name": hostile}]}))
    plan = plan_by_rules([rule({"for_each": "checks"}, {"wo_suggestion": payload})], state, now=NOW)
    (candidate,) = parse_plan(plan).candidates
    made = candidate.suggestion
    assert made.title.startswith("T {$place} {{x}} '; rm -rf / yyy")
    assert len(made.title) == 300
    assert made.summary.startswith("{} {$place} {{x}}")
    assert len(made.tasks[0]) <= 500
    assert made.wo_id_hint.startswith("A-PLACE-X-RM-RF")


def test_operations_take_names_in_paths_texts_in_contents_and_nothing_in_commands() -> None:
    ops = [
        {"op": "write", "path": "g/reports/{name}.md", "content": "{name}\n"},
        {"op": "session", "session": "S-{name}", "values": {"note": ["{name}"], "n": 1}},
        {"op": "run", "command": "echo ${HOME} {a,b}"},
    ]
    payload = {"wo_id_hint": "A", "title": "t", "ops": ops}
    state = bundle(health({"checks": [{"name": "../../CLC/x"}]}))
    plan = plan_by_rules([rule({"for_each": "checks"}, {"wo_suggestion": payload})], state, now=NOW)
    (candidate,) = parse_plan(plan).candidates
    made = [item.model_dump(exclude_defaults=True) for item in candidate.suggestion.ops]
    assert made == [
        {"op": "write", "path": "g/reports/CLC-x.md", "content": "../../CLC/x\n"},
        {"op": "session", "session": "S-CLC-x", "values": {"note": ["../../CLC/x"], "n": 1}},
        {"op": "run", "command": "echo ${HOME} {a,b}"},
    ]


_TEXTS = st.text(max_size=12) | st.sampled_from(["failed", "active", "\x1b[1m", "a\u202eb", "WO-MEND-x", "99%"])  # fmt: skip
_VALUES = _TEXTS | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none()
_KEYS = st.sampled_from(["name", "status", "checks", "services", "wo_id", "id", "disk_percent", "error", "target", "title", "session"])  # fmt: skip
_CONTENTS = st.recursive(
    _VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | _TEXTS, inner, max_size=4),
    max_leaves=10,
)  # fmt: skip
_CONDITIONS = st.sampled_from(["ok", "ok", "missing", "malformed", "cut"])
_SENSED = st.builds(
    Sensed,
    source=st.sampled_from(["health", "acks", "sessions", "inbox", "done", "figures"]),
    place=st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
    condition=_CONDITIONS,
    why=st.text(st.characters(codec="utf-8"), max_size=8),
    content=_CONTENTS,
    stale=st.booleans(),
)


@given(st.lists(_SENSED, max_size=5))
def test_whatever_was_sensed_every_item_of_the_plan_fits_the_schema(found: list[Sensed]) -> None:
    plan = plan_by_rules(DEFAULTS, bundle(*found), now=NOW)
    assert [*Draft202012Validator(plan_schema()).iter_errors(plan)] == []
    parsed = parse_plan(plan)
    assert parsed.error == ""
    assert len(parsed.items) == len(plan["items"])
    assert all(item.reason.startswith("action ") for item in parsed.skipped_items)


# --- files of rules ----------------------------------------------------------------------------

GOOD = """\
version: 1
rules:
  - name: one
    when:
      source: health
      where:
        - {path: status, equals: failed}
    item:
      type: clc_task
      priority: low
      target: x
      action: create_wo
      wo_suggestion:
        wo_id_hint: FIX
        title: Mend {status}
    examples:
      - sensed: [{content: {status: failed}}]
        expect: 1
"""


def faults_of(tmp_path: Path, text: str) -> str:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        load_rules(file)
    return str(caught.value).replace(str(file), "rules.yaml")


def test_a_file_of_rules_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(GOOD)
    assert [rule.name for rule in load_rules(file).book.rules] == ["one"]


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("expect: 1", "expect: 2", "17:", "expects 2 items, but the rule gives 1"),
        ("expect: 1", "expect: [Mend it]", "17:", "expects ['Mend it'], but the rule gives ['Mend failed']"),
        ("expect: 1", "expect: many", "18:", "expect"),
        ("equals: failed", "like: failed", "7:", "unknown key 'like'"),
        ("{path: status, equals: failed}", "{path: status}", "7:", "has no condition"),
        ("path: status", "path: 'a..b'", "7:", "is not a path"),
        ("path: status", "path: '$nobody'", "7:", "unknown name '$nobody'; known names: $key"),
        ("path: status", "path: __import__('os')", "7:", "is not a path"),
        ("equals: failed", "matches: '(a+)+b'", "7:", "has a repetition inside a repetition"),
        ("equals: failed", "matches: '('", "7:", "is not a valid regular expression"),
        ("Mend {status}", "Mend {status", "15:", "unmatched brace"),
        ("Mend {status}", "Mend {a!r}", "15:", "is not a path"),
        ("wo_id_hint: FIX", "wo_id_hint: ../FIX", "8:", "wo_id_hint '../FIX' cannot be an id"),
        ("type: clc_task", "type: fix", "9:", "input should be 'clc_task'"),
        ("        title: Mend {status}\n", "", "13:", "is missing"),
        ("source: health", "source: Health!", "5:", "should match pattern"),
        ("version: 1", "version: 2", "1:", "input should be 1"),
        ("    examples:\n      - sensed: [{content: {status: failed}}]\n        expect: 1\n", "    examples: []\n", "16:", "at least 1 item"),
        (
            "        title: Mend {status}\n",
            "        title: Mend {status}\n        ops: [{op: run, command: 'echo {status}'}]\n",
            "8:", "`command` of an operation cannot contain placeholders",
        ),
        (
            "        title: Mend {status}\n",
            "        title: Mend {status}\n        ops: [{op: mkdir, path: 'a', deep: 1}]\n",
            "8:", "wo_suggestion.ops[0].deep",
        ),
        ("      wo_suggestion:\n        wo_id_hint: FIX\n        title: Mend {status}\n", "", "8:", "wo_suggestion is missing"),
    ],
)  # fmt: skip
def test_faults_of_a_rules_file_are_reported_at_their_lines(
    tmp_path: Path, old: str, new: str, place: str, words: str
) -> None:
    assert old in GOOD
    problems = faults_of(tmp_path, GOOD.replace(old, new))
    assert problems.startswith(f"rules.yaml:{place}"), problems
    assert words in problems


@pytest.mark.parametrize(
    ("old", "new", "place", "gap"),
    [
        ("wo_id_hint: FIX", "wo_id_hint: FIX-{nam}", "14:", "{nam}"),
        ("wo_id_hint: FIX", "wo_id_hint: 'FIX-{$key}'", "14:", "{$key}"),
        ("Mend {status}", "Mend\n        ops: [{op: mkdir, path: 'g/{nam|name}'}]", "16:", "{nam|name}"),
        ("Mend {status}", "Mend\n        ops: [{op: move, path: a, to: 'g/{nam}'}]", "16:", "{nam}"),
    ],
)  # fmt: skip
def test_a_placeholder_in_a_name_that_no_example_fills_is_a_fault(
    tmp_path: Path, old: str, new: str, place: str, gap: str
) -> None:
    problems = faults_of(tmp_path, GOOD.replace(old, new))
    assert problems.startswith(f"rules.yaml:{place}"), problems
    assert f"{gap} matches nothing in the rule's own examples" in problems


@pytest.mark.parametrize(
    "hint", ["FIX-{status}", "FIX-{nam|status}", "FIX-{nam|'x'}", "FIX-{$file}"]
)
def test_a_placeholder_in_a_name_may_have_a_default_or_another_way(
    tmp_path: Path, hint: str
) -> None:
    (tmp_path / "rules.yaml").write_text(GOOD.replace("wo_id_hint: FIX", f'wo_id_hint: "{hint}"'))
    assert load_rules(tmp_path / "rules.yaml").book.rules


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    once = GOOD.partition("rules:\n")[2]
    assert "two rules are named 'one'" in faults_of(tmp_path, GOOD + once)


def test_a_file_that_is_not_there_or_no_yaml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="does not exist"):
        load_rules(tmp_path / "nothing.yaml")
    assert "not valid YAML" in faults_of(tmp_path, "rules: [")


def test_a_project_names_its_rules_and_they_lie_inside(tmp_path: Path) -> None:
    settings = tmp_path / "podium.yaml"
    environ = {"PODIUM_HOME": str(tmp_path / "home")}

    def named() -> Path | None:
        return rules_file(load_configuration(environ, project=tmp_path))

    settings.write_text("")
    assert named() is None
    settings.write_text("flows: {sense: {rules: g/docs/rules.yaml}}\n")
    assert named() == tmp_path / "g/docs/rules.yaml"
    settings.write_text("flows: {sense: {rules: ../rules.yaml}}\n")
    with pytest.raises(BadInput, match="outside the project"):
        named()


def test_a_slow_pattern_sees_only_as_much_text_as_it_can_afford() -> None:
    pattern = "a.*b.*c"
    assert holds({"path": "a", "matches": pattern}, {"a": "a b c"})
    assert not holds({"path": "a", "matches": pattern}, {"a": "a" * 200_000})


def test_rules_may_be_empty() -> None:
    book = RuleBook(version=1, rules=())
    assert plan_by_rules(book, bundle(health({"status": "failed"})), now=NOW)["items"] == []
