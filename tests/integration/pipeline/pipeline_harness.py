"""A small project, agents that play a script in it, and the pipeline that supervises them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from podium.app.app import Podium, open_podium
from podium.app.approvals import approve, reject
from podium.config.configuration import load_configuration
from podium.core.work import Run
from podium.jobs.pipeline.agent_text import slug_of
from podium.jobs.pipeline.composition import pipeline_job
from podium.ports import EventQuery
from tests.repositories import copy_repository

TASK = "Make the sum right"
FEAT = slug_of(TASK)

PLAN = """# Plan

## Reference documents
- calc.py

## Detailed logic
`add` subtracts; it has to add.

## Test scenarios
| call | expected |
|---|---|
| add(2, 2) | 4 |

## Documentation to update
- none: nothing documents it

## Expected deliverables
- calc.py

## Completion checklist
- [ ] add(2, 2) == 4
"""

REPORT = "# Diagnosis\n\nadd() subtracts.\n"
PLAN_PATH = f"docs/dev_docs/plans/plan_{FEAT}.md"
REPORT_PATH = f"docs/dev_docs/research/diagnostic_report_{FEAT}.md"
RESEARCH_PATH = f"docs/dev_docs/research/research_report_{FEAT}.md"
VERIFICATION_PATH = f"docs/dev_docs/reviews/verification_report_{FEAT}.md"
RIGHT = "def add(one, two):\n    return one + two\n"
WRONG = "def add(one, two):\n    return one - two\n"
TEST = """import unittest

from calc import add


class Sums(unittest.TestCase):
    def test_two_and_two(self):
        self.assertEqual(add(2, 2), 4)
