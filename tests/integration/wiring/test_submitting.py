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
from tests.integration.cli.desk import Desk
from tests.integration.cli.pipeline_rig import TASK, good_turns, set_up
from tests.integration.cli.sense_rig import lay_out
from tests.integration.duet.stage import Hall
from tests.integration.playbook.stage import Stage

LEAD = "new lead: Sarah 0400123456 in Clayton"


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    desk = Desk(tmp_path, capsys)
    for name in ("PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, desk.environ[name])
    desk.choose_pack("roofing")
    return desk


def submitted(desk: Desk, **wish: Any) -> Run:
    return desk.within(lambda podium: submit(podium, WorkRequest.model_validate(wish), by="bea"))


def runs_of(desk: Desk) -> list[Run]:
    async def look(podium: Podium) -> list[Run]:
        store = await podium.store()
        return await store.read(lambda view: view.runs(RunQuery()))

    return desk.within(look)


def test_a_task_waits_in_its_queue_with_who_wished_for_it(desk: Desk) -> None:
    set_up(desk, good_turns(), queues={"default": {}, "gpu": {}})
    run = submitted(
        desk, flow="pipeline", text=TASK, options={"mode": "bugfix"}, queue="gpu", priority=5
    )
    assert (run.flow, run.status, run.queue, run.priority) == (
        "pipeline",
        RunStatus.QUEUED,
        "gpu",
        5,
    )
    assert (run.task, run.input["mode"], asked_by(run)) == (TASK, "bugfix", "bea")
    assert [each.id for each in runs_of(desk)] == [run.id]


def test_a_run_that_is_delayed_says_when_it_may_start(desk: Desk) -> None:
    set_up(desk, good_turns())
    run = submitted(desk, flow="pipeline", text=TASK, delay_seconds=3600)
    assert run.not_before is not None
    assert (run.not_before - run.created_at).total_seconds() == pytest.approx(3600, abs=5)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("wish", "words"),
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
    desk: Desk, wish: dict[str, Any], words: str
) -> None:
    set_up(desk, good_turns())
    with pytest.raises(BadInput, match=words.replace(".", r"\.")):
        submitted(desk, **{"flow": "pipeline", "text": TASK, **wish})
    assert runs_of(desk) == []


def test_plain_words_become_a_run_of_the_operator_that_says_who_asked(desk: Desk) -> None:
    run = submitted(desk, flow="operator", text=LEAD)
    assert (run.flow, run.status, run.queue) == ("operator", RunStatus.QUEUED, "default")
    assert asked_by(run) == "bea"


def test_words_that_the_operator_cannot_act_on_begin_nothing(desk: Desk) -> None:
    with pytest.raises(NotPossibleNow, match="the operator started no run: "):
        submitted(desk, flow="operator", text="please make it nice")
    with pytest.raises(BadInput, match="leave out queue, priority and delay_seconds"):
        submitted(desk, flow="operator", text=LEAD, priority=1)
    assert runs_of(desk) == []


def test_a_yes_beforehand_is_taken_from_those_alone_whose_yes_the_door_takes(desk: Desk) -> None:
    with pytest.raises(CallRefused, match="bea is not an approver"):
        submitted(desk, flow="operator", text=LEAD, options={"approve": True})
    assert runs_of(desk) == []


def test_what_is_nested_without_end_is_no_wish(desk: Desk) -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"in": deep}
    with pytest.raises(ValidationError, match="flatten it"):
        submitted(desk, flow="operator", text=LEAD, options={"context": deep})


def test_a_plan_is_answered_at_once_and_nothing_is_recorded(desk: Desk) -> None:
    async def planned(podium: Podium) -> tuple[str, bool]:
        answer = await ask(podium, LEAD, mode="plan", by="bea")
        return answer.status, podium.has_record

    assert desk.within(planned) == ("planned", False)


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
    desk: Desk, text: str, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        desk.within(lambda podium: ask(podium, text, by="bea", **more))


def test_a_playbook_of_the_project_waits_with_its_inputs(desk: Desk) -> None:
    Stage(desk)
    run = submitted(
        desk,
        flow="playbook",
        text="bump.md",
        options={"inputs": {"version": "2.0"}, "dry_run": True},
    )
    assert (run.status, run.queue, run.input["dry_run"]) == (RunStatus.QUEUED, "default", True)
    assert run.input["inputs"] == {"version": "2.0"}


@pytest.mark.parametrize("place", ["../outside.md", "/etc/passwd", "link.md", ""])
def test_files_beside_the_project_are_not_read(desk: Desk, place: str) -> None:
    Stage(desk)
    (desk.project / "link.md").symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match=r"outside the project|is missing"):
        submitted(desk, flow="playbook", text=place)
    with pytest.raises(BadInput, match=r"root .* is outside the project"):
        submitted(desk, flow="playbook", text="bump.md", options={"root": ".."})


def test_a_task_for_two_waits_for_a_pair_whose_folder_was_granted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, capsys)
    for name, value in desk.environ.items():
        monkeypatch.setenv(name, value)
    hall = Hall(desk)
    with pytest.raises(CallRefused, match="is not granted"):
        submitted(desk, flow="duet", text="tidy up")
    assert hall.duet("up", "--grant").code == 0
    with pytest.raises(BadInput, match="there is no pair 'other'; pairs: main"):
        submitted(desk, flow="duet", text="tidy up", options={"pairs": ["other"]})
    run = submitted(desk, flow="duet", text="tidy up", priority=3)
    assert (run.status, run.queue, run.priority) == (RunStatus.QUEUED, "duet", 3)
    assert run.input["patient"] is True


def test_a_look_is_planned_for_by_a_worker_who_ends_the_tick(desk: Desk) -> None:
    lay_out(desk, mode="supervised", failing=("opal_api",))
    run = submitted(desk, flow="sense")
    assert (run.flow, run.status, run.queue) == ("sense", RunStatus.QUEUED, "sense")
    assert asked_by(run) == "bea"
    with pytest.raises(NotPossibleNow, match="of an earlier tick is still queued"):
        submitted(desk, flow="sense")
    desk.run("worker", "--queue", "sense", "--once")
    told = desk.within(see_sense).ticks[0]
    assert (told.tick, told.status, told.run_id) == (1, "OK", run.id)
    assert told.counts["health"] > 0
    assert [each.state for each in told.candidates] == ["waiting"]


def test_a_second_look_takes_in_the_plan_of_the_first(desk: Desk) -> None:
    lay_out(desk, failing=("opal_api",))
    first = submitted(desk, flow="sense")
    desk.run("worker", "--queue", "sense", "--once")
    second = submitted(desk, flow="sense")
    assert (first.task, second.task) == ("tick 1", "tick 2")


def test_every_flow_says_what_it_may_be_told(desk: Desk) -> None:
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
