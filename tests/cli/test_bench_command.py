"""`podium bench contract`: how well replies are read, for people and for scripts."""

from __future__ import annotations

import pytest

import podium.cli.commands.bench as command
from podium.testing.replies import Expected, ReplyCase, reply_cases
from podium.wiring.bench_contract import Length
from tests.cli.desk import Desk


@pytest.fixture(autouse=True)
def short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred megabytes are for a person who asks; the figures alone are printed here."""
    sizes = [Length(megabytes=10, seconds=0.1), Length(megabytes=100, seconds=0.5)]
    monkeypatch.setattr(command, "lengths", lambda: iter(sizes))


def test_each_family_and_the_whole_have_a_line_and_the_exit_code_is_0(desk: Desk) -> None:
    told = desk.run("bench", "contract")
    assert told.code == 0
    for family in {case.family for case in reply_cases()}:
        assert family in told.out
    assert "10 MB in 100 ms → 100 MB in 500 ms; " in told.out
    assert "in the last 1,000,000 characters alone" in told.out
    assert "MB/s" not in told.out
    assert "takes 5.00 times as long" in told.out


def test_the_same_in_json(desk: Desk) -> None:
    record = desk.run("bench", "contract", "--json").json
    assert record["total"]["wrongly_accepted"] == 0
    assert record["total"]["cases"] == len(reply_cases())
    assert record["total"]["accuracy"] > 0.99
    assert record["ratio"] == 5.0
    assert record["wrong"] == []


def test_one_family_alone(desk: Desk) -> None:
    record = desk.run("bench", "contract", "--family", "thinking", "--json").json
    assert [line["family"] for line in record["families"]] == ["thinking"]


def test_an_unknown_family_is_told_with_those_there_are(desk: Desk) -> None:
    told = desk.run("bench", "contract", "--family", "poems")
    assert told.code == 2
    assert "no family 'poems'" in told.err
    assert "cut off" in told.err


def test_a_wrong_payload_accepted_is_exit_code_1_and_can_be_shown(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ReplyCase(
        family="odd", name="a case judged otherwise", contract="verdict",
        text='{"verdict": "APPROVE"}\x1b[0m', expect=Expected(error="missing"),
    )  # fmt: skip
    monkeypatch.setattr(command, "reply_cases", lambda family=None: [case])
    assert desk.run("bench", "contract").code == 1
    told = desk.run("bench", "contract", "--show-wrong")
    assert "accepted wrongly: odd / a case judged otherwise" in told.out
    assert "\x1b" not in told.out
    record = desk.run("bench", "contract", "--show-wrong", "--json").json
    assert record["wrong"][0]["mark"] == "accepted"
