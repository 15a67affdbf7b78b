"""`podium candidates`, and what people do with them: approve, reject, deploy."""

from __future__ import annotations

import pytest
import yaml

from podium.cli.error_report import run
from tests.integration.cli.desk import AS_OS_USER, Desk
from tests.integration.cli.sense_rig import break_down, delivered, lay_out, ticked


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
    assert said.out.startswith("no open candidates")
    assert listed(desk, "--all") == {}
    assert not (desk.project / ".podium").exists()
    assert desk.run("candidates", "show", "WO-X").code == 2
    assert desk.run("deploy", "WO-X").code == 2


def test_a_candidate_is_listed_shown_and_delivered_as_shown_by_one_command_and_once(
    desk: Desk,
) -> None:
    (only,) = proposed(desk, "opal_api")
    assert listed(desk) == {only: "waiting"}
    row = desk.run("candidates").out.splitlines()[1].split()
    assert row[:5] == ["waiting", only, "T2", "words", "opal_api"]
    shown = desk.run("candidates", "show", "WO-FIX-OPAL", "--json").json
    words = desk.run("candidates", "show", only)
    assert f"podium deploy {only}" in words.err
    assert "  1. Find out why opal_api fails, and since when\n" in words.out
    said = desk.run("deploy", only)
    assert said.code == 0, said.err
    assert said.out.startswith(f"delivered   {only}\n")
    assert f"bridge/inbox/CLC/{only}.yaml" in said.out
    file = desk.project / "bridge/inbox/CLC" / f"{only}.yaml"
    assert file.read_text() == shown["text"]
    assert yaml.safe_load(shown["text"])["tier"] == "T2"
    before = file.stat()
    again = desk.run("deploy", only)
    assert (again.code, again.out) == (0, said.out)
    assert file.stat() == before
    granted = desk.run("approvals", "--all", "--json").json["approvals"]
    assert [each["grants"][0]["by"] for each in granted] == ["ann"]
    assert listed(desk) == {}
    assert listed(desk, "--all") == {only: "delivered"}


def test_a_yes_by_the_orders_id_is_acted_on_by_the_next_tick_though_nothing_changed(
    desk: Desk,
) -> None:
    (only,) = proposed(desk, "opal_api")
    said = desk.run("approve", "WO-FIX-OPAL_API")
    assert said.code == 0, said.err
    assert f"`podium deploy {only}` delivers it now" in said.err
    assert delivered(desk) == []
    (row,) = desk.run("candidates", "--json").json["candidates"]
    assert (row["state"], row["tier"], row["zones"]) == ("queued", "T2", ["words"])
    tick = ticked(desk, "--if-changed")
    assert (tick["status"], tick["candidates"][0]["state"]) == ("SKIPPED", "delivered")
    assert tick["summary"].endswith(f"WOs_Created=1, WO_IDs=[{only}]")
    assert delivered(desk) == [f"{only}.yaml"]


