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
from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner

TWINS = ("run_00000000000070008000feedface0001", "run_00000000000070008000feedface0002")


def note(cli: CommandRunner, run: Run, text: str) -> None:
    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: tx.append(run.id, NoteTaken(text=text)))

    cli.within(work)


def test_init_makes_a_project_once(cli: CommandRunner) -> None:
    result = cli.run("init", "--json")
    assert result.code == 0
    assert result.json["made"] == ["podium.yaml", ".podium/"]
    before = (cli.project / "podium.yaml").read_text()
    again = cli.run("init")
    assert again.code == 1
    assert "already exists; nothing was changed" in again.err
    assert (cli.project / "podium.yaml").read_text() == before


def test_config_shows_where_every_value_came_from(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.says("mode: dry-run\n")
    result = cli.run("config", "show", "--origin", "--json")
    rows = {row["key"]: row for row in result.json["values"]}
    assert rows["mode"]["value"] == "dry-run"
    assert rows["mode"]["origin"].endswith("podium.yaml:1")
    assert rows["user"]["origin"] == "PODIUM_USER"
    assert rows["agents"]["origin"] == "default"
    monkeypatch.setenv("PODIUM_MODE", "sensing")
    assert cli.run("config", "show", "--json").json["mode"] == "sensing"
    assert "mode: sensing    # PODIUM_MODE\n" in cli.run("config", "show", "--origin").out


def test_config_schema_prints_the_schema_of_podium_yaml(cli: CommandRunner) -> None:
    result = cli.run("config", "schema", "--json")
    assert result.json["title"] == "podium.yaml"
    assert result.json["properties"]["checks"]["description"]
    assert json.loads(cli.run("config", "schema").out) == result.json


def test_config_shows_every_layer_of_the_policy_with_its_origin(cli: CommandRunner) -> None:
    cli.says("policy:\n  rules:\n    - {name: ship, tool: git_commit, decision: ask}\n")
    output = cli.run("config", "show", "--origin").out
    rule = '{"decision":"ask","name":"ship","tool":"git_commit"}'
    assert f"policy.project.rules[0]: {rule}    # {cli.project.resolve()}/podium.yaml:3\n" in output
    assert '"name":"reading-tools"' in output
    assert "policy.built-in.zones.podium-state: " in output
    rows = {
        row["key"]: row for row in cli.run("config", "show", "--origin", "--json").json["values"]
    }
    assert rows["policy.built-in.approval_seconds"]["origin"] == "built-in"
    assert set(cli.run("config", "show", "--json").json["policy"]) == {"built-in", "project"}


UNUSABLE_POLICY = "policy:\n  rules:\n    - {name: x, tool: y, decision: maybe}\n"


@pytest.mark.parametrize(
    "command",
    [("agents", "list"), ("trust",), ("receipts", "verify"), ("approve", "x"), ("resume", "x")],
)
def test_unusable_policy_is_reported_by_whatever_needs_settings(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    cli.add_run()
    cli.says(UNUSABLE_POLICY)
    result = cli.run(*command)
    assert result.code == 2
    assert "podium.yaml:3:26: policy.rules[0].decision:" in result.err


def test_looking_continues_and_reports_an_unusable_policy(cli: CommandRunner) -> None:
    cli.add_run()
    cli.says(UNUSABLE_POLICY)
    result = cli.run("runs")
    assert result.code == 0
    assert "podium.yaml:3:" in result.err
    assert "ignored, because this command does not use the policy" in result.err


def test_config_refuses_a_policy_that_cannot_be_used_with_its_line(cli: CommandRunner) -> None:
    cli.says(
        "policy:\n"
        "  rules:\n"
        "    - name: reading\n"
        "      command: ['git status']\n"
        "      decision: allow\n"
        "      match: ['git log']\n"
    )
    result = cli.run("config", "show")
    assert result.code == 2
    assert "podium.yaml:6:15: policy.rules[0].match[0]: rule 'reading':" in result.err
    cli.says("policy:\n  rules:\n    - name: x\n      tol: y\n      decision: maybe\n")
    faults = cli.run("config", "show").err
    assert "podium.yaml:4:7: policy.rules[0].tol: unknown key" in faults
    assert "podium.yaml:5:7: policy.rules[0].decision" in faults


def test_looking_at_nothing_makes_nothing(cli: CommandRunner) -> None:
    for command in (("runs",), ("approvals",), ("receipts", "list")):
        assert cli.run(*command).code == 0
    for command in (("show", "abcd"), ("logs", "abcd"), ("approve", "abcd"), ("resume", "abcd")):
        assert cli.run(*command).code == 2
    assert list(cli.project.iterdir()) == []


def test_runs_are_listed_in_words_and_in_json(cli: CommandRunner) -> None:
    run = cli.add_run()
    result = cli.run("runs")
    header, line = result.out.splitlines()
    assert header.split() == ["RUN", "STATUS", "FLOW", "CREATED", "TASK"]
    assert line.startswith(f"{short_id(run.id)}  waiting")
    assert cli.run("runs", "--json").json["runs"][0]["id"] == run.id
    assert cli.run("runs", "--status", "failed", "--json").json["runs"] == []


def test_a_run_is_shown_with_its_events(cli: CommandRunner) -> None:
    run = cli.add_run()
    cli.add_approval(run, summary="write the file")
    note(cli, run, "hello")
    result = cli.run("show", short_id(run.id))
    assert result.code == 0
    assert f"run        {run.id}\n" in result.out
    assert "write the file" in result.out
    assert "note_taken             hello" in result.out
    report = cli.run("show", run.id, "--json").json
    assert set(report) == {
        *("run", "steps", "calls", "approvals", "receipts", "events"),
        *("in_flight", "owner", "usage", "cost"),
    }


def test_a_short_form_that_fits_several_lists_them(cli: CommandRunner) -> None:
    for run_id in TWINS:
        cli.add_run(run_id=run_id)
    for command in ("show", "logs", "cancel", "resume", "retry"):
        result = cli.run(command, "feedface")
        assert result.code == 2
        assert all(run_id in result.err for run_id in TWINS)
        assert "type more of the id" in result.err


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
def test_an_unknown_id_is_a_usage_error_everywhere(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    cli.add_run()
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
    result = cli.run(*words)
    assert result.code == 2
    assert "'deadbeef" in result.err
    assert result.out == ""


def test_logs_are_one_object_or_plain_lines(cli: CommandRunner) -> None:
    run = cli.add_run(status=RunStatus.SUCCEEDED)
    note(cli, run, "one")
    note(cli, run, "two")
    assert [event["text"] for event in cli.run("logs", run.id, "--json").json["events"]] == [
        "one",
        "two",
    ]
    followed = cli.run("logs", run.id, "-f", "--json")
    assert [json.loads(line)["seq"] for line in followed.out.splitlines()] == [1, 2]
    assert len(cli.run("logs", run.id).out.splitlines()) == 2


def test_an_approval_is_listed_approved_and_gone(cli: CommandRunner) -> None:
    run = cli.add_run()
    asked = cli.add_approval(run, summary="write the file")
    assert "write the file" in cli.run("approvals").out
    result = cli.spawn("approve", short_id(asked.id), "--json", env=AS_OS_USER)
    assert result.code == 0
    assert result.json["approval"]["status"] == "granted"
    (grant,) = result.json["approval"]["grants"]
    assert (grant["by"], grant["authentication"]) == (pwd.getpwuid(os.getuid()).pw_name, "os_user")
    assert cli.run("approvals", "--json").json == {"approvals": [], "more": 0}
    again = cli.run("approve", asked.id)
    assert again.code == 1
    assert "granted already" in again.err


def test_answered_run_that_nobody_hosts_is_reported_with_the_command_to_continue(
    cli: CommandRunner,
) -> None:
    run = cli.add_run()
    asked = cli.add_approval(run)
    waiting = run.model_copy(update={"waiting_for": f"approval:{asked.id}"})

    async def wait(podium: Podium) -> None:
        await (await podium.store()).write(lambda tx: tx.save_run(waiting))

    cli.within(wait)
    command = f"`podium resume {short_id(run.id)}`"
    for words in (("runs",), ("show", run.id)):
        assert command not in cli.run(*words).err, "a person has to answer first"
    assert cli.run("approve", asked.id).code == 0
    for words in (("runs",), ("show", run.id)):
        assert command in cli.run(*words).err


def test_the_words_approve_and_an_id_are_understood(cli: CommandRunner) -> None:
    asked = cli.add_approval(cli.add_run())
    assert cli.run("approve", f"APPROVE: {short_id(asked.id)}").code == 0


def test_a_rejection_needs_its_reason(cli: CommandRunner) -> None:
    asked = cli.add_approval(cli.add_run())
    assert cli.run("reject", asked.id).code == 2
    result = cli.run("reject", asked.id, "--why", "too soon", "--json")
    assert result.json["approval"]["why"] == "too soon"
    assert result.json["approval"]["rejected_by"] == "ann"


def test_an_overdue_approval_is_shown_as_expired(cli: CommandRunner) -> None:
    asked = cli.add_approval(cli.add_run(), seconds=-1)
    assert cli.run("approvals", "--json").json == {"approvals": [], "more": 0}
    listed = cli.run("approvals", "--all", "--json").json["approvals"]
    assert listed[0]["status"] == "expired"
    result = cli.run("approve", asked.id)
    assert (result.code, "expired" in result.err) == (1, True)


def test_a_run_nobody_hosts_is_cancelled_at_once(cli: CommandRunner) -> None:
    run = cli.add_run()
    result = cli.run("cancel", short_id(run.id), "--why", "enough", "--json")
    assert result.code == 0
    assert result.json["run"]["status"] == "cancelled"
    assert cli.run("cancel", run.id).code == 1


def test_a_run_of_a_flow_that_is_not_here_cannot_go_on(cli: CommandRunner) -> None:
    run = cli.add_run()
    result = cli.run("resume", run.id)
    assert result.code == 2
    assert "no flow 'demo-of-the-test'; known flows: " in result.err
    assert cli.run("retry", run.id, "--from", "nowhere").code == 2


def test_resolving_needs_a_call_in_doubt_and_a_word(cli: CommandRunner) -> None:
    run = cli.add_run()
    assert "pass --happened or --not-happened" in cli.run("resolve", f"{run.id}:act:0").err
    result = cli.run("resolve", f"{short_id(run.id)}:act:0", "--happened")
    assert result.code == 2
    assert f"no call '{run.id}:act:0'" in result.err
    assert cli.run("resolve", "act", "--happened").code == 2


def test_trust_is_for_this_content_alone(cli: CommandRunner) -> None:
    assert cli.run("trust").code == 1
    cli.says("agents: {dev: {kind: gemini, command: [./tool, --fast]}}\n")
    assert cli.run("trust", "--show", "--json").json["trusted"] is False
    refused = cli.run("trust")
    assert (refused.code, "pass --yes" in refused.err) == (2, True)
    assert cli.run("trust", "--json").code == 2
    assert cli.run("trust", "--show", "--json").json["trusted"] is False
    result = cli.run("trust", "--yes")
    assert "agent dev: ./tool --fast\n" in result.out
    assert cli.run("trust", "--show", "--json").json["trusted"] is True
    cli.says("agents: {dev: {kind: gemini, command: [./other]}}\n")
    assert cli.run("trust", "--show", "--json").json["trusted"] is False
    cli.run("trust", "--yes")
    assert cli.run("trust", "--forget", "--json").json["trusted"] is False


def test_receipts_of_an_empty_record_are_sound(cli: CommandRunner) -> None:
    result = cli.run("receipts", "verify", "--json")
    assert result.code == 0
    assert result.json == {"sound": True, "runs": 0, "receipts": 0, "faults": []}


def test_a_database_that_is_no_database_is_named_and_left_alone(
    cli: CommandRunner, tmp_path: Path
) -> None:
    state = cli.project / ".podium"
    state.mkdir()
    (state / "podium.db").write_bytes(b"not a database at all" * 100)
    result = cli.run("runs")
    assert result.code == 1
    assert str(state / "podium.db") in result.err
    assert (state / "podium.db").read_bytes() == b"not a database at all" * 100


def test_comment_can_be_given_with_an_approval(cli: CommandRunner) -> None:
    asked = cli.add_approval(cli.add_run())
    result = cli.run("approve", short_id(asked.id), "--say", "but \x1b[1mgently")
    assert result.code == 0
    assert "but [1mgently" in result.out
