"""`podium bench operator`: how well messages are understood, for people and for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium.jobs.operator.bench.command as tallying
import podium.jobs.operator.bench.score as bench
from podium.core.decisions import Tier
from podium.jobs.operator.bench.cases import utterance_cases
from podium.jobs.operator.judgement.judge import judge
from tests.integration.cli.command_runner import CommandRunner


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    made = CommandRunner(tmp_path, capsys)
    monkeypatch.setenv("PODIUM_HOME", str(made.home))
    monkeypatch.chdir(made.project)
    return made


@pytest.mark.soak
def test_every_class_and_the_whole_have_a_line(cli: CommandRunner) -> None:
    result = cli.run("bench", "operator", "--half", "held_out")
    assert result.code == 0, result.out
    for name in {case.kind for case in utterance_cases(half="held_out")} | {"all"}:
        assert f"\n{name} " in result.out
    assert " ms (p50), " in result.out


@pytest.mark.soak  # the whole corpus once more
def test_every_set_has_a_line_too(cli: CommandRunner) -> None:
    result = cli.run("bench", "operator")
    assert result.code == 0, result.out
    for name in ("tuning", "practice", "held_out", "all"):
        assert f"\n{name} " in result.out


@pytest.mark.soak  # the whole corpus once more
def test_the_same_in_json_with_every_share(cli: CommandRunner) -> None:
    record = cli.run("bench", "operator", "--json").json
    assert record["total"]["cases"] == len(utterance_cases())
    assert record["total"]["unapproved"] == 0
    assert {"intent", "domain", "tools", "fields", "tier"} < set(record["total"])
    assert [line["name"] for line in record["halves"]] == ["tuning", "practice", "held_out"]
    assert record["wrong"] == []


def test_one_class_of_one_half_alone(cli: CommandRunner) -> None:
    result = cli.run("bench", "operator", "--class", "typos", "--half", "tuning", "--json")
    assert result.code == 0
    assert [line["name"] for line in result.json["classes"]] == ["typos"]
    assert result.json["total"]["cases"] == len(utterance_cases("typos", "tuning"))
    assert result.json["halves"] == []
    assert result.json["false_refusals"]["by_directive"] == 0


def test_unknown_class_is_reported_with_the_known_ones(cli: CommandRunner) -> None:
    result = cli.run("bench", "operator", "--class", "poems")
    assert result.code == 2
    assert "unknown class 'poems'" in result.err
    assert "several-intents" in result.err


def test_a_class_below_its_floor_is_exit_code_1_and_what_was_wrong_can_be_shown(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = utterance_cases("plain")[0].model_copy(update={"tools": ("leads.get",)})
    monkeypatch.setattr("podium.jobs.operator.bench.command.utterance_cases", lambda *_: [case])
    monkeypatch.setattr(tallying, "FLOORS", {"plain": 0.9})
    result = cli.run("bench", "operator", "--show-wrong")
    assert result.code == 1
    assert "plain: 0.0% is below 90%" in result.out
    assert "tools: leads.create instead of leads.get" in result.out


def test_an_act_that_would_go_without_its_approval_is_exit_code_1(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(item for item in utterance_cases() if item.tools == ("quote.finalize",))

    def too_low(*arguments: object, **more: object) -> object:
        found = judge(*arguments, **more)  # type: ignore[arg-type]
        return found.model_copy(update={"risk_tier": Tier.T0})

    monkeypatch.setattr("podium.jobs.operator.bench.command.utterance_cases", lambda *_: [case])
    # As a mistake in the arithmetic would: no reading can bring the tier down.
    monkeypatch.setattr(bench, "judge", too_low)
    result = cli.run("bench", "operator")
    assert result.code == 1
    assert "1 message would be executed without the required approval" in result.out
