"""`podium sense trust`: earned by answers, granted by a person alone."""

from __future__ import annotations

import pytest

from podium.cli.error_report import run
from tests.integration.cli.desk import Desk
from tests.integration.cli.sense_rig import break_down, delivered, lay_out, ticked
from tests.integration.cli.test_on_terminals import at_a_terminal


@pytest.fixture(autouse=True)
def _no_mode_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GMX_ORCH_MODE", raising=False)


def agreed(desk: Desk) -> None:
    """One yes in supervised mode, where one is enough to propose a promotion."""
    lay_out(desk, mode="supervised", more="    promote_after: 1\n", failing=("opal_api",))
    (only,) = (each["wo_id"] for each in ticked(desk)["candidates"])
    assert desk.run("deploy", only).code == 0


def standing(desk: Desk) -> dict[str, object]:
    (found,) = desk.run("sense", "trust", "--json").json["standings"]
    return dict(found)


def test_where_nobody_said_anything_nothing_is_earned(desk: Desk) -> None:
    said = desk.run("sense", "trust")
    assert (said.code, said.out[:29]) == (0, "no target has earned autonomy")
    refused = desk.run("sense", "trust", "promote", "opal_api", "--yes")
    assert refused.code == 4
    assert desk.run("sense", "trust", "demote", "opal_api").code == 2


def test_answers_are_counted_and_a_promotion_is_proposed(desk: Desk) -> None:
    agreed(desk)
    said = desk.run("sense", "trust")
    head, row = said.out.splitlines()
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
    assert standing(desk)["proposes"] is True


def test_too_few_agreements_are_refused_unless_a_person_insists(desk: Desk) -> None:
    agreed(desk)
    desk.says("flows: {sense: {planner: rules, promote_after: 3}}\n")
    said = desk.run("sense", "trust", "promote", "opal_api", "--yes")
    assert said.code == 4
    assert "1 in words; 3 are required" in said.err
    for words in (("--zone", "words"), ("--zone", "state")):
        assert desk.run("sense", "trust", "promote", "opal_api", *words, "--yes").code == 4
    assert standing(desk)["granted"] is None
    given = desk.run("sense", "trust", "promote", "opal_api", "--anyway", "--up-to", "t1", "--yes")
    assert given.code == 0, given.err
    assert (standing(desk)["granted"], standing(desk)["granted_by"]) == ("T1", "ann")
    assert desk.run("sense", "trust", "promote", "opal_api", "--up-to", "T4").code == 2


def test_a_name_that_nothing_proves_grants_no_autonomy(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed(desk)
    monkeypatch.setenv("PODIUM_USER", "bob")
    said = desk.run("sense", "trust", "promote", "opal_api", "--yes")
    assert (said.code, "a name alone proves nothing" in said.err) == (2, True)
    assert standing(desk)["granted"] is None
    monkeypatch.delenv("PODIUM_USER")
    said = desk.run("sense", "trust", "promote", "opal_api", stdin=b"")
    assert (said.code, "--yes" in said.err) == (2, True), "nobody is there to say yes"
    assert standing(desk)["granted"] is None
    root = ("--root", str(desk.project))
    elsewhere = ("--project", str(desk.project.parent), "sense", "trust")
    assert run([*elsewhere, "promote", "opal_api", "--yes", *root]) == 0
    assert standing(desk)["granted_by"] == "ann"
    assert run([*elsewhere, "demote", "opal_api", *root]) == 0
    assert standing(desk)["granted"] is None


@pytest.mark.soak
def test_at_a_terminal_a_person_types_yes(desk: Desk) -> None:
    agreed(desk)
    for typed, code, granted in (("y\n", 4, None), ("yes\n", 0, "T2")):
        left, shown = at_a_terminal(desk, typed, "sense", "trust", "promote", "opal_api")
        assert left == code, shown
        assert "orders up to T2 would be delivered without approval" in " ".join(shown.split())
        assert standing(desk)["granted"] == granted


@pytest.mark.soak
def test_what_was_granted_is_delivered_unasked_until_it_is_taken_back(desk: Desk) -> None:
    agreed(desk)
    assert desk.run("sense", "trust", "promote", "opal_api", "--yes").code == 0
    desk.says("flows: {sense: {planner: rules, mode: autonomous, again_seconds: 0.001}}\n")
    tick = ticked(desk)
    states = {each["state"] for each in tick["candidates"]}
    assert states == {"delivered"}
    assert len(delivered(desk)) == 2
    taken = desk.run("sense", "trust", "demote", "opal_api", "--why", "made it worse")
    assert taken.code == 0
    assert "made it worse" in taken.err
    break_down(desk, "opal_api", "redis")
    by_target = {each["target"]: each["state"] for each in ticked(desk)["candidates"]}
    assert by_target == {"opal_api": "waiting", "redis": "waiting"}


def test_a_tick_tells_what_was_delivered_unasked_by_whose_word_and_what_was_earned_and_lost(
    desk: Desk,
) -> None:
    agreed(desk)
    earned = desk.run("sense", "--once").out
    assert (
        "trust       opal_api in words has earned autonomy up to T2; grant it with `podium sense trust"
        in earned
    )
    assert "\ntrust " not in desk.run("sense", "--once").out, "once is enough"
    desk.run("sense", "trust", "promote", "opal_api", "--yes")
    (row,) = desk.run("sense", "trust").out.splitlines()[1:]
    assert row.endswith("for a higher tier after 1 more")
    desk.says("flows: {sense: {planner: rules, mode: autonomous, again_seconds: 0.001}}\n")
    assert (
        "delivered without approval, with autonomy granted by ann"
        in desk.run("sense", "--once").out
    )
    desk.run("sense", "trust", "demote", "opal_api", "--why", "made it worse")
    lost = desk.run("sense", "--once").out
    assert "trust       opal_api in words lost its autonomy" in lost
    assert "made it worse" in lost
