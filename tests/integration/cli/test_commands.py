"""Each command: what it says, in words and in JSON, and how it ends."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.core.events import NoteTaken
from podium.core.ids import short_id
from podium.core.work import Run, RunStatus
from tests.integration.cli.desk import AS_OS_USER, Desk

TWINS = ("run_00000000000070008000feedface0001", "run_00000000000070008000feedface0002")


def note(desk: Desk, run: Run, text: str) -> None:
    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: tx.append(run.id, NoteTaken(text=text)))

    desk.within(work)


def test_init_makes_a_project_once(desk: Desk) -> None:
    said = desk.run("init", "--json")
    assert said.code == 0
    assert said.json["made"] == ["podium.yaml", ".podium/"]
    before = (desk.project / "podium.yaml").read_text()
    again = desk.run("init")
    assert again.code == 1
    assert "already exists; nothing was changed" in again.err
    assert (desk.project / "podium.yaml").read_text() == before


def test_config_says_where_each_value_came_from(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.says("mode: dry-run\n")
    said = desk.run("config", "show", "--origin", "--json")
    rows = {row["key"]: row for row in said.json["values"]}
    assert rows["mode"]["value"] == "dry-run"
    assert rows["mode"]["origin"].endswith("podium.yaml:1")
    assert rows["user"]["origin"] == "PODIUM_USER"
    assert rows["agents"]["origin"] == "default"
    monkeypatch.setenv("PODIUM_MODE", "sensing")
    assert desk.run("config", "show", "--json").json["mode"] == "sensing"
    assert "mode: sensing    # PODIUM_MODE\n" in desk.run("config", "show", "--origin").out


def test_config_schema_prints_the_schema_of_podium_yaml(desk: Desk) -> None:
    said = desk.run("config", "schema", "--json")
    assert said.json["title"] == "podium.yaml"
    assert said.json["properties"]["checks"]["description"]
    assert json.loads(desk.run("config", "schema").out) == said.json


def test_config_shows_every_layer_of_the_policy_with_its_origin(desk: Desk) -> None:
    desk.says("policy:\n  rules:\n    - {name: ship, tool: git_commit, decision: ask}\n")
    said = desk.run("config", "show", "--origin").out
    rule = '{"decision":"ask","name":"ship","tool":"git_commit"}'
    assert f"policy.project.rules[0]: {rule}    # {desk.project.resolve()}/podium.yaml:3\n" in said
    assert '"name":"reading-tools"' in said
    assert "policy.built-in.zones.podium-state: " in said
    rows = {
        row["key"]: row for row in desk.run("config", "show", "--origin", "--json").json["values"]
    }
    assert rows["policy.built-in.approval_seconds"]["origin"] == "built-in"
    assert set(desk.run("config", "show", "--json").json["policy"]) == {"built-in", "project"}


UNUSABLE_POLICY = "policy:\n  rules:\n    - {name: x, tool: y, decision: maybe}\n"


@pytest.mark.parametrize(
    "command",
    [("agents", "list"), ("trust",), ("receipts", "verify"), ("approve", "x"), ("resume", "x")],
)
def test_a_policy_that_cannot_be_used_is_told_by_what_needs_settings(
    desk: Desk, command: tuple[str, ...]
) -> None:
    desk.add_run()
    desk.says(UNUSABLE_POLICY)
    said = desk.run(*command)
    assert said.code == 2
    assert "podium.yaml:3:26: policy.rules[0].decision:" in said.err


def test_looking_goes_on_and_tells_of_a_policy_that_cannot_be_used(desk: Desk) -> None:
    desk.add_run()
    desk.says(UNUSABLE_POLICY)
    said = desk.run("runs")
    assert said.code == 0
    assert "podium.yaml:3:" in said.err
    assert "ignored, because this command does not use the policy" in said.err


def test_config_refuses_a_policy_that_cannot_be_used_with_its_line(desk: Desk) -> None:
    desk.says(
        "policy:\n"
        "  rules:\n"
        "    - name: reading\n"
        "      command: ['git status']\n"
        "      decision: allow\n"
        "      match: ['git log']\n"
    )
    said = desk.run("config", "show")
    assert said.code == 2
    assert "podium.yaml:6:15: policy.rules[0].match[0]: rule 'reading':" in said.err
    desk.says("policy:\n  rules:\n    - name: x\n      tol: y\n      decision: maybe\n")
    faults = desk.run("config", "show").err
    assert "podium.yaml:4:7: policy.rules[0].tol: unknown key" in faults
    assert "podium.yaml:5:7: policy.rules[0].decision" in faults


def test_looking_at_nothing_makes_nothing(desk: Desk) -> None:
    for command in (("runs",), ("approvals",), ("receipts", "list")):
        assert desk.run(*command).code == 0
    for command in (("show", "abcd"), ("logs", "abcd"), ("approve", "abcd"), ("resume", "abcd")):
        assert desk.run(*command).code == 2
    assert list(desk.project.iterdir()) == []


def test_runs_are_listed_in_words_and_in_json(desk: Desk) -> None:
    run = desk.add_run()
    said = desk.run("runs")
    header, line = said.out.splitlines()
    assert header.split() == ["RUN", "STATUS", "FLOW", "CREATED", "TASK"]
    assert line.startswith(f"{short_id(run.id)}  waiting")
    assert desk.run("runs", "--json").json["runs"][0]["id"] == run.id
    assert desk.run("runs", "--status", "failed", "--json").json["runs"] == []


def test_a_run_is_shown_with_its_events(desk: Desk) -> None:
    run = desk.add_run()
    desk.add_approval(run, summary="write the file")
    note(desk, run, "hello")
    said = desk.run("show", short_id(run.id))
    assert said.code == 0
    assert f"run        {run.id}\n" in said.out
    assert "write the file" in said.out
    assert "note_taken             hello" in said.out
    report = desk.run("show", run.id, "--json").json
    assert set(report) == {
        *("run", "steps", "calls", "approvals", "receipts", "events"),
        *("in_flight", "owner", "usage", "cost"),
    }


def test_a_short_form_that_fits_several_lists_them(desk: Desk) -> None:
    for run_id in TWINS:
        desk.add_run(run_id=run_id)
    for command in ("show", "logs", "cancel", "resume", "retry"):
        said = desk.run(command, "feedface")
        assert said.code == 2
        assert all(run_id in said.err for run_id in TWINS)
        assert "type more of the id" in said.err


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("logs",),
        ("cancel",),
        ("resume",),
        ("retry",),
        ("approve",),
        ("reject", "--why", "no"),
        ("receipts", "list"),
        ("receipts", "verify"),
        ("resolve", "--happened"),
    ],
)
def test_an_unknown_id_is_a_usage_error_everywhere(desk: Desk, command: tuple[str, ...]) -> None:
    desk.add_run()
    text = "deadbeef:act:0" if command[0] == "resolve" else "deadbeef"
    words = (
        (command[0], command[1], text)
        if command[0] == "receipts"
        else (
            command[0],
            text,
            *command[1:],
        )
    )
    said = desk.run(*words)
    assert said.code == 2
    assert "'deadbeef" in said.err
    assert said.out == ""


def test_logs_are_one_object_or_plain_lines(desk: Desk) -> None:
    run = desk.add_run(status=RunStatus.SUCCEEDED)
    note(desk, run, "one")
    note(desk, run, "two")
    assert [event["text"] for event in desk.run("logs", run.id, "--json").json["events"]] == [
        "one",
        "two",
    ]
    followed = desk.run("logs", run.id, "-f", "--json")
    assert [json.loads(line)["seq"] for line in followed.out.splitlines()] == [1, 2]
    assert len(desk.run("logs", run.id).out.splitlines()) == 2


def test_an_approval_is_listed_approved_and_gone(desk: Desk) -> None:
    run = desk.add_run()
    asked = desk.add_approval(run, summary="write the file")
    assert "write the file" in desk.run("approvals").out
    said = desk.spawn("approve", short_id(asked.id), "--json", env=AS_OS_USER)
    assert said.code == 0
    assert said.json["approval"]["status"] == "granted"
    (grant,) = said.json["approval"]["grants"]
    assert (grant["by"], grant["authentication"]) == (pwd.getpwuid(os.getuid()).pw_name, "os_user")
    assert desk.run("approvals", "--json").json == {"approvals": [], "more": 0}
    again = desk.run("approve", asked.id)
    assert again.code == 1
    assert "granted already" in again.err


def test_an_answered_run_that_nobody_hosts_is_told_with_the_command_that_goes_on(
    desk: Desk,
) -> None:
    run = desk.add_run()
    asked = desk.add_approval(run)
    waiting = run.model_copy(update={"waiting_for": f"approval:{asked.id}"})

    async def wait(podium: Podium) -> None:
        await (await podium.store()).write(lambda tx: tx.save_run(waiting))

    desk.within(wait)
    command = f"`podium resume {short_id(run.id)}`"
    for words in (("runs",), ("show", run.id)):
        assert command not in desk.run(*words).err, "a person has to answer first"
    assert desk.run("approve", asked.id).code == 0
    for words in (("runs",), ("show", run.id)):
        assert command in desk.run(*words).err


def test_the_words_approve_and_an_id_are_understood(desk: Desk) -> None:
    asked = desk.add_approval(desk.add_run())
    assert desk.run("approve", f"APPROVE: {short_id(asked.id)}").code == 0


def test_a_rejection_needs_its_reason(desk: Desk) -> None:
    asked = desk.add_approval(desk.add_run())
    assert desk.run("reject", asked.id).code == 2
    said = desk.run("reject", asked.id, "--why", "too soon", "--json")
    assert said.json["approval"]["why"] == "too soon"
    assert said.json["approval"]["rejected_by"] == "ann"


def test_an_overdue_approval_is_shown_as_expired(desk: Desk) -> None:
    asked = desk.add_approval(desk.add_run(), seconds=-1)
    assert desk.run("approvals", "--json").json == {"approvals": [], "more": 0}
    listed = desk.run("approvals", "--all", "--json").json["approvals"]
    assert listed[0]["status"] == "expired"
    said = desk.run("approve", asked.id)
    assert (said.code, "expired" in said.err) == (1, True)


def test_a_run_nobody_hosts_is_cancelled_at_once(desk: Desk) -> None:
    run = desk.add_run()
    said = desk.run("cancel", short_id(run.id), "--why", "enough", "--json")
    assert said.code == 0
    assert said.json["run"]["status"] == "cancelled"
    assert desk.run("cancel", run.id).code == 1


def test_a_run_of_a_flow_that_is_not_here_cannot_go_on(desk: Desk) -> None:
    run = desk.add_run()
    said = desk.run("resume", run.id)
    assert said.code == 2
    assert "no flow 'demo-of-the-test'; known flows: " in said.err
    assert desk.run("retry", run.id, "--from", "nowhere").code == 2


def test_resolving_needs_a_call_in_doubt_and_a_word(desk: Desk) -> None:
    run = desk.add_run()
    assert "pass --happened or --not-happened" in desk.run("resolve", f"{run.id}:act:0").err
    said = desk.run("resolve", f"{short_id(run.id)}:act:0", "--happened")
    assert said.code == 2
    assert f"no call '{run.id}:act:0'" in said.err
    assert desk.run("resolve", "act", "--happened").code == 2


def test_trust_is_for_this_content_alone(desk: Desk) -> None:
    assert desk.run("trust").code == 1
    desk.says("agents: {dev: {kind: gemini, command: [./tool, --fast]}}\n")
    assert desk.run("trust", "--show", "--json").json["trusted"] is False
    refused = desk.run("trust")
    assert (refused.code, "pass --yes" in refused.err) == (2, True)
    assert desk.run("trust", "--json").code == 2
    assert desk.run("trust", "--show", "--json").json["trusted"] is False
    said = desk.run("trust", "--yes")
    assert "agent dev: ./tool --fast\n" in said.out
    assert desk.run("trust", "--show", "--json").json["trusted"] is True
    desk.says("agents: {dev: {kind: gemini, command: [./other]}}\n")
    assert desk.run("trust", "--show", "--json").json["trusted"] is False
    desk.run("trust", "--yes")
    assert desk.run("trust", "--forget", "--json").json["trusted"] is False


def test_receipts_of_an_empty_record_are_sound(desk: Desk) -> None:
    said = desk.run("receipts", "verify", "--json")
    assert said.code == 0
    assert said.json == {"sound": True, "runs": 0, "receipts": 0, "faults": []}


def test_a_database_that_is_no_database_is_named_and_left_alone(desk: Desk, tmp_path: Path) -> None:
    state = desk.project / ".podium"
    state.mkdir()
    (state / "podium.db").write_bytes(b"not a database at all" * 100)
    said = desk.run("runs")
    assert said.code == 1
    assert str(state / "podium.db") in said.err
    assert (state / "podium.db").read_bytes() == b"not a database at all" * 100


def test_words_can_be_said_with_a_yes(desk: Desk) -> None:
    asked = desk.add_approval(desk.add_run())
    said = desk.run("approve", short_id(asked.id), "--say", "but \x1b[1mgently")
    assert said.code == 0
    assert "but [1mgently" in said.out
