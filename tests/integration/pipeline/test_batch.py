"""Several tasks at once: each a run of its own, merged one after the other and verified on top of those before it."""

from __future__ import annotations

from pathlib import Path

from podium.core.work import RunStatus
from tests.integration.pipeline.batch_harness import BatchProject, merges_of, resolver, worker
from tests.integration.pipeline.pipeline_harness import writes


async def test_four_tasks_with_a_conflict_end_in_one_branch(tmp_path: Path) -> None:
    project = BatchProject(tmp_path).build_green(
        [
            *worker("Write part one", {"one.py": "ONE = 1\n"}),
            *worker("Write part two", {"two.py": "TWO = 2\n"}),
            *worker("Name it red", {"name.py": "NAME = 'red'\n"}),
            *worker("Name it blue", {"name.py": "NAME = 'blue'\n"}),
            resolver("Name it red", writes("name.py", "NAME = 'red and blue'\n")),
            resolver("Name it blue", writes("name.py", "NAME = 'red and blue'\n")),
        ]
    )
    head = project.git("rev-parse", "HEAD")
    run = await project.run_tasks("Write part one", "Name it red", "Name it blue", "Write part two")
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    branch = run.result["branch"]

    tree = project.tree(branch)
    assert (tree["one.py"], tree["two.py"]) == ("ONE = 1", "TWO = 2")
    assert tree["name.py"] == "NAME = 'red and blue'"
    assert len(merges_of(project, branch)) == 4
    assert project.git("rev-parse", "HEAD") == head
    assert not project.git("status", "--porcelain")
