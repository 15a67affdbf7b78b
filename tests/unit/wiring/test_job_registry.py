"""Jobs are found by name, and every part that a job names is there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
from fastapi import APIRouter
from pydantic import BaseModel
from typer import Typer

from podium.app.chat import REQUIRED_ROLE
from podium.app.checkup.machine import check_jobs
from podium.core import job as registry
from podium.core.job import (
    Command,
    FlowSpec,
    Job,
    all_jobs,
    built_in_jobs,
    find_installed_jobs,
    installed_jobs,
    job_of_flow,
    load,
)

KINDS: dict[str, type] = {"options": BaseModel, "request": BaseModel, "pages": APIRouter, "api": APIRouter, "sockets": APIRouter}  # fmt: skip


@pytest.mark.parametrize("job", built_in_jobs(), ids=lambda job: job.name)
def test_every_part_of_a_job_is_there_and_of_its_kind(job: Job) -> None:
    assert job.flows
    for flow in job.flows.values():
        assert callable(load(flow.build))
        assert issubclass(load(flow.input), BaseModel)
        assert inspect.getsource(load(flow.code))
    assert all(isinstance(load(path), Typer) for path in job.benches.values())
    for command in job.commands.values():
        assert isinstance(load(command.app), Typer)
        assert command.help.endswith(".")
    for name in ("run_view", "report", "queues", "planned_call", "submit"):
        assert not getattr(job, name) or callable(load(getattr(job, name)))
    for name, kind in KINDS.items():
        if path := getattr(job, name):
            part = load(path)
            assert (
                issubclass(part, kind) if name in ("options", "request") else isinstance(part, kind)
            )


def test_flow_belongs_to_one_job_and_a_flow_of_the_kernel_to_none() -> None:
    names = [flow for job in built_in_jobs() for flow in job.flows]
    assert len(names) == len(set(names))
    work_order = job_of_flow("work_order")
    assert work_order is not None
    assert work_order.name == "sense"
    assert job_of_flow("call") is None


OWN_FLOW = FlowSpec("own_job:build", "own_job:Input", "own_job:build")
OWN = Job(name="own", flows={"own": OWN_FLOW}, commands={"own": Command("own_job:app", "Do.")})  # fmt: skip
TAKES_A_COMMAND = Job(name="other", flows={"other": OWN_FLOW}, commands={"run": Command("other_job:app", "Do.")})  # fmt: skip
TAKES_AN_EVENT = Job(name="fourth", flows={}, events={"stage_ended": "fourth_job:Ended"})
LISTS_KERNEL_EVENT = Job(name="fifth", flows={}, events={"run_started": "fifth_job:Started"})
TAKES_A_FLOW = Job(name="third", flows={"duet": OWN_FLOW})


class Installed(EntryPoint):
    """Entry point whose value is the name of a job here; any other name cannot be imported."""

    def load(self) -> Any:
        jobs = {
            "own": OWN,
            "command": TAKES_A_COMMAND,
            "flow": TAKES_A_FLOW,
            "own_again": OWN,
            "event": TAKES_AN_EVENT,
            "kernel_event": LISTS_KERNEL_EVENT,
            "text": "JOB",
            "paths": Job(name="paths", flows={"paths": "own_job:build"}),  # type: ignore[dict-item]
        }
        return jobs[self.value]


def use_entries(monkeypatch: pytest.MonkeyPatch, **entries: str) -> None:
    points = EntryPoints(Installed(name, value, registry.GROUP) for name, value in entries.items())
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)
    find_installed_jobs.cache_clear()


@pytest.fixture(autouse=True)
def _forget_installed_jobs() -> Iterator[None]:
    yield
    find_installed_jobs.cache_clear()


def test_installed_job_is_found_unless_it_takes_a_name_that_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_entries(monkeypatch, d="own_again", e="event", c="flow", b="command", a="own")
    assert installed_jobs() == (OWN,)
    assert job_of_flow("own") is OWN
    assert [problem.partition(": ")[2] for problem in find_installed_jobs().problems] == [
        "run",
        "duet",
        "own",
        "stage_ended",
    ]


async def test_broken_installed_job_stops_no_other_and_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_entries(monkeypatch, a="missing_module:JOB", b="text", c="own", d="paths")
    assert all_jobs() == (*built_in_jobs(), OWN)
    finding = await check_jobs()
    assert finding.state == "warn"
    assert "job 'a' (missing_module:JOB) cannot be loaded: KeyError" in finding.says
    assert "job 'b' (text) is a str, not a Job" in finding.says
    assert "job 'd' (paths) has flows that are not a FlowSpec: paths" in finding.says


async def test_installed_job_that_lists_an_event_of_the_kernel_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_entries(monkeypatch, a="kernel_event")
    assert "job 'fifth' lists event types that belong to Podium: run_started" in (await check_jobs()).says  # fmt: skip


def test_files_that_steer_a_job_are_guarded() -> None:
    guarded = [load(job.guarded_files) for job in built_in_jobs() if job.guarded_files]
    assert all(isinstance(files, tuple) for files in guarded)
    assert {"plugin-profile.yaml", "g/tools/gmx_clc_parse_plan.py"} <= {
        f for fs in guarded for f in fs
    }


def test_a_part_of_an_installed_job_that_cannot_be_loaded_is_left_out_and_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Job("broken", {}, approvals="no_such_module:Approvals")
    monkeypatch.setattr(registry, "installed_jobs", lambda: (broken,))
    loaded = [job.name for job, _ in registry.load_parts("approvals")]
    assert loaded == ["operator", "sense"]
    assert "approvals of job 'broken' cannot be loaded" in capsys.readouterr().err


def test_words_of_chats_are_those_that_the_registry_keeps_free() -> None:
    assert tuple(REQUIRED_ROLE) == registry.CHAT_VERBS
