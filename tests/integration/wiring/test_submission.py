"""Wishes of every flow become runs in queues, and what cannot be is refused before anything is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from podium.app.app import Podium
from podium.app.work_request import WorkRequest, asked_by, option_schemas, submit
from podium.core.errors import BadInput, CallRefused, NotPossibleNow
from podium.core.work import Run, RunStatus
from podium.jobs.operator.submission import ask
from podium.jobs.sense.page import see_sense
from podium.ports import RunQuery
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.pipeline_harness import TASK, good_turns, set_up
from tests.integration.cli.sense_harness import lay_out
from tests.integration.duet.duet_harness import Hall
from tests.integration.playbook.playbook_harness import Stage

LEAD = "new lead: Sarah 0400123456 in Clayton"


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    for name in ("PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, cli.environ[name])
    cli.choose_pack("roofing")
    return cli


def submitted(cli: CommandRunner, **intent: Any) -> Run:
    return cli.within(lambda podium: submit(podium, WorkRequest.model_validate(intent), by="bea"))


def runs_of(cli: CommandRunner) -> list[Run]:
    async def look(podium: Podium) -> list[Run]:
        store = await podium.store()
        return await store.read(lambda view: view.runs(RunQuery()))

    return cli.within(look)


def test_a_task_waits_in_its_queue_with_who_wished_for_it(cli: CommandRunner) -> None:
    set_up(cli, good_turns(), queues={"default": {}, "gpu": {}})
    run = submitted(
        cli, flow="pipeline", text=TASK, options={"mode": "bugfix"}, queue="gpu", priority=5
    )
    assert (run.flow, run.status, run.queue, run.priority) == (
        "pipeline",
        RunStatus.QUEUED,
        "gpu",
        5,
    )
    assert (run.task, run.input["mode"], asked_by(run)) == (TASK, "bugfix", "bea")
    assert [item.id for item in runs_of(cli)] == [run.id]


def test_a_run_that_is_delayed_says_when_it_may_start(cli: CommandRunner) -> None:
    set_up(cli, good_turns())
    run = submitted(cli, flow="pipeline", text=TASK, delay_seconds=3600)
    assert run.not_before is not None
    assert (run.not_before - run.created_at).total_seconds() == pytest.approx(3600, abs=5)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("intent", "words"),
    [
        ({"options": {"modee": "x"}}, "unknown option 'modee'; options: agent, base, mode"),
        ({"options": {"mode": ["x"]}}, "option 'mode': Input should be a valid string"),
        ({"options": {"mode": "sideways"}}, "there is no mode 'sideways'; modes:"),
        ({"queue": "nowhere"}, "podium.yaml has no queue 'nowhere'; queues: default"),
        ({"text": "a\0b"}, "contains a NUL byte"),
        ({"text": " "}, "the task is empty"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_nothing_is_stored(
    cli: CommandRunner, intent: dict[str, Any], words: str
) -> None:
    set_up(cli, good_turns())
    with pytest.raises(BadInput, match=words.replace(".", r"\.")):
        submitted(cli, **{"flow": "pipeline", "text": TASK, **intent})
    assert runs_of(cli) == []


def test_plain_words_become_a_run_of_the_operator_that_says_who_asked(cli: CommandRunner) -> None:
    run = submitted(cli, flow="operator", text=LEAD)
    assert (run.flow, run.status, run.queue) == ("operator", RunStatus.QUEUED, "default")
    assert asked_by(run) == "bea"


def test_words_that_the_operator_cannot_act_on_begin_nothing(cli: CommandRunner) -> None:
    with pytest.raises(NotPossibleNow, match="the operator started no run: "):
        submitted(cli, flow="operator", text="please make it nice")
    with pytest.raises(BadInput, match="leave out queue, priority and delay_seconds"):
        submitted(cli, flow="operator", text=LEAD, priority=1)
    assert runs_of(cli) == []


def test_a_yes_beforehand_is_taken_from_those_alone_whose_yes_the_door_takes(
    cli: CommandRunner,
) -> None:
    with pytest.raises(CallRefused, match="bea is not an approver"):
        submitted(cli, flow="operator", text=LEAD, options={"approve": True})
    assert runs_of(cli) == []


def test_endlessly_nested_input_is_no_request(cli: CommandRunner) -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"in": deep}
    with pytest.raises(ValidationError, match="flatten it"):
        submitted(cli, flow="operator", text=LEAD, options={"context": deep})


def test_a_plan_is_answered_at_once_and_nothing_is_recorded(cli: CommandRunner) -> None:
    async def planned(podium: Podium) -> tuple[str, bool]:
        answer = await ask(podium, LEAD, mode="plan", by="bea")
        return answer.status, podium.has_record

    assert cli.within(planned) == ("planned", False)


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (LEAD, {"mode": "execute"}, "'execute' is not available here"),
        (LEAD, {"mode": "enqueue_and_wait"}, "enqueue the message and follow the run"),
        ("APPROVE: apr_1", {"mode": "plan"}, "approvals cannot be sent as messages here"),
        (LEAD, {"mode": "enqueue", "approve": True, "provenance": ("mcp",)}, "mcp cannot"),
    ],
)
def test_the_operator_neither_waits_nor_takes_approvals_here(
    cli: CommandRunner, text: str, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        cli.within(lambda podium: ask(podium, text, by="bea", **more))


def test_a_playbook_of_the_project_waits_with_its_inputs(cli: CommandRunner) -> None:
    Stage(cli)
    run = submitted(
        cli,
        flow="playbook",
        text="bump.md",
        options={"inputs": {"version": "2.0"}, "dry_run": True},
    )
    assert (run.status, run.queue, run.input["dry_run"]) == (RunStatus.QUEUED, "default", True)
    assert run.input["inputs"] == {"version": "2.0"}


@pytest.mark.parametrize("place", ["../outside.md", "/etc/passwd", "link.md", ""])
def test_files_beside_the_project_are_not_read(cli: CommandRunner, place: str) -> None:
    Stage(cli)
    (cli.project / "link.md").symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match=r"outside the project|is missing"):
        submitted(cli, flow="playbook", text=place)
    with pytest.raises(BadInput, match=r"root .* is outside the project"):
        submitted(cli, flow="playbook", text="bump.md", options={"root": ".."})


def test_a_task_for_two_waits_for_a_pair_whose_folder_was_granted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = CommandRunner(tmp_path, capsys)
    for name, value in cli.environ.items():
        monkeypatch.setenv(name, value)
    hall = Hall(cli)
    with pytest.raises(CallRefused, match="is not granted"):
        submitted(cli, flow="duet", text="tidy up")
    assert hall.duet("up", "--grant").code == 0
    with pytest.raises(BadInput, match="there is no pair 'other'; pairs: main"):
        submitted(cli, flow="duet", text="tidy up", options={"pairs": ["other"]})
    run = submitted(cli, flow="duet", text="tidy up", priority=3)
    assert (run.status, run.queue, run.priority) == (RunStatus.QUEUED, "duet", 3)
    assert run.input["patient"] is True


def test_a_look_is_planned_for_by_a_worker_who_ends_the_tick(cli: CommandRunner) -> None:
    lay_out(cli, mode="supervised", failing=("opal_api",))
    run = submitted(cli, flow="sense")
    assert (run.flow, run.status, run.queue) == ("sense", RunStatus.QUEUED, "sense")
    assert asked_by(run) == "bea"
    with pytest.raises(NotPossibleNow, match="of an earlier tick is still queued"):
        submitted(cli, flow="sense")
    cli.run("worker", "--queue", "sense", "--once")
    messages = cli.within(see_sense).ticks[0]
    assert (messages.tick, messages.status, messages.run_id) == (1, "OK", run.id)
    assert messages.counts["health"] > 0
    assert [candidate.state for candidate in messages.candidates] == ["waiting"]


def test_a_second_look_takes_in_the_plan_of_the_first(cli: CommandRunner) -> None:
    lay_out(cli, failing=("opal_api",))
    first = submitted(cli, flow="sense")
    cli.run("worker", "--queue", "sense", "--once")
    second = submitted(cli, flow="sense")
    assert (first.task, second.task) == ("tick 1", "tick 2")


def test_every_flow_states_which_options_it_accepts(cli: CommandRunner) -> None:
    schemas = option_schemas()
    assert set(schemas) == {"pipeline", "operator", "sense", "playbook", "duet"}
    assert set(schemas["playbook"]["properties"]) == {
        "profile",
        "root",
        "agent",
        "inputs",
        "dry_run",
    }
    assert all(schema["additionalProperties"] is False for schema in schemas.values())
