"""`podium candidates`, and what people do with them: approve, reject, deploy."""

from __future__ import annotations

import pytest
import yaml

from podium.cli.error_report import run
from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner
from tests.integration.cli.sense_harness import break_down, delivered, lay_out, ticked


@pytest.fixture(autouse=True)
def _no_mode_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GMX_ORCH_MODE", raising=False)


def proposed(cli: CommandRunner, *names: str, mode: str = "supervised") -> list[str]:
    """Candidates about these broken things, by id."""
    lay_out(cli, mode=mode, failing=names)
    return [candidate["wo_id"] for candidate in ticked(cli)["candidates"]]


def listed(cli: CommandRunner, *words: str) -> dict[str, str]:
    found = cli.run("candidates", *words, "--json").json["candidates"]
    return {item["wo_id"]: item["state"] for item in found}


def test_where_nothing_was_proposed_the_list_is_empty_and_no_database_is_made(
    cli: CommandRunner,
) -> None:
    result = cli.run("candidates")
    assert result.code == 0
    assert result.out.startswith("no open candidates")
    assert listed(cli, "--all") == {}
    assert not (cli.project / ".podium").exists()
    assert cli.run("candidates", "show", "WO-X").code == 2
    assert cli.run("deploy", "WO-X").code == 2


def test_a_candidate_is_listed_shown_and_delivered_as_shown_by_one_command_and_once(
    cli: CommandRunner,
) -> None:
    (only,) = proposed(cli, "opal_api")
    assert listed(cli) == {only: "waiting"}
    row = cli.run("candidates").out.splitlines()[1].split()
    assert row[:5] == ["waiting", only, "T2", "words", "opal_api"]
    shown = cli.run("candidates", "show", "WO-FIX-OPAL", "--json").json
    words = cli.run("candidates", "show", only)
    assert f"podium deploy {only}" in words.err
    assert "  1. Find out why opal_api fails, and since when\n" in words.out
    result = cli.run("deploy", only)
    assert result.code == 0, result.err
    assert result.out.startswith(f"delivered   {only}\n")
    assert f"bridge/inbox/CLC/{only}.yaml" in result.out
    file = cli.project / "bridge/inbox/CLC" / f"{only}.yaml"
    assert file.read_text() == shown["text"]
    assert yaml.safe_load(shown["text"])["tier"] == "T2"
    before = file.stat()
    again = cli.run("deploy", only)
    assert (again.code, again.out) == (0, result.out)
    assert file.stat() == before
    granted = cli.run("approvals", "--all", "--json").json["approvals"]
    assert [item["grants"][0]["by"] for item in granted] == ["ann"]
    assert listed(cli) == {}
    assert listed(cli, "--all") == {only: "delivered"}


def test_a_yes_by_the_orders_id_is_acted_on_by_the_next_tick_though_nothing_changed(
    cli: CommandRunner,
) -> None:
    (only,) = proposed(cli, "opal_api")
    result = cli.run("approve", "WO-FIX-OPAL_API")
    assert result.code == 0, result.err
    assert f"`podium deploy {only}` delivers it now" in result.err
    assert delivered(cli) == []
    (row,) = cli.run("candidates", "--json").json["candidates"]
    assert (row["state"], row["tier"], row["zones"]) == ("queued", "T2", ["words"])
    tick = ticked(cli, "--if-changed")
    assert (tick["status"], tick["candidates"][0]["state"]) == ("SKIPPED", "delivered")
    assert tick["summary"].endswith(f"WOs_Created=1, WO_IDs=[{only}]")
    assert delivered(cli) == [f"{only}.yaml"]


def test_a_rejected_candidate_is_never_delivered(cli: CommandRunner) -> None:
    (only,) = proposed(cli, "opal_api")
    refused = cli.run("reject", only, "--why", "it is being replaced")
    assert refused.code == 0
    assert "what will run" not in refused.out
    assert f"work order {only} for opal_api in words" in refused.out
    assert "it is being replaced" in refused.out
    result = cli.run("deploy", only)
    assert result.code == 4
    assert result.out.startswith(f"rejected    {only}\n")
    assert "it is being replaced" in result.out
    assert cli.run("approve", only).code == 1
    assert delivered(cli) == []


