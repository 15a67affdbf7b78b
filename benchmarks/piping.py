"""Costs of the pipeline's supervisor, against the processes and commits that the work needs anyway."""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, median
from podium.agents import scripted
from podium.app.app import Podium
from podium.app.checks import Check
from podium.core.processes import ProcessSpec
from podium.core.work import RunStatus
from podium.core.workspaces import WorkspaceSpec
from podium.jobs.pipeline.composition import pipeline_job
from podium.ports import Workspace
from tests.integration.pipeline.pipeline_harness import RIGHT, TASK, Project, smooth

ROUNDS = 7
RUNS = int(os.environ.get("PODIUM_BENCH_RUNS", "200"))
WARM_RUNS = RUNS // 4
TURNS = 5
"""Of a direct run that goes well: plan, its review, the work, its review, the merge's review."""
CHECK = Check(name="tests", command="python3 -m unittest -q")
PART = json.dumps({"acts": [], "first_act": 0, "reply": "done"}).encode()


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder)).build(smooth())
        async with project.podium() as podium:
            await podium.hosting_engine()
            ours, bare = [], []
            for number in range(ROUNDS):
                ours.append(await _run(podium))
                bare.append(await _bare(podium, number))
            grown = await _growth(podium)
        return [
            Figure(
                "a run of the pipeline",
                median(ours) * 1000,
                "ms",
                median(bare) * 1000,
                "its processes, imports and commits alone",
                most_ratio=2.0,
            ),
            Figure(f"memory grown over {RUNS - WARM_RUNS} runs", grown, "MB", most=10.0),
        ]


async def _run(podium: Podium) -> float:
    engine = await podium.hosting_engine()
    began = time.perf_counter()
    job = await pipeline_job(podium, TASK)
    run = await engine.start("pipeline", job.model_dump(mode="json"), task=TASK)
    ended = await engine.finish(run.id)
    took = time.perf_counter() - began
    if ended.status is not RunStatus.SUCCEEDED:
        raise RuntimeError(f"the run did not succeed: {ended.failure}")
    return took


async def _bare(podium: Podium, number: int) -> float:
    """The same work with nobody in charge: the check on the base, each turn's program in the fence, its commit, its import."""
    began = time.perf_counter()
    intent = podium.workspace_spec(f"bare-{number}", base="main")
    workspace = await podium.workspaces.create(WorkspaceSpec.model_validate(intent.model_dump()))
    await podium.check_runner.run(workspace, CHECK, 60.0)
    for turn in range(TURNS):
        await _role_agent(podium, workspace)
        await _commit(workspace, f"docs/{turn}.md", turn)
    await podium.check_runner.run(workspace, CHECK, 60.0)
    await _commit(workspace, "docs/evidence.md", TURNS)
    await _commit(workspace, "docs/archive.md", TURNS + 1)
    return time.perf_counter() - began


async def _role_agent(podium: Podium, workspace: Workspace) -> None:
    ended = await podium.launcher.run(
        ProcessSpec(
            argv=(sys.executable, "-IS", str(scripted.SCRIPT_PROGRAM)),
            cwd=workspace.record.path,
            stdin=PART,
            confinement=await podium.confinement_provider.confinement(workspace.record.path),
        )
    )
    if ended.exit_code != 0:
        raise RuntimeError(f"the player left with {ended.exit_code}: {ended.stderr[-500:]!r}")


async def _commit(workspace: Workspace, path: str, turn: int) -> None:
    await workspace.write({path: f"{turn}\n", "calc.py": RIGHT})
    await workspace.commit("work", [path, "calc.py"], trailers={"Turn": str(turn)})
    await workspace.deliver()


async def _growth(podium: Podium) -> float:
    """Megabytes between the run that ended the warming up and the last one."""
    for _ in range(WARM_RUNS):
        await _run(podium)
    before = _resident()
    for _ in range(RUNS - WARM_RUNS):
        await _run(podium)
    return _resident() - before


def _resident() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