"""

Acts = list[dict[str, Any]]


def writes(path: str, content: str) -> dict[str, Any]:
    return {"write": {"path": path, "content": content}}


def turn(role: str, *acts: dict[str, Any], when: str = "") -> dict[str, Any]:
    return {"role": role, "acts": list(acts), **({"when": when} if when else {})}


def investigates(text: str = REPORT, when: str = "") -> dict[str, Any]:
    return turn(
        "investigator",
        writes(REPORT_PATH, text),
        {"payload": {"report_path": REPORT_PATH}},
        when=when,
    )


def investigates_again() -> dict[str, Any]:
    """Told to do better, it does."""
    return investigates(REPORT + "Line 2.\n", when="Stage: investigate, round 2")


def plans_again(most: int = 6) -> list[dict[str, Any]]:
    """Another plan in each later round."""
    return [
        {**plans(f"{PLAN}\nRound {number}.\n"), "when": f"Stage: plan, round {number}\\."}
        for number in range(2, most)
    ]


def plans(text: str = PLAN, **more: Any) -> dict[str, Any]:
    return turn("architect", writes(PLAN_PATH, text), {"payload": {"plan_path": PLAN_PATH, **more}})


def says(role: str, verdict: str, when: str = "", **more: Any) -> dict[str, Any]:
    return turn(role, {"payload": {"verdict": verdict, **more}}, when=when)


def develops(
    content: str = RIGHT, when: str = "", files: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    return turn(
        "developer",
        writes("calc.py", content),
        *(writes(path, text) for path, text in (files or {}).items()),
        writes(VERIFICATION_PATH, "# Verified\n\n- [x] add(2, 2) == 4\n"),
        {"usage": {"input": 1000, "output": 100, "usd": 0.01}},
        {"commit": "Add instead of subtracting"},
        {"payload": {"commit_hash": "HEAD", "status": "success", **more}},
        when=when,
    )


def audits(
    verdict: str = "PASS", stage: str = "audit", number: int = 1, text: str = "", **more: Any
) -> dict[str, Any]:
    kind = "code" if stage == "audit" else "merge"
    path = f"docs/dev_docs/reviews/{kind}_review_{FEAT}_v{number}.md"
    words = text or f"# Review\n\n{verdict}\n"
    return turn(
        "auditor",
        writes(path, words),
        {"payload": {"verdict": verdict, "review_path": path, **more}},
        when=f"Stage: {stage}, round {number}\\.",
    )


def smooth() -> list[dict[str, Any]]:
    """Everybody does what they should, the first time."""
    return [
        investigates(),
        says("lead_analyst", "APPROVE"),
        plans(),
        says("plan_reviewer", "APPROVE"),
        develops(),
        audits(),
        audits(stage="merge_review"),
    ]


def _run_git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


def _make_empty_repository(folder: Path) -> None:
    _run_git(folder, "init", "--quiet", "--initial-branch=main")
    _run_git(folder, "config", "user.name", "Ann")
    _run_git(folder, "config", "user.email", "ann@example.org")


class Project:
    """A repository with a mistake in it, and podium.yaml with agents who play a script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.home = folder / "home"
        self.environ = {**os.environ, "PODIUM_HOME": str(self.home), "HOME": str(folder)}
        self.environ.pop("GITHUB_TOKEN", None)
        self.environ.pop("GH_TOKEN", None)

    def build(
        self,
        turns: Sequence[dict[str, Any]],
        *,
        settings: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Project:
        copy_repository(self.folder, ("pipeline",), _make_empty_repository)
        everything = {
            "agents": {"player": {"kind": "scripted", "script": "../script.yaml"}},
            "checks": ["python3 -m unittest -q"],
            **(settings or {}),
        }
        content = {
            "podium.yaml": yaml.safe_dump(everything),
            "calc.py": WRONG,
            "test_calc.py": TEST,
            ".gitignore": ".podium/\n__pycache__/\n",
            **(files or {}),
        }
        self.play(turns)
        for path, text in content.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=A project")
        return self

    def play(self, turns: Sequence[dict[str, Any]]) -> None:
        """Set the agents' script from now on."""
        (self.folder.parent / "script.yaml").write_text(yaml.safe_dump({"turns": list(turns)}))

    def git(self, *words: str) -> str:
        return _run_git(self.folder, *words)

    @asynccontextmanager
    async def podium(self) -> AsyncIterator[Podium]:
        configuration = load_configuration(self.environ, project=self.folder)
        async with open_podium(configuration, self.environ) as podium:
            yield podium

    async def run(self, task: str = TASK, **intent: Any) -> Run:
        """A run from its beginning until it ended or waits."""
        async with self.podium() as podium:
            job = await pipeline_job(podium, task, **intent)
            engine = await podium.hosting_engine()
            run = await engine.start("pipeline", job.model_dump(mode="json"), task=task)
            return await engine.finish(run.id, stop_when_waiting=True)

    async def resume(self, run_id: str, note: str = "") -> Run:
        async with self.podium() as podium:
            engine = await podium.hosting_engine()
            run = await engine.resume(run_id, note=note, by="Ann")
            return await engine.finish(run.id, stop_when_waiting=True)

    async def answer(self, run: Run, *, yes: bool, why: str = "no use") -> None:
        """Record Ann's answer to the approval that the run waits for."""
        async with self.podium() as podium:
            given = (await podium.store(), podium.clock, podium.ids)
            asked = (run.waiting_for or "").removeprefix("approval:")
            if yes:
                await approve(*given, asked, by="Ann")
            else:
                await reject(*given, asked, by="Ann", why=why)

    async def events(self, run_id: str) -> list[dict[str, Any]]:
        async with self.podium() as podium:
            store = await podium.store()
            found = await store.read(lambda view: view.events(EventQuery(run_id=run_id)))
            return [event.line() for event in found]

    def tree(self, branch: str) -> dict[str, str]:
        """Path → content of every file of the branch, in the user's own repository."""
        names = self.git("ls-tree", "-r", "--name-only", branch).splitlines()
        return {name: self.git("show", f"{branch}:{name}") for name in names}
