"""Several small tasks in one project, and agents that play a script for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.core.work import Run
from podium.jobs.pipeline.agent_text import slug_of
from podium.jobs.pipeline.composition import batch_job
from podium.jobs.pipeline.task_list import BatchTask, named_tasks
from tests.integration.pipeline.pipeline_harness import PLAN, Project, turn, writes

RESOLVE = "Stage: integrate,"
_WORDS = "in the user's words:\\s+`+text\\s+"
"""Before the task in a prompt. The texts of other tasks may be in what was merged."""


def worker(text: str, files: Mapping[str, str], *more: dict[str, Any]) -> list[dict[str, Any]]:
    """Turns of everybody who works on this task in mode `quick`."""
    feat, named = slug_of(text), f"(?s)Stage: {{}},.*{_WORDS}{text}"
    plan = f"docs/dev_docs/plans/plan_{feat}.md"
    reviews = "docs/dev_docs/reviews"
    report = f"{reviews}/verification_report_{feat}.md"
    audits = [
        turn(
            "auditor",
            writes(f"{reviews}/{kind}_review_{feat}_v1.md", "# Review\n\nPASS\n"),
            {
                "payload": {
                    "verdict": "PASS",
                    "review_path": f"{reviews}/{kind}_review_{feat}_v1.md",
                }
            },
            when=named.format(stage),
        )
        for kind, stage in (("code", "audit"), ("merge", "merge_review"))
    ]
    return [
        turn(
            "architect",
            writes(plan, PLAN),
            {"payload": {"plan_path": plan}},
            when=named.format("plan"),
        ),
        turn(
            "developer",
            *more,
            *(writes(path, content) for path, content in files.items()),
            writes(report, "# Verified\n\n- [x] add(2, 2) == 4\n"),
            {"usage": {"input": 1000, "output": 100, "usd": 0.01}},
            {"commit": text},
            {"payload": {"commit_hash": "HEAD", "status": "success"}},
            when=named.format("develop"),
        ),
        *audits,
    ]


def resolver(text: str, *acts: dict[str, Any]) -> dict[str, Any]:
    """Turn of whoever joins the work of this task with what was merged before."""
    return turn(
        "integration_specialist",
        *acts,
        {"run": "git add --all && git -c user.name=Io -c user.email=io@x.y commit -qm 'Join'"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
        when=f"(?s){RESOLVE}.*{_WORDS}{text}",
    )


class BatchProject(Project):
    """A project whose checks pass from the beginning."""

    def build_green(self, turns: Sequence[dict[str, Any]], **more: Any) -> BatchProject:
        files = {"calc.py": "def add(one, two):\n    return one + two\n", **more.pop("files", {})}
        self.build(turns, files=files, **more)
        return self

    async def run_tasks(self, *tasks: str | BatchTask, **more: Any) -> Run:
        """A batch from its beginning until it ended or needs a person."""
        listed = [task if isinstance(task, BatchTask) else named_tasks([task])[0] for task in tasks]
        named = [
            task.model_copy(update={"id": str(number)}) for number, task in enumerate(listed, 1)
        ]
        async with self.podium() as podium:
            job = await batch_job(podium, named, **{"mode": "quick", **more})
            engine = await podium.hosting_engine()
            run = await engine.start("batch", job.model_dump(mode="json"), task=job.task)
            return await engine.finish(run.id, stop_when_waiting=True)


def merges_of(project: Project, branch: str) -> list[str]:
    """Subjects of the first-parent merges of the branch, oldest first."""
    log = project.git("log", "--first-parent", "--reverse", "--format=%s", f"main..{branch}")
    return log.splitlines()
