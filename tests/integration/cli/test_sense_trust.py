"""`podium sense trust`: earned by answers, granted by a person alone."""

from __future__ import annotations

import pytest

from podium.cli.error_report import run
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.sense_harness import break_down, delivered, lay_out, ticked
from tests.integration.cli.test_on_terminals import at_a_terminal


@pytest.fixture(autouse=True)
def _no_mode_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GMX_ORCH_MODE", raising=False)


def agreed(cli: CommandRunner) -> None:
    """One yes in supervised mode, where one is enough to propose a promotion."""
    lay_out(cli, mode="supervised", more="    promote_after: 1\n", failing=("opal_api",))
    (only,) = (candidate["wo_id"] for candidate in ticked(cli)["candidates"])
    assert cli.run("deploy", only).code == 0


def trust_status(cli: CommandRunner) -> dict[str, object]:
    (found,) = cli.run("sense", "trust", "--json").json["standings"]
    return dict(found)


def test_without_any_feedback_nothing_is_earned(cli: CommandRunner) -> None:
    result = cli.run("sense", "trust")
    assert (result.code, result.out[:29]) == (0, "no target has earned autonomy")
    refused = cli.run("sense", "trust", "promote", "opal_api", "--yes")
    assert refused.code == 4
    assert cli.run("sense", "trust", "demote", "opal_api").code == 2


def test_answers_are_counted_and_a_promotion_is_proposed(cli: CommandRunner) -> None:
    agreed(cli)
    result = cli.run("sense", "trust")
    head, row = result.out.splitlines()
    assert head.split() == [
        *("TARGET", "ZONE", "AGREED", "DISAGREED", "INCIDENTS", "GRANTED", "PROPOSAL")
    ]
    assert row.split() == [
        "opal_api",
        "words",
        "1",
        "0",
        "0",
        "nothing",
        *["promote", "up", "to", "T2"],
    ]
    assert trust_status(cli)["proposes"] is True


def test_too_few_agreements_are_refused_unless_a_person_insists(cli: CommandRunner) -> None:
    agreed(cli)
    cli.says("flows: {sense: {planner: rules, promote_after: 3}}\n")
    result = cli.run("sense", "trust", "promote", "opal_api", "--yes")
    assert result.code == 4
    assert "1 in words; 3 are required" in result.err
    for words in (("--zone", "words"), ("--zone", "state")):
        assert cli.run("sense", "trust", "promote", "opal_api", *words, "--yes").code == 4
    assert trust_status(cli)["granted"] is None
    given = cli.run("sense", "trust", "promote", "opal_api", "--anyway", "--up-to", "t1", "--yes")
    assert given.code == 0, given.err
    assert (trust_status(cli)["granted"], trust_status(cli)["granted_by"]) == ("T1", "ann")
    assert cli.run("sense", "trust", "promote", "opal_api", "--up-to", "T4").code == 2


def test_a_name_that_nothing_proves_grants_no_autonomy(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed(cli)
    monkeypatch.setenv("PODIUM_USER", "bob")
    result = cli.run("sense", "trust", "promote", "opal_api", "--yes")
    assert (result.code, "a name alone proves nothing" in result.err) == (2, True)
    assert trust_status(cli)["granted"] is None
    monkeypatch.delenv("PODIUM_USER")
    result = cli.run("sense", "trust", "promote", "opal_api", stdin=b"")
    assert (result.code, "--yes" in result.err) == (2, True), "nobody is there to say yes"
    assert trust_status(cli)["granted"] is None
    root = ("--root", str(cli.project))
    elsewhere = ("--project", str(cli.project.parent), "sense", "trust")
    assert run([*elsewhere, "promote", "opal_api", "--yes", *root]) == 0
    assert trust_status(cli)["granted_by"] == "ann"
    assert run([*elsewhere, "demote", "opal_api", *root]) == 0
    assert trust_status(cli)["granted"] is None


@pytest.mark.soak
def test_at_a_terminal_a_person_types_yes(cli: CommandRunner) -> None:
    agreed(cli)
    for typed, code, granted in (("y\n", 4, None), ("yes\n", 0, "T2")):
        left, shown = at_a_terminal(cli, typed, "sense", "trust", "promote", "opal_api")
        assert left == code, shown
        assert "orders up to T2 would be delivered without approval" in " ".join(shown.split())
        assert trust_status(cli)["granted"] == granted


@pytest.mark.soak
def test_what_was_granted_is_delivered_unasked_until_it_is_taken_back(cli: CommandRunner) -> None:
    agreed(cli)
    assert cli.run("sense", "trust", "promote", "opal_api", "--yes").code == 0
    cli.says("flows: {sense: {planner: rules, mode: autonomous, again_seconds: 0.001}}\n")
    tick = ticked(cli)
    states = {candidate["state"] for candidate in tick["candidates"]}
    assert states == {"delivered"}
    assert len(delivered(cli)) == 2
    taken = cli.run("sense", "trust", "demote", "opal_api", "--why", "made it worse")
    assert taken.code == 0
    assert "made it worse" in taken.err
    break_down(cli, "opal_api", "redis")
    by_target = {candidate["target"]: candidate["state"] for candidate in ticked(cli)["candidates"]}
    assert by_target == {"opal_api": "waiting", "redis": "waiting"}


def test_tick_reports_what_was_delivered_unasked_on_whose_authority_and_trust_earned_and_lost(
    cli: CommandRunner,
) -> None:
    agreed(cli)
    earned = cli.run("sense", "--once").out
    assert (
        "trust       opal_api in words has earned autonomy up to T2; grant it with `podium sense trust"
        in earned
    )
    assert "\ntrust " not in cli.run("sense", "--once").out, "once is enough"
    cli.run("sense", "trust", "promote", "opal_api", "--yes")
    (row,) = cli.run("sense", "trust").out.splitlines()[1:]
    assert row.endswith("for a higher tier after 1 more")
    cli.says("flows: {sense: {planner: rules, mode: autonomous, again_seconds: 0.001}}\n")
    assert (
        "delivered without approval, with autonomy granted by ann" in cli.run("sense", "--once").out
    )
    cli.run("sense", "trust", "demote", "opal_api", "--why", "made it worse")
    lost = cli.run("sense", "--once").out
    assert "trust       opal_api in words lost its autonomy" in lost
    assert "made it worse" in lost
