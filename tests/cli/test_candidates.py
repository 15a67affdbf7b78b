"""`podium candidates`, and what people do with them: approve, reject, deploy."""

from __future__ import annotations

import pytest
import yaml

from tests.cli.desk import Desk
from tests.cli.sense_rig import break_down, delivered, lay_out, ticked


@pytest.fixture(autouse=True)
def _no_mode_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GMX_ORCH_MODE", raising=False)


def proposed(desk: Desk, *names: str, mode: str = "supervised") -> list[str]:
    """Candidates about these broken things, by id."""
    lay_out(desk, mode=mode, failing=names)
    return [each["wo_id"] for each in ticked(desk)["candidates"]]


def listed(desk: Desk, *words: str) -> dict[str, str]:
    found = desk.run("candidates", *words, "--json").json["candidates"]
    return {each["wo_id"]: each["state"] for each in found}


def test_where_nothing_was_proposed_the_list_is_empty_and_no_database_is_made(desk: Desk) -> None:
    said = desk.run("candidates")
    assert said.code == 0
    assert said.out.startswith("no candidate waits")
    assert listed(desk, "--all") == {}
    assert not (desk.project / ".podium").exists()
    assert desk.run("candidates", "show", "WO-X").code == 2
    assert desk.run("deploy", "WO-X").code == 2


def test_those_that_wait_are_listed_and_with_all_also_those_that_ended(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    assert listed(desk) == {only: "waiting"}
    row = desk.run("candidates").out.splitlines()[1].split()
    assert row[:5] == ["waiting", only, "T2", "words", "opal_api"]
    assert desk.run("deploy", only).code == 0
    assert listed(desk) == {}
    assert listed(desk, "--all") == {only: "delivered"}


def test_a_candidate_is_shown_with_the_very_order_that_a_yes_would_deliver(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    shown = desk.run("candidates", "show", "WO-FIX-OPAL", "--json").json
    words = desk.run("candidates", "show", only)
    assert f"podium deploy {only}" in words.err
    assert "  1. Find out since when and why opal_api fails\n" in words.out
    assert desk.run("deploy", only).code == 0
    file = desk.project / "bridge/inbox/CLC" / f"{only}.yaml"
    assert file.read_text() == shown["text"]
    assert yaml.safe_load(shown["text"])["tier"] == "T2"


def test_one_command_approves_and_delivers_and_a_second_time_changes_nothing(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    said = desk.run("deploy", only)
    assert said.code == 0, said.err
    assert said.out.startswith(f"delivered   {only}\n")
    assert f"bridge/inbox/CLC/{only}.yaml" in said.out
    before = (desk.project / "bridge/inbox/CLC" / f"{only}.yaml").stat()
    again = desk.run("deploy", only)
    assert (again.code, again.out) == (0, said.out)
    assert (desk.project / "bridge/inbox/CLC" / f"{only}.yaml").stat() == before
    granted = desk.run("approvals", "--all", "--json").json["approvals"]
    assert [each["grants"][0]["by"] for each in granted] == ["ann"]


def test_a_yes_by_the_orders_id_is_acted_on_by_the_next_tick_though_nothing_changed(
    desk: Desk,
) -> None:
    (only,) = proposed(desk, "opal_api")
    said = desk.run("approve", "WO-FIX-OPAL_API")
    assert said.code == 0, said.err
    assert f"`podium deploy {only}` does so at once" in said.err
    assert delivered(desk) == []
    tick = ticked(desk, "--if-changed")
    assert (tick["status"], tick["candidates"][0]["state"]) == ("SKIPPED", "delivered")
    assert tick["summary"].endswith(f"WOs_Created=1, WO_IDs=[{only}]")
    assert delivered(desk) == [f"{only}.yaml"]


def test_a_rejected_candidate_is_never_delivered(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    assert desk.run("reject", only, "--why", "it is being replaced").code == 0
    said = desk.run("deploy", only)
    assert said.code == 4
    assert said.out.startswith(f"rejected    {only}\n")
    assert "it is being replaced" in said.out
    assert desk.run("approve", only).code == 1
    assert delivered(desk) == []


def test_a_beginning_that_fits_several_is_refused_with_all_of_them(desk: Desk) -> None:
    both = proposed(desk, "opal_api", "opal_db")
    for command in (("approve",), ("deploy",), ("candidates", "show")):
        said = desk.run(*command, "WO-FIX-OPAL")
        assert said.code == 2
        assert all(each in said.err for each in both)
    assert listed(desk) == dict.fromkeys(both, "waiting")
    assert desk.run("approve", "WO-NOBODY").code == 2


def test_in_a_dry_run_a_yes_is_recorded_and_the_move_is_left_to_the_person(desk: Desk) -> None:
    both = proposed(desk, "opal_api", "redis", mode="dry-run")
    first, second = both
    move = "mv g/reports/wo_candidates/{0}.yaml bridge/inbox/CLC/"
    assert move.format(first) in desk.run("approve", first).err
    for wo_id in both:
        said = desk.run("deploy", wo_id)
        assert said.code == 3
        assert said.out.startswith(f"approved    {wo_id}\n")
        assert move.format(wo_id) in said.out
        assert (desk.project / "g/reports/wo_candidates" / f"{wo_id}.yaml").is_file()
    assert delivered(desk) == []
    assert listed(desk, "--all")[second] == "approved"


def test_a_mode_that_was_lowered_since_keeps_a_candidate_waiting(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    desk.says("flows: {sense: {planner: rules, mode: sensing}}\n")
    said = desk.run("deploy", only)
    assert said.code == 4
    assert "the mode is sensing" in said.err
    assert listed(desk) == {only: "waiting"}
    assert desk.run("deploy", only, "--mode", "supervised").code == 0
    assert delivered(desk) == [f"{only}.yaml"]


def test_a_mode_that_a_person_said_for_one_tick_holds_for_what_came_of_it(desk: Desk) -> None:
    lay_out(desk, failing=("opal_api",))
    (only,) = (each["wo_id"] for each in ticked(desk, "--mode", "supervised")["candidates"])
    assert desk.run("deploy", only).code == 0
    break_down(desk, "redis")
    before, logged = (each["wo_id"] for each in ticked(desk)["candidates"])
    assert before == only, "a tick tells what became of earlier ones, too"
    said = desk.run("deploy", logged)
    assert said.code == 4
    assert said.out.startswith(f"logged      {logged}\n")
    assert delivered(desk) == [f"{only}.yaml"]


def test_an_order_beyond_the_quota_waits_and_nobody_waits_with_it(desk: Desk) -> None:
    lay_out(desk, mode="supervised", more="    orders_per_hour: 1\n", failing=("opal_api", "redis"))
    first, second = (each["wo_id"] for each in ticked(desk)["candidates"])
    assert desk.run("deploy", first).code == 0
    said = desk.run("deploy", second)
    assert said.code == 3
    assert "put off" in said.out
    assert delivered(desk) == [f"{first}.yaml"]
    assert listed(desk) == {second: "waiting"}
