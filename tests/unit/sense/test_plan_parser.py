"""Plans as planners write them: good ones, broken ones, hostile ones."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from podium.core.model import Json
from podium.jobs.sense.models import ParsedPlan, notices_of
from podium.jobs.sense.orders.work_order import ORDER_ID, WorkOrder
from podium.jobs.sense.planning.plan_parser import parse_plan
from podium.jobs.sense.planning.plan_schema import (
    ACTIONS,
    MAX_BYTES,
    MAX_ITEMS,
    PRIORITIES,
    TYPES,
    plan_schema,
    work_order_schema,
)
from podium.platform.invisible_text import hidden_in

DOCS = Path(__file__).parents[3] / "docs"
SAMPLES = files("podium.jobs.sense") / "samples"


def item(**changes: Json) -> dict[str, Json]:
    made: dict[str, Json] = {
        "type": "health_fix",
        "priority": "high",
        "target": "opal_api",
        "action": "create_wo",
        "wo_suggestion": {"wo_id_hint": "FIX-OPAL-API", "title": "Mend it", "tasks": ["look"]},
    }
    return {name: value for name, value in {**made, **changes}.items() if value is not ...}


def suggesting(**changes: Json) -> dict[str, Json]:
    payload = {"wo_id_hint": "FIX-OPAL-API", "title": "Mend it", **changes}
    return item(wo_suggestion={name: value for name, value in payload.items() if value is not ...})


def parsed(*items: Json, **head: Json) -> ParsedPlan:
    return parse_plan(json.dumps({**head, "items": list(items)}))


# --- what ships --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "candidates", "skipped"), [("idle", 0, 0), ("single_task", 1, 0), ("multi_task", 2, 2)]
)
def test_the_samples_give_what_they_have_always_given(
    name: str, candidates: int, skipped: int
) -> None:
    text = (SAMPLES / f"gmx_plan_{name}.json").read_bytes()
    record = parse_plan(text).record()
    assert (record["candidate_count"], record["skipped"]) == (candidates, skipped)
    assert [*Draft202012Validator(plan_schema()).iter_errors(json.loads(text))] == []


@pytest.mark.parametrize(
    ("file", "made"),
    [
        ("gmx-plan.schema.json", plan_schema()),
        ("work-order.schema.json", work_order_schema()),
    ],
)
def test_the_published_schema_is_the_one_of_the_code(file: str, made: dict[str, Json]) -> None:
    Draft202012Validator.check_schema(made)
    assert json.loads((DOCS / file).read_text()) == made


def test_the_schema_of_orders_takes_what_orders_are_and_refuses_a_field_of_another_operation() -> (
    None
):
    order = WorkOrder.model_validate(
        {
            "id": "WO-A-1",
            "title": "a",
            "tier": "T1",
            "ops": [
                {"op": "write", "path": "g/docs/a.md", "content": ""},
                {"op": "run", "command": ["ls", "-l"], "timeout_seconds": 5},
                {"op": "session", "session": "SESSION-1", "values": {"status": "done"}},
            ],
        }
    )
    record = order.model_dump(mode="json", exclude_defaults=True)
    checker = Draft202012Validator(work_order_schema())
    assert [*checker.iter_errors(record)] == []
    record["ops"][0]["command"] = "ls"
    assert not checker.is_valid(record)


# --- which items become candidates -------------------------------------------------------------


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_only_work_to_be_created_is_a_candidate(kind: str, action: str) -> None:
    plan = parsed(item(type=kind, action=action))
    wanted = action == "create_wo" and kind not in ("noop", "info")
    assert (len(plan.candidates), len(plan.skipped_items)) == ((1, 0) if wanted else (0, 1))
    assert len(plan.items) == 1


def test_a_skipped_item_has_its_place_its_reason_and_its_title() -> None:
    plan = parsed(item(), item(action="log"))
    (skipped,) = plan.skipped_items
    assert skipped.model_dump() == {
        "index": 1,
        "reason": "action log: nothing to create",
        "title": "Mend it",
    }


def test_alert_needs_no_id_and_is_reported_in_its_own_words() -> None:
    payload = {"title": "Disk is full", "summary": "99 %"}
    plan = parsed(
        item(action="alert", target="disk", wo_suggestion=payload),
        item(action="alert", target="mail", wo_suggestion={"summary": "It bounces"}),
        item(action="alert", target="web", wo_suggestion=...),
        item(action="alert", target="db", wo_suggestion={}),
    )
    assert notices_of(plan) == (
        "[high] disk: Disk is full: 99 %",
        "[high] mail: It bounces: It bounces",
        "[high] web: the plan gives no reason",
        "[high] db: the plan gives no reason",
    )


def test_keys_that_nobody_knows_are_dropped() -> None:
    plan = parsed(
        item(confidence=0.9, wo_suggestion={"wo_id_hint": "A", "title": "b", "mood": "good"}),
        thoughts="many",
    )
    assert len(plan.candidates) == 1
    assert "mood" not in json.dumps(plan.record())


def test_operations_come_along() -> None:
    plan = parsed(suggesting(ops=[{"op": "mkdir", "path": "g/reports/x"}]))
    assert plan.candidates[0].suggestion.ops[0].call == ("make_folder", {"path": "g/reports/x"})


# --- ids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "start"),
    [
        ("fix-opal_api", "WO-FIX-OPAL_API-"),
        ("WO-FIX", "WO-FIX-"),
        ("wo-fix", "WO-FIX-"),
        ("A" * 100, "WO-" + "A" * 88 + "-"),
    ],
)
def test_an_order_is_named_after_its_hint(hint: str, start: str) -> None:
    (candidate,) = parsed(suggesting(wo_id_hint=hint)).candidates
    assert candidate.wo_id.startswith(start)
    assert len(candidate.wo_id) == len(start) + 8
    assert ORDER_ID.fullmatch(candidate.wo_id)


def test_the_name_of_an_order_follows_from_item_and_salt_and_not_from_its_place() -> None:
    alone = parse_plan({"items": [item()]}, salt="a").candidates[0].wo_id
    later = parse_plan({"items": [item(action="log"), item()]}, salt="a").candidates[0].wo_id
    salted = parse_plan({"items": [item()]}, salt="b").candidates[0].wo_id
    other = parse_plan({"items": [item(priority="low")]}, salt="a").candidates[0].wo_id
    assert alone == later
    assert len({alone, salted, other}) == 3


@pytest.mark.parametrize(
    "hint",
    [
        "", " ", ".", "..", "../x", "a/b", "/etc", "a\\b", "-rf", "_x", "a b", "a.b", "a\nb", "a\0b", "\x1b[31mA",
        "A\u202eB", "Å", "A" * 101, "A" * 10_000, "%2e%2e", "$HOME", "~", "WO-", "WO--_", 5, None, True, ["A"], {},
        "А", "A\ud800", "A\u3164",
    ],
)  # fmt: skip
def test_a_hint_that_makes_no_id_costs_its_own_item_only(hint: Json) -> None:
    plan = parsed(suggesting(wo_id_hint=hint), item(target="other"))
    assert [candidate.item.index for candidate in plan.candidates] == [1]
    assert "wo_id_hint" in plan.skipped_items[0].reason
    assert not any(hidden_in(plan.skipped_items[0].reason))


# --- items that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (item(type="fix"), "unknown type 'fix'"),
        (item(type="CLC_TASK"), "unknown type 'CLC_TASK'"),
        (item(type=...), "type is missing"),
        (item(type=None), "unknown type None"),
        (item(type=["noop"]), "unknown type a list"),
        (item(priority="urgent"), "unknown priority 'urgent'"),
        (item(priority=1), "unknown priority 1"),
        (item(priority=...), "priority is missing"),
        (item(action="rm -rf"), "unknown action 'rm -rf'"),
        (item(action=...), "action is missing"),
        (item(action={"a": 1}), "unknown action an object"),
        (item(target=...), "target is missing"),
        (item(target=""), "target is empty"),
        (item(target=" \t"), "target is empty"),
        (item(target=7), "target must be text, not 7"),
        (item(target="x" * 201), "target has 201 characters; at most 200"),
        (item(target="opal\u202eapi"), "contains invisible characters"),
        (item(target="opal\napi"), "contains invisible characters"),
        (item(target="opal\u200bapi"), "contains invisible characters"),
        (item(wo_suggestion=...), "wo_suggestion is missing"),
        (item(wo_suggestion=None), "wo_suggestion is missing"),
        (item(wo_suggestion="do it"), "wo_suggestion must be an object, not 'do it'"),
        (item(wo_suggestion=[]), "wo_suggestion must be an object, not a list"),
        (item(action="alert", wo_suggestion="do it"), "wo_suggestion must be an object"),
        (item(wo_suggestion={}), "wo_suggestion.wo_id_hint is missing"),
        (suggesting(title=...), "wo_suggestion.title is missing"),
        (suggesting(title=""), "wo_suggestion.title is empty"),
        (suggesting(title="\u200b\x1b[2J"), "wo_suggestion.title is empty"),
        (suggesting(title=None), "wo_suggestion.title must be text"),
        (suggesting(title=5), "wo_suggestion.title must be text, not 5"),
        (suggesting(title="x" * 301), "wo_suggestion.title has 301 characters; at most 300"),
        (suggesting(summary=["a"]), "wo_suggestion.summary must be text, not a list"),
        (suggesting(summary="x" * 10_001), "wo_suggestion.summary has 10,001 characters"),
        (suggesting(tasks="look"), "wo_suggestion.tasks must be a list of texts"),
        (suggesting(tasks=[1]), "wo_suggestion.tasks[0] must be text, not 1"),
        (suggesting(tasks=["a", None]), "wo_suggestion.tasks[1] must be text, not None"),
        (suggesting(tasks=["x"] * 101), "wo_suggestion.tasks has 101 tasks; at most 100"),
        (suggesting(tasks=["x" * 4_001]), "wo_suggestion.tasks[0] has 4,001 characters"),
        (suggesting(ops={}), "wo_suggestion.ops must be a list"),
        (suggesting(ops=["rm"]), "ops[0]: an operation is an object with `op`, not 'rm'"),
        (suggesting(ops=[{}]), "wo_suggestion.ops[0].op: Field required"),
        (suggesting(ops=[{"op": "exec"}]), "wo_suggestion.ops[0].op: Input should be"),
        (suggesting(ops=[{"op": "write", "path": "a"}]), "ops[0]: op 'write' needs content"),
        (suggesting(ops=[{"op": "mkdir", "path": "a", "mode": 1}]), "wo_suggestion.ops[0].mode:"),
        (suggesting(ops=[{"op": "mkdir", "path": "a\0"}]), "contains a NUL"),
        (suggesting(ops=[{"op": "mkdir", "path": "a\nb"}]), "path 'a\\nb' contains invisible characters"),
        (suggesting(ops=[{"op": "tool", "tool": "x", "arguments": {"a": ["\ud800"]}}]), "contains a NUL or half"),
        (suggesting(ops=[{"op": "mkdir", "path": "a"}] * 101), "has 101 operations; at most 100"),
        (5, "the item must be an object, not 5"),
        (None, "the item must be an object, not None"),
        ([], "the item must be an object, not a list"),
    ],
)  # fmt: skip
def test_an_item_that_does_not_fit_is_skipped_and_the_others_live(wrong: Json, words: str) -> None:
    plan = parsed(wrong, item(target="other"))
    assert plan.error == ""
    assert [candidate.item.index for candidate in plan.candidates] == [1]
    assert words in plan.skipped_items[0].reason
    assert [entry.index for entry in plan.items] == [1]


def test_what_nobody_gave_may_be_null() -> None:
    plan = parsed(suggesting(summary=None, tasks=None, ops=None), timestamp=None)
    assert len(plan.candidates) == 1


def test_the_same_subject_twice_is_one_candidate() -> None:
    plan = parsed(
        item(), suggesting(wo_id_hint="fix-opal-api", title="Other words"), item(target="OPAL_API")
    )
    assert len(plan.candidates) == 1
    assert [entry.reason for entry in plan.skipped_items] == [
        "duplicate of item 0, which proposes the same for 'opal_api'",
        "duplicate of item 0, which proposes the same for 'OPAL_API'",
    ]


def test_same_alert_twice_is_reported_once() -> None:
    alert = item(action="alert")
    assert len(notices_of(parsed(alert, alert, {**alert, "priority": "low"}))) == 2


def test_items_beyond_the_limit_are_left_out_with_one_reason() -> None:
    plan = parsed(*(item(target=f"t{number}") for number in range(MAX_ITEMS + 50)))
    assert len(plan.candidates) == MAX_ITEMS
    (skipped,) = plan.skipped_items
    assert skipped.index == MAX_ITEMS
    assert "the last 50 are skipped" in skipped.reason


# --- texts -------------------------------------------------------------------------------------


def test_texts_lose_what_steers_a_terminal_or_cannot_be_seen() -> None:
    plan = parsed(
        suggesting(
            title="\x1b[31mred\x1b[0m \x1b]0;owned\x07 a\u202eb\0\nc",
            summary="one\r\ntwo\u2028three\x9b2J \ud800",
            tasks=["\u200b", "do\u0007 it"],
        ),
        context_summary="all\x1b[2J well",
    )
    output = plan.candidates[0].suggestion
    assert (output.title, output.summary, output.tasks) == (
        "red ab c",
        "one\ntwo\nthree",
        ("do it",),
    )
    assert plan.context_summary == "all well"


def test_emoji_and_other_writing_stay_whole() -> None:
    title = "Sämtliche 👩‍👩‍👧 日志 🏴󠁧󠁢󠁳󠁣󠁴󠁿 می‌خواهم"
    assert parsed(suggesting(title=title)).candidates[0].suggestion.title == title


# --- broken documents --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "the plan is empty"),
        (b" \n", "the plan is empty"),
        ("Sure! Here is the plan.", "not valid JSON: Expecting value (line 1, column 1)"),
        ('{"items": [\n{"type": }]}', "(line 2, column 10)"),
        ('{"items": []', "not valid JSON"),
        ('{"items": []} trailing', "Extra data"),
        ("[]", "must be a JSON object, not a list"),
        ('"items"', "must be a JSON object, not text"),
        ("null", "must be a JSON object, not null"),
        ("true", "must be a JSON object, not true or false"),
        (None, "must be a JSON object, not null"),
        (4, "must be a JSON object, not a number"),
        ("{}", "has no 'items'"),
        ('{"items": null}', "'items' must be a list, not null"),
        ('{"items": {"type": "noop"}}', "'items' must be a list, not an object"),
        ('{"items": "none"}', "'items' must be a list, not text"),
        ('{"items": [], "items": [{}]}', "duplicate key 'items'"),
        ('{"items": [{"a": 1, "a": 2}]}', "duplicate key 'a'"),
        ('{"\u3164\\u001b": 1, "\u3164\\u001b": 2}', "duplicate key '\\u3164\\x1b'"),
        ('{"items": [NaN]}', "NaN is not a JSON number"),
        ('{"items": [-Infinity]}', "-Infinity is not a JSON number"),
        ('{"items": [1e999]}', "1e999 is not a JSON number"),
        ('{"items": [' + "9" * 5_000 + "]}", "too many digits"),
        ({"items": [float("nan")]}, "values that JSON does not support"),
        ({"items": [object()]}, "values that JSON does not support"),
        ("[" * 100_000, "nested deeper than 60 levels"),
        ('{"a":' * 1_000 + "1" + "}" * 1_000, "nested deeper than 60 levels"),
        ('{"items": [], "a": ' + "[" * 70 + "]" * 70 + "}", "nested deeper than 60 levels"),
        (b'{"items": [\n"\xff"]}', "not valid UTF-8 (line 2, byte 13)"),
        ('{"items": []}'.encode("utf-16"), "not valid UTF-8"),
        (b'{"items": [], "x": "' + b"x" * MAX_BYTES + b'"}', "larger than the limit of 1,000,000 bytes"),
        ('{"items": [], "x": "' + "ü" * (MAX_BYTES // 2) + '"}', "larger than the limit of 1,000,000 bytes"),
        ({"items": [], "x": "x" * MAX_BYTES}, "larger than the limit of 1,000,000 bytes"),
        ('{"items": [], "timestamp": 5}', "'timestamp' must be text, not int"),
        ('{"items": [], "source": []}', "'source' must be text, not list"),
        ('{"items": [], "context_summary": {}}', "'context_summary' must be text, not dict"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_a_broken_document_gives_no_candidate_and_says_what_is_wrong(
    document: Json, words: str
) -> None:
    plan = parse_plan(document)
    assert words in plan.error
    assert plan == ParsedPlan(error=plan.error)
    assert plan.record()["error"] == plan.error


def test_a_list_that_holds_itself_is_no_plan() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert parse_plan({"items": endless}).error


def test_a_byte_order_mark_is_fine() -> None:
    assert parse_plan(b'\xef\xbb\xbf{"items": []}').error == ""
    assert parse_plan('\ufeff{"items": []}').error == ""


# --- whatever comes ----------------------------------------------------------------------------

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_ANY = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_SUGGESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "wo_id_hint": st.text("AB-_./\u202e", max_size=4) | _ANY,
        "title": st.text(max_size=10) | _ANY,
        "summary": _ANY,
        "tasks": st.lists(st.text(max_size=5), max_size=3) | _ANY,
        "ops": st.lists(st.fixed_dictionaries({"op": st.just("mkdir"), "path": st.text(max_size=3)}), max_size=2) | _ANY,
    },
)  # fmt: skip
_ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES) | _ANY,
        "priority": st.sampled_from(PRIORITIES) | _ANY,
        "target": st.text(max_size=6) | _ANY,
        "action": st.sampled_from(ACTIONS) | _ANY,
        "wo_suggestion": _SUGGESTIONS | _ANY,
    },
)


@given(st.binary(max_size=200) | st.text(max_size=200) | _ANY)
def test_nothing_makes_the_parser_raise(document: Json) -> None:
    plan = parse_plan(document)
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


@given(st.lists(_ITEMS | _ANY, max_size=5))
def test_every_item_is_accounted_for_and_what_comes_out_is_clean(items: list[Json]) -> None:
    plan = parse_plan({"items": items})
    if plan.error:
        assert plan == ParsedPlan(error=plan.error)
        return
    assert len(plan.candidates) + len(plan.skipped_items) == len(items)
    assert len({entry.wo_id for entry in plan.candidates}) == len(plan.candidates)
    for candidate in plan.candidates:
        assert ORDER_ID.fullmatch(candidate.wo_id)
        output = candidate.suggestion
        for text in (candidate.item.target, output.title, output.summary, *output.tasks):
            assert not any(hidden_in(text))
    for skipped in plan.skipped_items:
        assert not any(hidden_in(skipped.reason + skipped.title))


@given(st.lists(_ITEMS, max_size=3))
def test_what_fits_the_published_schema_is_not_skipped_for_its_shape(items: list[Json]) -> None:
    document = {"items": items}
    plan = parse_plan(document)
    if plan.error or not Draft202012Validator(plan_schema()).is_valid(document):
        return
    allowed = ("action ", "type ", "duplicate", "target ", "wo_suggestion.title is empty")
    for skipped in plan.skipped_items:
        unseen = "cannot be seen" in skipped.reason or "contains a NUL" in skipped.reason
        says_nothing = "says nothing" in skipped.reason
        assert skipped.reason.startswith(allowed) or unseen or says_nothing, skipped.reason
