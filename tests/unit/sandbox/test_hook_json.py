"""The hook client's JSON is read and written as `json` does it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox import hook_client

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_what_is_written_is_what_json_writes_and_reads_back(value: object) -> None:
    text = json.dumps(value)
    assert hook_client.write_json(value) == text
    assert hook_client.read_json(f" \n{text}\t\r\n".encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"{",
        b"{}{}",
        b"{} x",
        b"nul",
        b"'a'",
        b"[1,]",
        b'{"a"}',
        b'"\n"',
        b"\xff",
        b"\x00",
    ],
)
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        hook_client.read_json(text)


def test_what_json_does_not_have_is_not_written() -> None:
    with pytest.raises(TypeError, match="set cannot be written as JSON"):
        hook_client.write_json({"a": set()})


def test_without_the_c_half_it_is_slower_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_client, "_scan", None)  # as on a Python without it
    monkeypatch.setattr(hook_client, "_write", None)
    assert hook_client.read_json(hook_client.write_json({"a": [1, "é"]}).encode()) == {
        "a": [1, "é"]
    }
