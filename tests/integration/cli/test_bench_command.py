"""`podium bench`: how well replies are read and duets are played, for people and for scripts."""

from __future__ import annotations

import pytest

import podium.cli.commands.bench_contract as command
from podium.cli.commands.bench_contract import Length
from podium.jobs.duet.bench.failures import CaseScore
from podium.jobs.duet.bench.handoffs import DuetScore, Handoff, KindScore
from podium.testing.replies import Expected, ReplyCase, reply_cases
from tests.integration.cli.command_runner import CommandRunner


@pytest.fixture(autouse=True)
def short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred megabytes are for a person who asks; the figures alone are printed here."""
    sizes = [Length(megabytes=10, seconds=0.1), Length(megabytes=100, seconds=0.5)]
    monkeypatch.setattr(command, "lengths", lambda: iter(sizes))


def test_every_family_and_the_whole_have_a_line_and_the_exit_code_is_0(cli: CommandRunner) -> None:
    result = cli.run("bench", "contract")
    assert result.code == 0
    for family in {case.family for case in reply_cases()}:
        assert family in result.out
    assert "10 MB in 100 ms → 100 MB in 500 ms; " in result.out
    assert "in the last 1,000,000 characters only" in result.out
    assert "MB/s" not in result.out
    assert "takes 5.00 times as long" in result.out


def test_the_same_in_json(cli: CommandRunner) -> None:
    record = cli.run("bench", "contract", "--json").json
    assert record["total"]["wrongly_accepted"] == 0
    assert record["total"]["cases"] == len(reply_cases())
    assert record["total"]["accuracy"] > 0.99
    assert record["ratio"] == 5.0
    assert record["wrong"] == []


def test_one_family_alone(cli: CommandRunner) -> None:
    record = cli.run("bench", "contract", "--family", "thinking", "--json").json
    assert [line["family"] for line in record["families"]] == ["thinking"]


def test_unknown_family_is_reported_with_the_known_ones(cli: CommandRunner) -> None:
    result = cli.run("bench", "contract", "--family", "poems")
    assert result.code == 2
    assert "unknown family 'poems'" in result.err
    assert "cut off" in result.err


def test_a_wrong_payload_accepted_is_exit_code_1_and_can_be_shown(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ReplyCase(
        family="odd", name="a case judged otherwise", contract="verdict",
        text='{"verdict": "APPROVE"}\x1b[0m', expect=Expected(error="missing"),
    )  # fmt: skip
    monkeypatch.setattr(command, "reply_cases", lambda family=None: [case])
    assert cli.run("bench", "contract").code == 1
    result = cli.run("bench", "contract", "--show-wrong")
    assert "accepted wrongly: odd / a case judged otherwise" in result.out
    assert "\x1b" not in result.out
    record = cli.run("bench", "contract", "--show-wrong", "--json").json
    assert record["wrong"][0]["mark"] == "accepted"


def a_duet(**fields: object) -> DuetScore:
    """Marks as they come of a whole bench, which takes minutes and a tmux."""
    ink = KindScore(kind="ink", said=9, exact=8, taken=7, enters=1.5, wrong=0)
    asks = CaseScore(
        name="asks first", kind="modal", expected="NeedsHuman", tries=4, as_expected=4, otherwise=()
    )
    inexact = Handoff(sender="ink", receiver="", way="twice", exact=False, meant=True, copies=1)
    whole = DuetScore(
        pairs=1,
        tasks=2,
        kinds=(ink,),
        handoffs=9,
        exact=8,
        inexact=(inexact,),
        wrong=0,
        hangs=0,
        failed=(),
        troubles=(asks,),
        confusion={"busy": {"busy": 41, "ready": 2}},
    )
    return whole.model_copy(update=dict(fields))


def duet_gives(score: DuetScore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    asked = []

    async def bench(handoffs: int, notify: object) -> DuetScore:
        asked.append(handoffs)
        return score

    monkeypatch.setattr("podium.jobs.duet.bench.handoffs.bench_duet", bench)
    return asked


def test_duets_are_reported_by_kind_by_trouble_and_by_what_was_seen(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = duet_gives(a_duet(), monkeypatch)
    result = cli.run("bench", "duet")
    assert (result.code, asked) == (0, [1000])
    assert result.out.splitlines()[1].split() == ["ink", "9", "8", "7", "1.50", "0"]
    assert (
        "9 messages passed on by 1 pair in 2 tasks: 8 exact, 0 routed wrongly, 0 silent hangs"
        in result.out
    )
    assert "not exact: ink, twice: 1" in result.out
    assert ["busy", "0", "2", "41", "0", "0", "0"] in [
        line.split() for line in result.out.splitlines()
    ]
    record = cli.run("bench", "duet", "--handoffs", "7", "--json").json
    assert asked[-1] == 7
    assert (record["passed"], record["confusion"]["busy"]["ready"]) == (True, 2)


@pytest.mark.parametrize("fault", [{"wrong": 1}, {"hangs": 1}, {"failed": ("\x1b[31mdied",)}])
def test_a_duet_that_went_wrong_is_exit_code_1(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch, fault: dict[str, object]
) -> None:
    duet_gives(a_duet(**fault), monkeypatch)
    result = cli.run("bench", "duet")
    assert result.code == 1
    assert "\x1b" not in result.out


def test_trouble_reported_otherwise_is_exit_code_1(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    hid = a_duet().troubles[0].model_copy(update={"as_expected": 3, "otherwise": ("TimedOut",)})
    duet_gives(a_duet(troubles=(hid,)), monkeypatch)
    result = cli.run("bench", "duet")
    assert result.code == 1
    assert "TimedOut" in result.out
