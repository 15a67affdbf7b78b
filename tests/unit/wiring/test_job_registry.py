"""Jobs are found by name, and every part that a job names is there."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
from fastapi import APIRouter
from pydantic import BaseModel
from typer import Typer

from podium.core import job as registry
from podium.core.job import Command, Job, built_in_jobs, installed_jobs, job_of_flow, load

KINDS: dict[str, type] = {"options": BaseModel, "request": BaseModel, "pages": APIRouter, "api": APIRouter, "sockets": APIRouter}  # fmt: skip


@pytest.mark.parametrize("job", built_in_jobs(), ids=lambda job: job.name)
def test_every_part_of_a_job_is_there_and_of_its_kind(job: Job) -> None:
    assert job.flows
    assert all(callable(load(path)) for path in job.flows.values())
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


OWN = Job(name="own", flows={"own": "own_job:build"}, commands={"own": Command("own_job:app", "Do.")})  # fmt: skip
TAKES_A_COMMAND = Job(name="other", flows={"other": "other_job:build"}, commands={"run": Command("other_job:app", "Do.")})  # fmt: skip
TAKES_A_FLOW = Job(name="third", flows={"duet": "third_job:build"})


def test_installed_job_is_found_unless_it_takes_a_name_of_podium(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Installed(EntryPoint):
        def load(self) -> Any:
            return {"a": OWN, "b": TAKES_A_COMMAND, "c": TAKES_A_FLOW}[self.name]

    entries = EntryPoints(Installed(name, "x:JOB", registry.GROUP) for name in "cba")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: entries)
    installed_jobs.cache_clear()
    try:
        assert installed_jobs() == (OWN,)
        assert job_of_flow("own") is OWN
    finally:
        installed_jobs.cache_clear()


def test_files_that_steer_a_job_are_guarded() -> None:
    guarded = [load(job.guarded_files) for job in built_in_jobs() if job.guarded_files]
    assert all(isinstance(files, tuple) for files in guarded)
    assert {"plugin-profile.yaml", "g/tools/gmx_clc_parse_plan.py"} <= {
        f for fs in guarded for f in fs
    }
