"""Events are found by the name of their type: the kernel's, those of jobs, and unknown ones, which are kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

from podium.core import events as e
from podium.core import job as registry
from podium.core.job import Job, all_jobs, built_in_jobs, job_of_event, load
from podium.render import event as render
from podium.render.event import describe, view_event
from podium.render.event_view import EventView

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HAILED = {"type": "hailed", "version": 2, "name": "Ann", "loud": True}


class Hailed(e.EventBody):
    type: Literal["hailed"] = "hailed"
    version: int = 2
    name: str
    loud: bool = False


def lift_hailed(data: dict[str, Any]) -> dict[str, Any]:
    return {"type": "hailed", "version": 2, "name": data["who"]}


HAIL = Job(
    name="hail",
    flows={},
    events={"hailed": "hail_job:Hailed", "lost": "hail_job:Lost"},
    upcasts={("hailed", 1): "hail_job:lift_hailed"},
    event_view="hail_job:view_event",
)


def _forget() -> None:
    for cached in (e.event_class, e._upcast_of_job, render._view_of_job):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def _fresh_registry() -> Iterator[None]:
    _forget()
    yield
    _forget()


@pytest.fixture
def hail_job(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A job with an event, installed."""
    module = ModuleType("hail_job")
    vars(module).update(
        Hailed=Hailed,
        lift_hailed=lift_hailed,
        view_event=lambda body: EventView(f"to {body.name}", outcome="bad"),
    )
    monkeypatch.setitem(sys.modules, "hail_job", module)
    monkeypatch.setattr(registry, "installed_jobs", lambda: (HAIL,))
    return module


@pytest.mark.parametrize("job", built_in_jobs(), ids=lambda job: job.name)
def test_job_lists_every_event_of_its_module_under_its_type(job: Job) -> None:
    for name, path in job.events.items():
        kind = load(path)
        assert issubclass(kind, e.EventBody)
        assert kind.model_fields["type"].default == name
        defined = {
            path
            for path, value in vars(sys.modules[kind.__module__]).items()
            if isinstance(value, type)
            and issubclass(value, e.EventBody)
            and value.__module__ == kind.__module__
        }
        assert {listed.partition(":")[2] for listed in job.events.values()} == defined
    assert bool(job.events) == bool(job.event_view)


def test_type_of_event_belongs_to_one_job_and_to_no_kernel() -> None:
    names = [name for job in all_jobs() for name in job.events]
    assert len(names) == len(set(names))
    assert not set(names) & set(e.KERNEL_EVENTS)
    job = job_of_event("stage_began")
    assert job is not None
    assert job.name == "pipeline"
    assert job_of_event("run_started") is None


def test_event_of_an_installed_job_is_read_lifted_and_shown_by_it(hail_job: ModuleType) -> None:
    assert e.read_body(HAILED) == Hailed(name="Ann", loud=True)
    old = e.read_body({"type": "hailed", "version": 1, "who": "Bob"})
    assert old == Hailed(name="Bob")
    assert view_event(old) == EventView("to Bob", outcome="bad")
    assert "hailed" in e.event_union().json_schema()["discriminator"]["mapping"]


def test_event_of_a_missing_job_is_kept_and_shown_as_unknown() -> None:
    body = e.read_body(HAILED)
    assert isinstance(body, e.UnknownEvent)
    event = e.Event(run_id="run_x", seq=1, position=1, at=NOW, body=body)
    assert event.line() == {"run": "run_x", "seq": 1, "at": NOW.isoformat(), **HAILED}
    assert e.Event.model_validate_json(event.model_dump_json()) == event
    assert describe(body) == "unknown type: name=Ann loud=true"


def test_event_whose_class_cannot_be_loaded_is_kept_as_unknown(hail_job: ModuleType) -> None:
    assert isinstance(e.read_body({"type": "lost", "where": "here"}), e.UnknownEvent)
    assert "lost" not in e.event_union().json_schema()["discriminator"]["mapping"]


@pytest.mark.parametrize("data", [{}, {"type": 5}, {"type": "run_started", "owner": "x"}])
def test_body_without_a_type_or_with_missing_fields_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        e.read_body(data)


def test_model_with_an_event_validates_and_dumps_it_by_the_class_of_its_type() -> None:
    class Page(BaseModel):
        body: e.AnyEvent

    data = {"body": {"type": "stage_began", "stage": "audit", "role": "auditor"}}
    page = Page.model_validate(data)
    assert type(page.body).__name__ == "StageBegan"
    assert json.loads(page.model_dump_json())["body"]["stage"] == "audit"
    with pytest.raises(ValidationError, match="an event must be a JSON object"):
        Page.model_validate({"body": "stage_began"})
