"""A run that is killed again and again comes to the same end, and nothing of it is done twice."""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from podium.core.work import RunStatus
from podium.jobs.pipeline.composition import pipeline_job
from podium.ports import EventQuery
from tests.integration.pipeline.pipeline_harness import (
    RIGHT,
    TASK,
    WRONG,
    Project,
    audits,
    develops,
    investigates_again,
    says,
    smooth,
    turn,
    writes,
)

SUBTRACTS = "\n\ndef sub(one, two):\n    return one - two\n"


def eventful() -> list[dict[str, Any]]:
    """One REJECT, one FAIL and one conflict on the way."""
    return [
        says("lead_analyst", "REJECT", "Stage: analyse, round 1", feedback="Name the line."),
        investigates_again(),
        audits("FAIL", text="# Review\n\n## Findings\n- Say why in a comment\n"),
        audits("PASS", number=2),
        develops(RIGHT + "# adds\n", when="Stage: develop, round 2"),
        turn(
            "integration_specialist",
            writes("calc.py", RIGHT + "# adds\n" + SUBTRACTS),
            {"commit": "Merge main"},
            {"payload": {"status": "success", "commit_hash": "HEAD"}},
        ),
        *smooth(),
    ]


class Chaos:
    """A project whose base has moved unless its run is a quick one, hosted by processes that die."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.project = Project(folder).build(smooth() if mode == "quick" else eventful())
        self.mode = mode
        self.run_id = ""
        self.moved = mode == "quick"

    def last(self) -> tuple[int, str]:
        """Number and content of the run's newest event."""
        found = self.asked("order by seq desc limit 1")
        return (int(found[0][0]), str(found[0][1])) if found else (0, "")

    def has_workspace(self) -> bool:
        rows = self.asked("and type = 'step_completed' limit 10")
        return any('"workspace' in body for _, body in rows)

    def asked(self, more: str) -> list[tuple[int, str]]:
        database = self.project.folder / ".podium" / "podium.db"
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as store:
            words = f"select seq, body from events where run_id = ? {more}"
            return store.execute(words, (self.run_id,)).fetchall()

    async def begin(self) -> None:
        """Store the run; nobody hosts it yet. The base moves once its workspace is there."""
        async with self.project.podium() as podium:
            job = await pipeline_job(podium, TASK, mode=self.mode)
            engine = await podium.hosting_engine()
            run = await engine.start(
                "pipeline", job.model_dump(mode="json"), task=TASK, queue="default"
            )
            self.run_id = run.id

    def move_base(self) -> None:
        (self.project.folder / "calc.py").write_text(WRONG + SUBTRACTS)
        self.project.git("commit", "--quiet", "--all", "--message=Meanwhile")
        self.moved = True

    def child(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "podium",
                "resume",
                self.run_id,
                "--project",
                self.project.folder,
            ],
            env=self.project.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def lines(self) -> list[dict[str, Any]]:
        return await self.project.events(self.run_id)


async def lived_through(folder: Path, mode: str, kills: int, seed: int) -> tuple[Chaos, set[str]]:
    """Host the run by children that are killed, each at a point where none was killed before."""
    chaos = Chaos(folder, mode)
    await chaos.begin()
    if not kills and chaos.moved:
        await chaos.project.resume(chaos.run_id)
        return chaos, set()
    points: set[str] = set()
    chance = random.Random(seed)
    for _ in range(4 * kills + 1):
        child = chaos.child()
        wanted = chance.randint(1, 8) if len(points) < kills else None
        point = await asyncio.to_thread(_kill_after, chaos, child, wanted)
        if point:
            points.add(point)
        if child.returncode == 0:
            break
    return chaos, points


def _kill_after(chaos: Chaos, child: subprocess.Popen[bytes], wanted: int | None) -> str:
    """Kill it when the run has so many more events, and say which one came last. Empty: it ended first.

    None: it is left in peace, once the base has moved.
    """
    began = chaos.last()[0]
    deadline = time.monotonic() + 300
    while child.poll() is None and time.monotonic() < deadline:
        if not chaos.moved and chaos.has_workspace():
            chaos.move_base()
        if wanted is None and chaos.moved:
            with suppress(subprocess.TimeoutExpired):
                child.wait(deadline - time.monotonic())
            break
        seq, body = chaos.last()
        if wanted is not None and seq >= began + wanted:
            child.kill()
            child.wait()
            return re.sub(r"[0-9a-f]{12,}|\d+\.\d+|(?<=\"fence\":)\d+", "#", body)[:300]
        time.sleep(0.02)
    child.kill()
    child.wait()
    return ""


def refs(project: Project, branch: str, run_id: str) -> dict[str, str]:
    """The final tree without what no two runs share: ids, commits, durations, digests of output."""
    short = branch.rsplit("-", 1)[1]
    found = {}
    for path, text in project.tree(branch).items():
        plain = text.replace(run_id, "RUN").replace(short, "SHORT")
        plain = re.sub(r"\b[0-9a-f]{12,64}\b|\b\d+\.\d+ ?s\b", "#", plain)
        found[path.replace(short, "SHORT")] = re.sub(r"in \d+\.\d+s", "#", plain)
    return found


async def see_it_through(folder: Path, mode: str, kills: int, seed: int) -> None:
    quiet, _ = await lived_through(folder / "quiet", mode, 0, seed)
    chaos, points = await lived_through(folder / "chaos", mode, kills, seed)
    assert len(points) >= kills, sorted(points)
    async with chaos.project.podium() as podium:
        run = await (await podium.store()).read(lambda view: view.run(chaos.run_id))
        events = await (await podium.store()).read(
            lambda view: view.events(EventQuery(run_id=chaos.run_id))
        )
    async with quiet.project.podium() as podium:
        calm = await (await podium.store()).read(lambda view: view.run(quiet.run_id))
    assert run is not None
    assert calm is not None
    assert run.status is RunStatus.SUCCEEDED, run.failure
    branch, other = run.result["branch"], calm.result["branch"]
    assert refs(chaos.project, branch, run.id) == refs(quiet.project, other, calm.id)
    subjects = chaos.project.git("log", "--format=%s", branch).splitlines()
    calm_subjects = quiet.project.git("log", "--format=%s", other).splitlines()
    assert without_ids(subjects) == without_ids(calm_subjects)
    nobody_is_paid_twice([event.line() for event in events])


def without_ids(subjects: list[str]) -> list[str]:
    """Sorted: when the base moved is not the same moment in two runs."""
    return sorted(re.sub(r"[0-9a-f]{6,}", "#", subject) for subject in subjects)


def nobody_is_paid_twice(events: list[dict[str, Any]]) -> None:
    """After a step was recorded its agent is not asked again."""
    finished: Counter[str] = Counter(e["step"] for e in events if e["type"] == "step_completed")
    assert {step: times for step, times in finished.items() if times > 1} == {}
    begun: set[str] = set()
    for event in events:
        if event["type"] == "step_started":
            assert event["step"] not in begun, event
        elif event["type"] == "step_completed":
            begun.add(event["step"])


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_a_run_killed_at_some_points_comes_to_the_same_end(tmp_path: Path) -> None:
    await see_it_through(tmp_path, "quick", kills=2, seed=7)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_run_killed_at_dozens_of_points_comes_to_the_same_end(tmp_path: Path) -> None:
    await see_it_through(tmp_path, "bugfix", kills=26, seed=int(time.time()))
