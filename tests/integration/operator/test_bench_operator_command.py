"""`podium bench operator`: how well messages are understood, for people and for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium.jobs.operator.bench.command as tallying
import podium.jobs.operator.bench.score as bench
from podium.core.decisions import Tier
from podium.jobs.operator.bench.cases import utterance_cases
from podium.jobs.operator.judgement.judge import judge
from tests.integration.cli.desk import Desk


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    made = Desk(tmp_path, capsys)
    monkeypatch.setenv("PODIUM_HOME", str(made.home))
    monkeypatch.chdir(made.project)
    return made


@pytest.mark.soak
def test_each_class_and_the_whole_have_a_line(desk: Desk) -> None:
    told = desk.run("bench", "operator", "--half", "held_out")
    assert told.code == 0, told.out
    for name in {case.kind for case in utterance_cases(half="held_out")} | {"all"}:
        assert f"\n{name} " in told.out
    assert " ms (p50), " in told.out


@pytest.mark.soak  # the whole corpus once more
def test_each_set_has_a_line_too(desk: Desk) -> None:
    told = desk.run("bench", "operator")
    assert told.code == 0, told.out
    for name in ("tuning", "practice", "held_out", "all"):
        assert f"\n{name} " in told.out


@pytest.mark.soak  # the whole corpus once more
def test_the_same_in_json_with_every_share(desk: Desk) -> None:
    record = desk.run("bench", "operator", "--json").json
    assert record["total"]["cases"] == len(utterance_cases())
    assert record["total"]["unapproved"] == 0
    assert {"intent", "domain", "tools", "fields", "tier"} < set(record["total"])
    assert [line["name"] for line in record["halves"]] == ["tuning", "practice", "held_out"]
    assert record["wrong"] == []


def test_one_class_of_one_half_alone(desk: Desk) -> None:
    told = desk.run("bench", "operator", "--class", "typos", "--half", "tuning", "--json")
    assert told.code == 0
    assert [line["name"] for line in told.json["classes"]] == ["typos"]
    assert told.json["total"]["cases"] == len(utterance_cases("typos", "tuning"))
    assert told.json["halves"] == []


def test_an_unknown_class_is_told_with_those_there_are(desk: Desk) -> None:
    told = desk.run("bench", "operator", "--class", "poems")
    assert told.code == 2
    assert "unknown class 'poems'" in told.err
    assert "several-intents" in told.err


def test_a_class_below_its_floor_is_exit_code_1_and_what_was_wrong_can_be_shown(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = utterance_cases("plain")[0].model_copy(update={"tools": ("leads.get",)})
    monkeypatch.setattr("podium.jobs.operator.bench.command.utterance_cases", lambda *_: [case])
    monkeypatch.setattr(tallying, "FLOORS", {"plain": 0.9})
    told = desk.run("bench", "operator", "--show-wrong")
    assert told.code == 1
    assert "plain: 0.0% is below 90%" in told.out
    assert "tools: leads.create instead of leads.get" in told.out


def test_an_act_that_would_go_without_its_approval_is_exit_code_1(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(each for each in utterance_cases() if each.tools == ("quote.finalize",))

    def too_low(*arguments: object, **more: object) -> object:
        found = judge(*arguments, **more)  # type: ignore[arg-type]
        return found.model_copy(update={"risk_tier": Tier.T0})

    monkeypatch.setattr("podium.jobs.operator.bench.command.utterance_cases", lambda *_: [case])
    # As a mistake in the arithmetic would: no reading can bring the tier down.
    monkeypatch.setattr(bench, "judge", too_low)
    told = desk.run("bench", "operator")
    assert told.code == 1
    assert "1 message would be executed without the required approval" in told.out
