"""`podium plan`: what parsers and people read of it."""

from __future__ import annotations

import io
import json
import os
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from podium.jobs.sense.planning.plan_schema import MAX_BYTES, plan_schema, work_order_schema
from tests.integration.cli.command_runner import CommandRunner

SAMPLES = Path(str(files("podium.jobs.sense") / "samples"))


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, cli.environ[name])
    for name in ("PODIUM_DEBUG", "PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(cli.project)
    return cli


def plan_file(cli: CommandRunner, content: str | bytes) -> str:
    file = cli.project / "plan.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(file)


def left_alone(cli: CommandRunner) -> bool:
    return not cli.home.exists() and not [*cli.project.iterdir()]


@pytest.mark.parametrize(
    ("name", "candidates", "skipped"), [("idle", 0, 0), ("single_task", 1, 0), ("multi_task", 2, 2)]
)
def test_the_counts_of_the_samples_stand_on_their_own_lines(
    cli: CommandRunner, name: str, candidates: int, skipped: int
) -> None:
    result = cli.run("plan", "parse", "--input", str(SAMPLES / f"gmx_plan_{name}.json"))
    assert result.code == 0
    assert result.out.splitlines()[:2] == [f"candidate_count: {candidates}", f"skipped: {skipped}"]
    assert left_alone(cli)


def test_the_words_name_every_candidate_and_every_reason(cli: CommandRunner) -> None:
    result = cli.run("plan", "parse", "--input", str(SAMPLES / "gmx_plan_multi_task.json"))
    assert "candidate WO-RETRY-TELEMETRY-EXPORT-" in result.out
    assert "  1. Make the folder g/telemetry/export" in result.out
    assert "skipped item 3: action noop: nothing to create" in result.out


def test_programs_get_counts_candidates_and_reasons(cli: CommandRunner) -> None:
    sample = str(SAMPLES / "gmx_plan_multi_task.json")
    record = cli.run("plan", "parse", "--input", sample, "--json").json
    assert (record["candidate_count"], record["skipped"]) == (2, 2)
    assert [candidate["target"] for candidate in record["candidates"]] == [
        "clc_worker",
        "SESSION-DEMO-001",
    ]
    assert [set(item) for item in record["skipped_items"]] == [{"index", "reason", "title"}] * 2
    assert "error" not in record


def test_operations_are_shown(cli: CommandRunner) -> None:
    payload = {"wo_id_hint": "A", "title": "b", "ops": [{"op": "mkdir", "path": "g/reports"}]}
    item = {"type": "clc_task", "priority": "low", "target": "t", "action": "create_wo"}
    plan = json.dumps({"items": [{**item, "wo_suggestion": payload}]})
    assert "  op mkdir g/reports" in cli.run("plan", "parse", "--input", plan_file(cli, plan)).out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        ("", "the plan is empty"),
        (b"\xff\xfe", "not valid UTF-8"),
        (b" " * (MAX_BYTES + 5), "larger than"),
        ('{"plan": []}', "has no 'items'"),
    ],
)
def test_a_broken_plan_leaves_with_two_and_says_why(
    cli: CommandRunner, content: str | bytes, words: str
) -> None:
    file = plan_file(cli, content)
    result = cli.run("plan", "parse", "--input", file)
    assert result.code == 2
    assert words in result.err
    assert result.out == "candidate_count: 0\nskipped: 0\n"
    outcome = cli.run("plan", "parse", "--input", file, "--json")
    assert outcome.code == 2
    assert words in outcome.json["error"]
    assert outcome.json["candidates"] == []


@pytest.mark.parametrize("given", ["nothing.json", ".", "a\0b"])
def test_unreadable_input_is_reported(cli: CommandRunner, given: str) -> None:
    result = cli.run("plan", "parse", "--input", given, "--json")
    assert result.code == 2
    assert "cannot read the plan" in result.json["error"]


def test_a_pipe_and_a_device_are_refused_at_once(cli: CommandRunner) -> None:
    pipe = cli.project / "pipe"
    os.mkfifo(pipe)
    for given in (str(pipe), "/dev/zero"):
        result = cli.run("plan", "parse", "--input", given)
        assert result.code == 2
        assert f"cannot read the plan {given!r} (not a regular file)" in result.err


def test_dash_means_stdin(cli: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"items": [5]}')))
    result = cli.run("plan", "parse", "--input", "-")
    assert result.code == 0
    assert result.out.startswith("candidate_count: 0\nskipped: 1\n")


def test_no_project_is_needed_not_even_a_sound_one(cli: CommandRunner) -> None:
    cli.says("version: [broken")
    sample = str(SAMPLES / "gmx_plan_idle.json")
    assert cli.run("plan", "parse", "--input", sample).code == 0


def test_without_an_input_the_usage_is_printed(cli: CommandRunner) -> None:
    result = cli.run("plan", "parse")
    assert result.code == 2
    assert "--input" in result.err


def test_what_a_plan_says_cannot_steer_the_terminal(cli: CommandRunner) -> None:
    item = {"type": "\x1b[2J", "wo_suggestion": {"title": "\x1b]0;owned\x07\u202ehi"}}
    result = cli.run("plan", "parse", "--input", plan_file(cli, json.dumps({"items": [item]})))
    assert "skipped: 1" in result.out
    assert not {"\x1b", "\x07", "\u202e"} & set(result.out)


def test_the_schemas_are_printed(cli: CommandRunner) -> None:
    assert cli.run("plan", "schema").json == plan_schema()
    assert cli.run("plan", "schema", "--json").json == plan_schema()
    assert cli.run("plan", "schema", "--order", "--json").json == work_order_schema()


def test_the_rules_that_come_with_podium_are_listed_and_hold(cli: CommandRunner) -> None:
    listed = cli.run("plan", "rules")
    assert listed.code == 0
    assert "failing-check" in listed.out
    checked = cli.run("plan", "rules", "--check")
    assert checked.out.startswith("default_rules.yaml: ")
    assert checked.out.rstrip().endswith("all pass")
    record = cli.run("plan", "rules", "--check", "--json").json
    assert record["examples"] == sum(row["examples"] for row in record["rules"]) > 20


def test_the_rules_of_a_project_are_those_it_names(cli: CommandRunner) -> None:
    cli.says("flows: {sense: {planner: rules, rules: my.yaml}}\n")
    (cli.project / "my.yaml").write_text("version: 1\nrules: []\n")
    assert "my.yaml: 0 rules, 0 examples: all pass" in cli.run("plan", "rules").out


def test_broken_settings_do_not_pass_for_a_project_without_rules(cli: CommandRunner) -> None:
    cli.says("flows: {sense: {rule: my.yaml}}\n")
    result = cli.run("plan", "rules", "--check")
    assert result.code == 2
    assert "podium.yaml:1:" in result.err


def test_faults_of_rules_leave_with_two_and_name_file_and_line(cli: CommandRunner) -> None:
    (cli.project / "my.yaml").write_text("version: 1\nrules:\n  - name: X\n")
    result = cli.run("plan", "rules", "my.yaml", "--check")
    assert result.code == 2
    assert "my.yaml:3:" in result.err
