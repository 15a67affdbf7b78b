"""Replay's report when something differs from the recording, and proof that it changes nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import podium.tools
from podium.cli.error_report import run
from podium.jobs.playbook import prompt
from podium.jobs.playbook.replay import recording
from podium.tools import builtin_tools
from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.integration.playbook.playbook_harness import Stage
from tests.integration.playbook.replay_harness import MIXED, Events, edited, first
from tests.integration.workspaces.folder_harness import image

Project = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which one run was recorded."""
    stage = Stage(CommandRunner(tmp_path_factory.mktemp("recorded")))
    stage.acts(*MIXED)
    result = stage.cli.spawn("playbook", "run", "bump.md", "--json")
    assert result.code == 0, result.out + result.err
    return stage.root


@pytest.fixture
def project(original: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The project, which is put back when the test has changed it."""
    kept = tmp_path / "kept"
    shutil.copytree(original, kept, symlinks=True)
    for name in ("PODIUM_DEBUG", "PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PODIUM_HOME", str(original.parent / "home"))
    monkeypatch.chdir(tmp_path)
    yield original
    shutil.rmtree(original)
    shutil.copytree(kept, original, symlinks=True)


def trace_in(project: Path) -> Path:
    (file,) = project.glob(".podium/runs/*/execution_trace.jsonl")
    return file


@pytest.fixture
def replay(project: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    def play(source: str | Path, *arguments: str) -> CommandResult:
        capsys.readouterr()
        code = run(["--project", str(project), "replay", str(source), *arguments])
        output = capsys.readouterr()
        return CommandResult(code, output.out, output.err)

    return play


@pytest.fixture
def replay_edited(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    """Replays the trace with a change in it where nothing is known of its run but its folder's name."""
    empty = tmp_path / "empty"
    empty.mkdir()

    def play(change: Callable[[Events], object], *arguments: str) -> CommandResult:
        file = edited(trace_in(project), change).rename(tmp_path / "edited.jsonl")
        capsys.readouterr()
        messages = [
            "--project",
            str(empty),
            "replay",
            str(file),
            "--root",
            str(project),
            *arguments,
        ]
        code = run(messages)
        output = capsys.readouterr()
        return CommandResult(code, output.out, output.err)

    return play


def differing(result: CommandResult) -> dict[str, Any]:
    assert result.code == 1, result.out + result.err
    found: dict[str, Any] = result.json["difference"]
    return found


def fields_of(found: dict[str, Any]) -> list[str]:
    return [field["field"] for field in found["fields"]]


def test_nothing_of_the_machine_is_touched(
    project: Path, replay: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = trace_in(project).parent.name
    before, home = image(project), image(project.parent / "home")

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a replay started a process or opened a socket")

    monkeypatch.setattr(subprocess, "Popen", refused)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    monkeypatch.setattr(os, "posix_spawn", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket.socket, "bind", refused)
    for source in (run_id, trace_in(project)):
        result = replay(source)
        assert (result.code, "the same, byte for byte" in result.out) == (0, True), (
            result.out + result.err
        )
    assert image(project) == before
    assert image(project.parent / "home") == home


def test_moved_trace_is_the_same_once_given_where_it_was_made(
    project: Path, replay: Project, tmp_path: Path
) -> None:
    moved = tmp_path / "moved.jsonl"
    shutil.copy(trace_in(project), moved)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = differing(replay(moved, "--json", "--root", str(elsewhere)))
    assert (found["type"], fields_of(found)) == ("tool_requested", ["digest"])
    assert "--root DIR" in replay(moved, "--root", str(elsewhere)).err
    assert replay(moved, "--root", str(project)).code == 0


def test_an_exported_trace_is_the_same_anywhere_and_names_no_folder(
    project: Path, replay: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "for_others.jsonl"
    assert replay(trace_in(project).parent.name, "--export", str(out)).code == 0
    assert str(project.parent) not in out.read_text()
    assert replay(out, "--export", str(out)).code == 2
    assert replay(out).code == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(["--project", str(empty), "replay", str(out)]) == 0
    assert "the same, byte for byte" in capsys.readouterr().out


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("event", "change", "field"),
    [
        ("agent_asked", {"prompt": "Do whatever you like."}, "prompt"),
        ("tool_completed", {"receipt": 7}, "receipt"),
        ("tool_requested", {"rule": "no-rule"}, "rule"),
        ("tool_refused", {"reason": "because"}, "reason"),
        ("playbook_ended", {"met": False}, "met"),
        ("step_started", {"step": "another"}, "step"),
    ],
)
def test_an_edited_event_is_the_first_that_differs(
    replay_edited: Project, event: str, change: dict[str, Any], field: str
) -> None:
    def edit(events: Events) -> None:
        first(events, event).update(change)

    found = differing(replay_edited(edit, "--json"))
    assert (found["type"], fields_of(found)) == (event, [field])
    (item,) = found["fields"]
    assert item["recorded"] == change[field]


def test_an_edited_result_of_a_criterion_shows_in_what_follows_from_it(
    replay_edited: Project,
) -> None:
    def edit(events: Events) -> None:
        ends = [event for event in events if event["type"] == "tool_completed"]
        ends[-1]["result"]["exit_code"] = 3

    found = differing(replay_edited(edit, "--json"))
    assert (found["type"], fields_of(found)) == ("playbook_ended", ["criteria[0].exit_code"])


def test_an_event_that_was_taken_out_is_missed_where_it_was(replay_edited: Project) -> None:
    def edit(events: Events) -> None:
        events.remove(first(events, "usage_recorded"))
        for seq, item in enumerate(events, start=1):
            item["seq"] = seq

    found = differing(replay_edited(edit, "--json"))
    assert (found["type"], "type" in fields_of(found)) == ("step_completed", True)


def test_where_the_journal_is_at_hand_an_edited_result_is_found_itself(
    project: Path, replay: Project
) -> None:
    def edit(events: Events) -> None:
        first(events, "tool_completed")["result"]["content"] = "9.9"

    file = edited(trace_in(project), edit)
    found = differing(replay(file, "--json"))
    assert (found["type"], fields_of(found)) == ("tool_completed", ["result.content"])
    assert found["fields"][0] == {"field": "result.content", "recorded": "9.9", "now": "1.0"}
    file.replace(trace_in(project))
    assert differing(replay(trace_in(project).parent.name, "--json")) == found


def test_a_changed_playbook_is_found_where_the_run_began(project: Path, replay: Project) -> None:
    page = project / "bump.md"
    page.write_text(page.read_text().replace("Write {{", "Put {{"))
    for source in (trace_in(project).parent.name, trace_in(project)):
        found = differing(replay(source, "--json"))
        assert found["type"] == "playbook_began"
        assert fields_of(found) == ["playbook_digest", "job.playbook.steps[0].text"]


def test_a_changed_profile_is_found_where_the_run_began(project: Path, replay: Project) -> None:
    file = project / "plugin-profile.yaml"
    file.write_text(file.read_text().replace("kind: demo", "kind: other"))
    found = differing(replay(trace_in(project), "--json"))
    assert fields_of(found) == ["profile_digest", "job.profile.kind"]


@pytest.mark.parametrize("changed", ["description", "input_schema"])
def test_a_changed_tool_is_found_before_the_agent_is_asked(
    project: Path, replay: Project, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Patched because a tool of ours changes with a new version of Podium only."""

    def changed_tools() -> list[Any]:
        tools = {tool.spec.name: tool for tool in builtin_tools()}
        spec = tools["list_files"].spec
        update: Any = {"description": "Lists."}
        if changed == "input_schema":
            schema = spec.input_schema
            more = {**schema["properties"], "more": {"type": "string"}}
            update = {"input_schema": {**schema, "properties": more}}
        other = spec.model_copy(update=update)
        tools["list_files"] = dataclasses.replace(tools["list_files"], spec=other)
        return list(tools.values())

    monkeypatch.setattr(podium.tools, "builtin_tools", changed_tools)
    found = differing(replay(trace_in(project), "--json"))
    assert (found["type"], fields_of(found)) == ("tools_given", ["tools.list_files"])


def test_a_changed_prompt_is_found_where_the_agent_is_asked(
    project: Path, replay: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patched because the words around a playbook change with a new version of Podium only."""
    monkeypatch.setattr(prompt, "_RULES", prompt._RULES.replace("no hands", "two hands"))
    found = differing(replay(trace_in(project), "--json"))
    assert (found["type"], fields_of(found)) == ("agent_asked", ["prompt"])
    (item,) = found["fields"]
    assert "no hands" in item["recorded"]
    assert "two hands" in item["now"]
    result = replay(trace_in(project))
    assert "differs: agent_asked" in result.out
    assert "recorded: " in result.out


def test_a_stricter_policy_is_found_at_the_call_it_forbids(project: Path, replay: Project) -> None:
    settings = project / "podium.yaml"
    rule = "policy: {rules: [{name: no-writes, tool: write_file, decision: deny, why: not now}]}"
    settings.write_text(f"{settings.read_text()}{rule}\n")
    found = differing(replay(trace_in(project), "--json"))
    assert found["type"] == "tool_requested"
    assert "type" in fields_of(found)


@pytest.mark.soak
def test_different_answer_about_a_call_is_reported_field_by_field(replay_edited: Project) -> None:
    def edit(events: Events) -> None:
        first(events, "tool_refused")["reason"] = "\x1b[2Jgone"

    result = replay_edited(edit)
    assert result.code == 1
    assert "\x1b" not in result.out
    assert "differs: tool_refused\n  reason\n    recorded: " in result.out


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda whole: b"", "contains no events"),
        (lambda whole: b"hello\n" * 200, "is not a trace"),
        (lambda whole: b"\x00\xff" * 4_000, "contains no events"),
        (lambda whole: whole[:-40], "is cut off after event"),
        (lambda whole: b"".join(whole.splitlines(True)[:14]), "ends in the middle of its run"),
        (lambda whole: b"".join(whole.splitlines(True)[1:]), "its first lines are missing"),
        (lambda whole: whole.replace(b'"seq": 9,', b'"seq": 90,'), "a damaged trace"),
        (
            lambda whole: whole.replace(b"run_pinned", b"run_painted"),
            "not an event that this Podium knows",
        ),
        (
            lambda whole: whole.replace(b'"version": 1, "host"', b'"version": 9, "host"'),
            "newer Podium",
        ),
        (
            lambda whole: whole.replace(b'"flow": "playbook"', b'"flow": "operator"'),
            "only playbook runs",
        ),
        (
            lambda whole: whole.replace(b'"at": "2', b'"at": "x2', 1),
            "not an event that this Podium knows",
        ),
        (
            lambda whole: whole.replace(b'"job": {', b'"job": {"no": 1, '),
            "the input of the run is not valid",
        ),
    ],
)
def test_what_cannot_be_replayed_is_reported_with_exit_code_two(
    project: Path, replay: Project, tmp_path: Path, spoil: Callable[[bytes], bytes], words: str
) -> None:
    file = tmp_path / "spoiled.jsonl"
    file.write_bytes(spoil(trace_in(project).read_bytes()))
    result = replay(file)
    assert (result.code, words in result.err) == (2, True), result.out + result.err


def test_arguments_that_are_not_those_of_their_call_are_not_called_with(
    replay_edited: Project,
) -> None:
    def edit(events: Events) -> None:
        first(events, "tool_requested")["arguments"]["offset"] = 2

    result = replay_edited(edit)
    assert (result.code, "or the trace was edited" in result.err) == (2, True), (
        result.out + result.err
    )


@pytest.mark.soak
def test_a_trace_that_is_too_large_is_not_held_in_memory(
    project: Path, replay: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patched because a trace of that size would take minutes to make."""
    monkeypatch.setattr(recording, "MAX_EVENTS", 5)
    result = replay(trace_in(project))
    assert (result.code, "too large to replay" in result.err) == (2, True)


@pytest.mark.parametrize("source", ["missing.jsonl", ".", "deadbeef"])
def test_missing_source_is_reported(replay: Project, source: str) -> None:
    assert replay(source).code == 2
