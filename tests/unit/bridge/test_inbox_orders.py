"""Content of a claimed file: an order, or a problem described to the sender."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core.decisions import Tier
from podium.jobs.sense.io.inbox import ORDER_LIMIT_BYTES, is_half_written, read_order
from podium.jobs.sense.io.plain_yaml import DEPTH_LIMIT, VALUE_LIMIT, NotPlain, parse_plain
from podium.jobs.sense.orders.work_order import WorkOrder
from tests.unit.bridge.inbox_harness import RUN, dropped, inbox_at

HEAD = "id: FIX\ntitle: A fix\n"


def _fault(text: str | bytes) -> str:
    opened = read_order(text if isinstance(text, bytes) else text.encode())
    assert opened.order is None or not (opened.order.ops or opened.order.tasks)
    return opened.fault


def test_a_whole_order_is_read(tmp_path: Path) -> None:
    text = HEAD + (
        "tier: T2\ncreated_at: 2026-01-01T12:00:00Z\nprovenance: [rules, health]\n"
        "ops:\n"
        "  - {op: write, path: g/docs/a.md, content: 'no'}\n"
        "  - {op: run, command: [ls, -l], timeout_seconds: 5}\n"
        "  - {op: session, session: SESSION-1, values: {state: on, n: 3, due: 2026-01-01}}\n"
    )
    dropped(tmp_path, "FIX.yaml", text)
    inbox = inbox_at(tmp_path)
    claim = inbox.claim("FIX.yaml", run_id=RUN, worker="w")
    assert claim is not None
    opened = inbox.open(claim)
    assert opened.fault == ""
    assert opened.order is not None
    assert opened.order.tier is Tier.T2
    assert [item.op for item in opened.order.ops] == ["write", "run", "session"]
    assert opened.order.ops[2].values == {"state": "on", "n": 3, "due": "2026-01-01"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ops: [{op: mkdir, path: a}, {op: mkdir, path: b}, {op: mkdir, path: ''}]",
         "ops.2.path: string should have at least 1 character"),
        ("ops: [{op: write, path: a}]", "ops.0: op 'write' needs content"),
        ("ops: [{op: mkdir, path: a, contnet: x}]",
         "ops.0.contnet: unknown key; did you mean `content`?"),
        ("opps: []", "opps: unknown key; did you mean `ops`?"),
        ("ops: 5", "ops: must be a list"),
        ("ops: [{op: run, command: [1, ls]}]",
         "ops.0.command: must be text; put quotes around it; ops.0.command.0: must be text; put quotes around it"),
        ("ops: [{path: a}]", "ops.0.op: is missing"),
        ("tier: T9", "tier: 'T9' is not a tier; use one of T0, T1, T2, T3, T4"),
    ],
)  # fmt: skip
def test_fault_is_reported_with_its_key(text: str, fault: str) -> None:
    assert _fault(HEAD + text) == fault


def test_a_faulty_order_with_an_id_says_whom_to_answer_and_nothing_else() -> None:
    opened = read_order(f"{HEAD}target: api\nops: [{{op: delete, path: a}}]".encode())
    assert opened.order == WorkOrder(id="FIX", title="A fix")
    assert opened.fault.startswith("ops.0.op: unknown value 'delete'; input should be 'write'")
    assert read_order(b"id: FIX").order == WorkOrder(id="FIX", title="FIX")
    assert read_order(b"id: ../x\ntitle: A fix").order is None


def test_every_fault_is_reported_at_once_but_not_without_end() -> None:
    fault = _fault("id: ../x\ntitel: A\nops: [" + "{op: x}, " * 50 + "]")
    assert fault.startswith("id: '../x' is not an id")
    assert fault.count("; ops.") == 8
    assert fault.endswith("; 43 more")


def test_a_fault_is_short_whatever_the_file_says() -> None:
    assert len(_fault(f"id: {'x' * 100_000}\n{'k' * 100_000}: 1\n")) < 1000


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "must be a mapping"),
        (b"words", "must be a mapping"),
        (b"\xff\xfe", "line 1 is not valid UTF-8"),
        (b"a: 1\nb: {", "not YAML"),
        (b"a: 1\n\x00", "YAML"),
        (b"a: &x [1]\nb: *x\n", "anchors and aliases are not supported"),
        (b"a: *x\n", "line 1"),
        (b"&k a: 1\n", "anchors and aliases are not supported"),
        (b"<<: {a: 1}\n", "merge keys are not supported"),
        (b"a: !!python/object/apply:os.system [ls]\n", "line 1: the tag"),
        (b"a: !thing x\n", "line 1: the tag"),
        (b"!!set {a}\n", "line 1: the tag"),
        (b"a: 1\na: 2\n", "line 2: duplicate key 'a'"),
        (b"? [a]\n: 1\n", "a key must be plain text"),
        (b"a: 1\n---\nb: 2\n", "a second document"),
        (b"a: " + b"[" * 5000, "nest deeper"),
        (b"a: [" + b"1," * (VALUE_LIMIT + 1) + b"]", f"more than {VALUE_LIMIT} values"),
        (b"a: '" + b"x" * ORDER_LIMIT_BYTES + b"'", "larger than 1000 kB"),
    ],
    ids=range(18),
)
def test_what_could_hurt_is_no_order(content: bytes, text: str) -> None:
    assert text in _fault(content)


def test_aliases_that_would_fill_the_memory_are_not_followed() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]
    assert "anchors and aliases" in _fault("\n".join(lines))


def test_values_nest_as_deep_as_the_limit_and_no_deeper() -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + b"1" + b"]" * depth

    assert parse_plain(nested(DEPTH_LIMIT))
    with pytest.raises(NotPlain, match="nest deeper"):
        parse_plain(nested(DEPTH_LIMIT + 1))


def test_scalars_are_what_they_look_like() -> None:
    found = parse_plain(b"[no, on, 'true', true, ~, 1, 0o7, 1.5, .inf, 2024-01-01, 99999999999999999999]")  # fmt: skip
    assert found == ["no", "on", "true", True, None, 1, "0o7", 1.5, ".inf", "2024-01-01", "99999999999999999999"]  # fmt: skip


@given(st.binary(max_size=300))
def test_no_bytes_make_reading_fail(content: bytes) -> None:
    opened = read_order(content)
    assert opened.order is not None or opened.fault
    assert is_half_written(content) in (True, False)


@given(st.text(alphabet="{}[]:-? &*!|>'\"\n\t,#%@ab1~<", max_size=60))
def test_no_text_of_yaml_signs_makes_reading_fail(text: str) -> None:
    opened = read_order(text.encode())
    assert opened.order is not None or opened.fault


def test_a_large_file_is_no_half_written_one() -> None:
    assert not is_half_written(b"x" * (ORDER_LIMIT_BYTES + 1))