def test_a_rejected_candidate_is_never_delivered(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    refused = desk.run("reject", only, "--why", "it is being replaced")
    assert refused.code == 0
    assert "what will run" not in refused.out
    assert f"work order {only} for opal_api in words" in refused.out
    assert "it is being replaced" in refused.out
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
    assert "mode sensing delivers nothing" in said.err
    assert listed(desk) == {only: "waiting"}
    assert desk.run("deploy", only, "--mode", "supervised").code == 0
    assert delivered(desk) == [f"{only}.yaml"]


@pytest.mark.soak
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


def perform(desk: Desk, wo_id: str, ops: str) -> None:
    """Give a delivered order operations, and let a worker see it to its end."""
    file = desk.project / "bridge/inbox/CLC" / f"{wo_id}.yaml"
    file.write_text(f"{file.read_text()}ops: {ops}\n")
    desk.run("worker", "--queue", "orders", "--once")


def test_a_candidate_that_a_worker_performed_stands_as_the_worker_answered(desk: Desk) -> None:
    first, second = proposed(desk, "opal_api", "redis")
    assert desk.run("deploy", first).code == 0
    perform(desk, first, "[{op: write, path: g/reports/a.md, content: a}]")
    assert desk.run("deploy", second).code == 0
    perform(desk, second, "[{op: trash, path: CLC/none.md}]")
    ended = listed(desk, "--all")
    assert (ended[first], ended[second]) == ("done", "refused")
    shown = desk.run("candidates", "show", second)
    assert "CLC/none.md" in shown.out
    assert f"bridge/outbox/LIAM/{second}.ack.json" in shown.err
    told = desk.run("sense", "--once").out
    assert f"done        {first}\n" in told
    assert "execute it with" not in told


@pytest.mark.soak
def test_an_order_in_words_that_a_worker_cannot_perform_says_what_it_needs(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    assert "text only: no operations" in desk.run("deploy", only).out
    desk.run("worker", "--queue", "orders", "--once")
    shown = desk.run("candidates", "show", only)
    assert "has no `ops`; write them to 'bridge/claimed/CLC/" in shown.out
    assert "execute it with" not in shown.err
    assert "needs_human" in shown.err


@pytest.mark.soak
def test_a_short_form_means_what_waits_rather_than_what_has_ended(desk: Desk) -> None:
    lay_out(desk, mode="supervised", more="    again_seconds: 0.001\n", failing=("opal_api",))
    (old,) = (each["wo_id"] for each in ticked(desk)["candidates"])
    assert desk.run("deploy", old).code == 0
    new = next(each["wo_id"] for each in ticked(desk)["candidates"] if each["state"] == "waiting")
    assert new != old
    assert desk.run("candidates", "show", "WO-FIX", "--json").json["candidate"]["wo_id"] == new
    assert desk.run("deploy", "WO-FIX").out.startswith(f"delivered   {new}\n")
    said = desk.run("deploy", "WO-FIX")
    assert said.code == 2, "both have ended, so neither is meant more"


def test_every_next_command_names_a_root_that_is_not_here(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(desk, mode="supervised", failing=("opal_api",))
    monkeypatch.chdir("/")
    told = desk.run("sense", "--once").out
    (only,) = listed(desk)
    assert f"podium deploy {only} --project {desk.project.relative_to('/')}\n" in told
    assert f'podium reject {only} --why "…" --project {desk.project.relative_to("/")}\n' in told
    said = desk.run("approve", only)
    assert (
        f"`podium deploy {only} --project {desk.project.relative_to('/')}` delivers it now"
        in said.err
    )
    monkeypatch.chdir(desk.project.parent)
    assert "--project project" in desk.run("deploy", only).out
    monkeypatch.chdir(desk.project)
    here = desk.run("deploy", only).out
    assert f"in bridge/inbox/CLC/{only}.yaml; execute it with `podium worker --once`" in here


def test_a_candidate_that_is_not_there_is_named_with_the_root_that_was_looked_in(
    desk: Desk,
) -> None:
    for _ in range(2):  # without a database, and with one
        for command in (("deploy",), ("candidates", "show")):
            said = desk.run(*command, "WO-X")
            assert said.code == 2
            assert (
                f"no candidate 'WO-X' in '{desk.project}'; list them with `podium candidates --all`"
                in said.err
            )
        proposed(desk, "opal_api")


def test_a_root_may_be_called_root_where_candidates_are_answered(desk: Desk) -> None:
    (only,) = proposed(desk, "opal_api")
    root = ("--root", str(desk.project))
    for command in (("candidates",), ("candidates", "show", only), ("approve", only)):
        said = desk.run(*command, *root, env=AS_OS_USER)
        assert said.code == 0, said.err
    elsewhere = ("--project", str(desk.project.parent))
    assert run([*elsewhere, "deploy", only, *root]) == 0
    assert run([*elsewhere, "reject", only, "--why", "no", *root]) == 1


@pytest.mark.soak
def test_a_yes_that_waits_for_the_quota_can_be_stopped_and_says_what_it_waits_for(
    desk: Desk,
) -> None:
    lay_out(desk, mode="supervised", more="    orders_per_hour: 1\n", failing=("opal_api", "redis"))
    first, second = (each["wo_id"] for each in ticked(desk)["candidates"])
    desk.run("deploy", first)
    late = desk.run("deploy", second)
    assert late.code == 3, "nobody waits with it"
    assert "deferred" in late.out
    assert "every five minutes: " in late.out
    assert delivered(desk) == [f"{first}.yaml"]
    assert listed(desk) == {second: "waiting"}
    said = desk.run("reject", second, "--why", "no")
    assert said.code == 1
    command = said.err.partition("`podium ")[2].partition("`")[0].split()
    assert desk.run(*command).code == 0
    assert listed(desk) == {}