def test_a_beginning_that_fits_several_is_refused_with_all_of_them(cli: CommandRunner) -> None:
    both = proposed(cli, "opal_api", "opal_db")
    for command in (("approve",), ("deploy",), ("candidates", "show")):
        result = cli.run(*command, "WO-FIX-OPAL")
        assert result.code == 2
        assert all(item in result.err for item in both)
    assert listed(cli) == dict.fromkeys(both, "waiting")
    assert cli.run("approve", "WO-NOBODY").code == 2


def test_in_a_dry_run_a_yes_is_recorded_and_the_move_is_left_to_the_person(
    cli: CommandRunner,
) -> None:
    both = proposed(cli, "opal_api", "redis", mode="dry-run")
    first, second = both
    move = "mv g/reports/wo_candidates/{0}.yaml bridge/inbox/CLC/"
    assert move.format(first) in cli.run("approve", first).err
    for wo_id in both:
        result = cli.run("deploy", wo_id)
        assert result.code == 3
        assert result.out.startswith(f"approved    {wo_id}\n")
        assert move.format(wo_id) in result.out
        assert (cli.project / "g/reports/wo_candidates" / f"{wo_id}.yaml").is_file()
    assert delivered(cli) == []
    assert listed(cli, "--all")[second] == "approved"


def test_a_mode_that_was_lowered_since_keeps_a_candidate_waiting(cli: CommandRunner) -> None:
    (only,) = proposed(cli, "opal_api")
    cli.says("flows: {sense: {planner: rules, mode: sensing}}\n")
    result = cli.run("deploy", only)
    assert result.code == 4
    assert "mode sensing delivers nothing" in result.err
    assert listed(cli) == {only: "waiting"}
    assert cli.run("deploy", only, "--mode", "supervised").code == 0
    assert delivered(cli) == [f"{only}.yaml"]


@pytest.mark.soak
def test_mode_set_by_a_person_for_one_tick_holds_for_its_results(cli: CommandRunner) -> None:
    lay_out(cli, failing=("opal_api",))
    (only,) = (
        candidate["wo_id"] for candidate in ticked(cli, "--mode", "supervised")["candidates"]
    )
    assert cli.run("deploy", only).code == 0
    break_down(cli, "redis")
    before, logged = (candidate["wo_id"] for candidate in ticked(cli)["candidates"])
    assert before == only, "a tick tells what became of earlier ones, too"
    result = cli.run("deploy", logged)
    assert result.code == 4
    assert result.out.startswith(f"logged      {logged}\n")
    assert delivered(cli) == [f"{only}.yaml"]


def perform(cli: CommandRunner, wo_id: str, ops: str) -> None:
    """Give a delivered order operations, and let a worker see it to its end."""
    file = cli.project / "bridge/inbox/CLC" / f"{wo_id}.yaml"
    file.write_text(f"{file.read_text()}ops: {ops}\n")
    cli.run("worker", "--queue", "orders", "--once")


def test_candidate_performed_by_a_worker_keeps_the_workers_answer(cli: CommandRunner) -> None:
    first, second = proposed(cli, "opal_api", "redis")
    assert cli.run("deploy", first).code == 0
    perform(cli, first, "[{op: write, path: g/reports/a.md, content: a}]")
    assert cli.run("deploy", second).code == 0
    perform(cli, second, "[{op: trash, path: CLC/none.md}]")
    ended = listed(cli, "--all")
    assert (ended[first], ended[second]) == ("done", "refused")
    shown = cli.run("candidates", "show", second)
    assert "CLC/none.md" in shown.out
    assert f"bridge/outbox/LIAM/{second}.ack.json" in shown.err
    output = cli.run("sense", "--once").out
    assert f"done        {first}\n" in output
    assert "execute it with" not in output


