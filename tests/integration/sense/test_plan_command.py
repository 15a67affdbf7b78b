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
from tests.integration.cli.desk import Desk

SAMPLES = Path(str(files("podium.jobs.sense") / "samples"))


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    desk = Desk(tmp_path, capsys)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, desk.environ[name])
    for name in ("PODIUM_DEBUG", "PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(desk.project)
    return desk


def plan_file(desk: Desk, content: str | bytes) -> str:
    file = desk.project / "plan.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(file)


def left_alone(desk: Desk) -> bool:
    return not desk.home.exists() and not [*desk.project.iterdir()]


@pytest.mark.parametrize(
    ("name", "candidates", "skipped"), [("idle", 0, 0), ("single_task", 1, 0), ("multi_task", 2, 2)]
)
def test_the_counts_of_the_samples_stand_on_their_own_lines(
    desk: Desk, name: str, candidates: int, skipped: int
) -> None:
    said = desk.run("plan", "parse", "--input", str(SAMPLES / f"gmx_plan_{name}.json"))
    assert said.code == 0
    assert said.out.splitlines()[:2] == [f"candidate_count: {candidates}", f"skipped: {skipped}"]
    assert left_alone(desk)


def test_the_words_name_every_candidate_and_every_reason(desk: Desk) -> None:
    said = desk.run("plan", "parse", "--input", str(SAMPLES / "gmx_plan_multi_task.json"))
    assert "candidate WO-RETRY-TELEMETRY-EXPORT-" in said.out
    assert "  1. Make the folder g/telemetry/export" in said.out
    assert "skipped item 3: action noop: nothing to create" in said.out


def test_programs_get_counts_candidates_and_reasons(desk: Desk) -> None:
    sample = str(SAMPLES / "gmx_plan_multi_task.json")
    record = desk.run("plan", "parse", "--input", sample, "--json").json
    assert (record["candidate_count"], record["skipped"]) == (2, 2)
    assert [each["target"] for each in record["candidates"]] == ["clc_worker", "SESSION-DEMO-001"]
    assert [set(each) for each in record["skipped_items"]] == [{"index", "reason", "title"}] * 2
    assert "error" not in record


def test_operations_are_shown(desk: Desk) -> None:
    said = {"wo_id_hint": "A", "title": "b", "ops": [{"op": "mkdir", "path": "g/reports"}]}
    item = {"type": "clc_task", "priority": "low", "target": "t", "action": "create_wo"}
    plan = json.dumps({"items": [{**item, "wo_suggestion": said}]})
    assert "  op mkdir g/reports" in desk.run("plan", "parse", "--input", plan_file(desk, plan)).out


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
    desk: Desk, content: str | bytes, words: str
) -> None:
    file = plan_file(desk, content)
    said = desk.run("plan", "parse", "--input", file)
    assert said.code == 2
    assert words in said.err
    assert said.out == "candidate_count: 0\nskipped: 0\n"
    told = desk.run("plan", "parse", "--input", file, "--json")
    assert told.code == 2
    assert words in told.json["error"]
    assert told.json["candidates"] == []


@pytest.mark.parametrize("given", ["nothing.json", ".", "a\0b"])
def test_what_cannot_be_read_is_said(desk: Desk, given: str) -> None:
    said = desk.run("plan", "parse", "--input", given, "--json")
    assert said.code == 2
    assert "cannot read the plan" in said.json["error"]


def test_a_pipe_and_a_device_are_refused_at_once(desk: Desk) -> None:
    pipe = desk.project / "pipe"
    os.mkfifo(pipe)
    for given in (str(pipe), "/dev/zero"):
        said = desk.run("plan", "parse", "--input", given)
        assert said.code == 2
        assert f"cannot read the plan {given!r} (not a regular file)" in said.err


def test_a_dash_stands_for_stdin(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"items": [5]}')))
    said = desk.run("plan", "parse", "--input", "-")
    assert said.code == 0
    assert said.out.startswith("candidate_count: 0\nskipped: 1\n")


def test_no_project_is_needed_not_even_a_sound_one(desk: Desk) -> None:
    desk.says("version: [broken")
    sample = str(SAMPLES / "gmx_plan_idle.json")
    assert desk.run("plan", "parse", "--input", sample).code == 0


def test_without_an_input_the_usage_is_told(desk: Desk) -> None:
    said = desk.run("plan", "parse")
    assert said.code == 2
    assert "--input" in said.err


def test_what_a_plan_says_cannot_steer_the_terminal(desk: Desk) -> None:
    item = {"type": "\x1b[2J", "wo_suggestion": {"title": "\x1b]0;owned\x07\u202ehi"}}
    said = desk.run("plan", "parse", "--input", plan_file(desk, json.dumps({"items": [item]})))
    assert "skipped: 1" in said.out
    assert not {"\x1b", "\x07", "\u202e"} & set(said.out)


def test_the_schemas_are_printed(desk: Desk) -> None:
    assert desk.run("plan", "schema").json == plan_schema()
    assert desk.run("plan", "schema", "--json").json == plan_schema()
    assert desk.run("plan", "schema", "--order", "--json").json == work_order_schema()


def test_the_rules_that_come_with_podium_are_listed_and_hold(desk: Desk) -> None:
    listed = desk.run("plan", "rules")
    assert listed.code == 0
    assert "failing-check" in listed.out
    checked = desk.run("plan", "rules", "--check")
    assert checked.out.startswith("default_rules.yaml: ")
    assert checked.out.rstrip().endswith("all pass")
    record = desk.run("plan", "rules", "--check", "--json").json
    assert record["examples"] == sum(row["examples"] for row in record["rules"]) > 20


def test_the_rules_of_a_project_are_those_it_names(desk: Desk) -> None:
    desk.says("flows: {sense: {planner: rules, rules: my.yaml}}\n")
    (desk.project / "my.yaml").write_text("version: 1\nrules: []\n")
    assert "my.yaml: 0 rules, 0 examples: all pass" in desk.run("plan", "rules").out


def test_broken_settings_do_not_pass_for_a_project_without_rules(desk: Desk) -> None:
    desk.says("flows: {sense: {rule: my.yaml}}\n")
    said = desk.run("plan", "rules", "--check")
    assert said.code == 2
    assert "podium.yaml:1:" in said.err


def test_faults_of_rules_leave_with_two_and_name_file_and_line(desk: Desk) -> None:
    (desk.project / "my.yaml").write_text("version: 1\nrules:\n  - name: X\n")
    said = desk.run("plan", "rules", "my.yaml", "--check")
    assert said.code == 2
    assert "my.yaml:3:" in said.err