@pytest.mark.soak
def test_an_order_in_words_that_a_worker_cannot_perform_says_what_it_needs(
    cli: CommandRunner,
) -> None:
    (only,) = proposed(cli, "opal_api")
    assert "text only: no operations" in cli.run("deploy", only).out
    cli.run("worker", "--queue", "orders", "--once")
    shown = cli.run("candidates", "show", only)
    assert "has no `ops`; write them to 'bridge/claimed/CLC/" in shown.out
    assert "execute it with" not in shown.err
    assert "needs_human" in shown.err


@pytest.mark.soak
def test_a_short_form_means_what_waits_rather_than_what_has_ended(cli: CommandRunner) -> None:
    lay_out(cli, mode="supervised", more="    again_seconds: 0.001\n", failing=("opal_api",))
    (old,) = (candidate["wo_id"] for candidate in ticked(cli)["candidates"])
    assert cli.run("deploy", old).code == 0
    new = next(
        candidate["wo_id"]
        for candidate in ticked(cli)["candidates"]
        if candidate["state"] == "waiting"
    )
    assert new != old
    assert cli.run("candidates", "show", "WO-FIX", "--json").json["candidate"]["wo_id"] == new
    assert cli.run("deploy", "WO-FIX").out.startswith(f"delivered   {new}\n")
    result = cli.run("deploy", "WO-FIX")
    assert result.code == 2, "both have ended, so neither is meant more"


def test_every_next_command_names_a_root_that_is_not_here(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(cli, mode="supervised", failing=("opal_api",))
    monkeypatch.chdir("/")
    output = cli.run("sense", "--once").out
    (only,) = listed(cli)
    assert f"podium deploy {only} --project {cli.project.relative_to('/')}\n" in output
    assert f'podium reject {only} --why "…" --project {cli.project.relative_to("/")}\n' in output
    result = cli.run("approve", only)
    assert (
        f"`podium deploy {only} --project {cli.project.relative_to('/')}` delivers it now"
        in result.err
    )
    monkeypatch.chdir(cli.project.parent)
    assert "--project project" in cli.run("deploy", only).out
    monkeypatch.chdir(cli.project)
    here = cli.run("deploy", only).out
    assert f"in bridge/inbox/CLC/{only}.yaml; execute it with `podium worker --once`" in here


def test_a_candidate_that_is_not_there_is_named_with_the_root_that_was_looked_in(
    cli: CommandRunner,
) -> None:
    for _ in range(2):  # without a database, and with one
        for command in (("deploy",), ("candidates", "show")):
            result = cli.run(*command, "WO-X")
            assert result.code == 2
            assert (
                f"no candidate 'WO-X' in '{cli.project}'; list them with `podium candidates --all`"
                in result.err
            )
        proposed(cli, "opal_api")


def test_a_root_may_be_called_root_where_candidates_are_answered(cli: CommandRunner) -> None:
    (only,) = proposed(cli, "opal_api")
    root = ("--root", str(cli.project))
    for command in (("candidates",), ("candidates", "show", only), ("approve", only)):
        result = cli.run(*command, *root, env=AS_OS_USER)
        assert result.code == 0, result.err
    elsewhere = ("--project", str(cli.project.parent))
    assert run([*elsewhere, "deploy", only, *root]) == 0
    assert run([*elsewhere, "reject", only, "--why", "no", *root]) == 1


@pytest.mark.soak
def test_a_yes_that_waits_for_the_quota_can_be_stopped_and_says_what_it_waits_for(
    cli: CommandRunner,
) -> None:
    lay_out(cli, mode="supervised", more="    orders_per_hour: 1\n", failing=("opal_api", "redis"))
    first, second = (candidate["wo_id"] for candidate in ticked(cli)["candidates"])
    cli.run("deploy", first)
    late = cli.run("deploy", second)
    assert late.code == 3, "nobody waits with it"
    assert "deferred" in late.out
    assert "every five minutes: " in late.out
    assert delivered(cli) == [f"{first}.yaml"]
    assert listed(cli) == {second: "waiting"}
    result = cli.run("reject", second, "--why", "no")
    assert result.code == 1
    command = result.err.partition("`podium ")[2].partition("`")[0].split()
    assert cli.run(*command).code == 0
    assert listed(cli) == {}
