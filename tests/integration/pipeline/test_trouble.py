"""Obstacles to a run: each has a defined end, and nothing is lost."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from podium.core.errors import BadInput, LockHeld, NeedsHuman
from podium.core.work import RunStatus
from podium.jobs.pipeline import composition, workspace_recovery
from podium.testing import retry_until
from tests.integration.pipeline.pipeline_harness import RIGHT, TEST, Project, develops, smooth, turn


@pytest.mark.soak
async def test_a_base_branch_that_is_gone_needs_a_person_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth())
    working = asyncio.create_task(project.run(mode="quick"))
    await retry_until(lambda: bool(project.git("branch", "--list", "task/*")))
    project.git("checkout", "--quiet", "-b", "elsewhere")
    project.git("branch", "--delete", "--force", "main")
    run = await working
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure
    (branch,) = project.git("branch", "--list", "task/*", "--format=%(refname:short)").splitlines()
    assert project.tree(branch)["calc.py"] == RIGHT.strip()
    project.git("branch", "main", "elsewhere")
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure


async def test_an_agent_that_is_down_gives_way_to_the_next_of_its_role(tmp_path: Path) -> None:
    project = Project(tmp_path).build(smooth())
    broken = turn("architect", {"fail": {"kind": "unavailable"}})
    (tmp_path / "broken.yaml").write_text(yaml.safe_dump({"turns": [broken]}))
    settings = yaml.safe_load((project.folder / "podium.yaml").read_text())
    settings["agents"]["broken"] = {"kind": "scripted", "script": "../broken.yaml"}
    settings["budgets"] = {"run": {"turns": 2}}
    settings["roles"] = {
        "default": {"agent": "player"},
        "architect": {"agent": ["broken", "player"]},
    }
    (project.folder / "podium.yaml").write_text(yaml.safe_dump(settings))
    project.git("commit", "--quiet", "--all", "--message=Roles")
    run = await project.run()
    events = await project.events(run.id)
    assert [e["next_agent"] for e in events if e["type"] == "agent_switched"] == ["player"]
    (ended,) = [e for e in events if e["type"] == "stage_ended"]
    assert (ended["role"], ended["verdict"]) == ("architect", "DONE")


TROUBLE = """mkdir -p __pycache__
echo x >> __pycache__/tries
case $(wc -l < __pycache__/tries) in 1) sleep 60 ;; 2) kill -9 $PPID ;; esac
"""


async def test_agent_that_is_too_slow_and_then_crashes_is_asked_again_by_itself(
    tmp_path: Path,
) -> None:
    slow = develops()
    slow["acts"].insert(1, {"run": TROUBLE})
    agent = {"kind": "scripted", "script": "../script.yaml", "timeout_seconds": 4}
    project = Project(tmp_path).build([slow, *smooth()], settings={"agents": {"player": agent}})
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    events = await project.events(run.id)
    broke = [e["failure"]["kind"] for e in events if e["type"] == "step_broke"]
    assert broke == ["TimedOut", "AgentLost"]
    waited = [e["signal"] for e in events if e["type"] == "run_waiting"]
    assert waited == ["timer:agent-lost:develop-1-0", "timer:agent-lost:develop-1-0"]
    developed = [
        e["verdict"] for e in events if e["type"] == "stage_ended" and e["stage"] == "develop"
    ]
    assert developed == ["DONE"]


async def test_workspace_that_is_removed_under_a_turn_and_under_checks_is_made_again(
    tmp_path: Path,
) -> None:
    """The first time the agent is at work, the second time the checks are."""
    slow = develops()
    slow["acts"].insert(1, {"sleep_seconds": 1})
    checks = ["cp calc.py seen.py && sleep 1 && python3 -m unittest -q"]
    project = Project(tmp_path).build(
        [slow, *smooth()], settings={"checks": checks, "flows": {"pipeline": {"baseline": "skip"}}}
    )
    working = asyncio.create_task(project.run(mode="quick"))
    for name in ("calc.py", "seen.py"):

        def is_right(name: str = name) -> bool:
            files = list((tmp_path / ".worktrees").glob(f"*/{name}"))
            return any(file.read_text() == RIGHT for file in files) or working.done()

        await retry_until(is_right)
        shutil.rmtree(tmp_path / ".worktrees", ignore_errors=True)
    run = await working
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert project.tree(run.result["branch"])["calc.py"] == RIGHT.strip()
    events = await project.events(run.id)
    notes = [e["text"] for e in events if e["type"] == "note_taken"]
    assert sum("The workspace was recreated from" in text for text in notes) == 2
    developed = [
        e["verdict"] for e in events if e["type"] == "stage_ended" and e["stage"] == "develop"
    ]
    assert developed == ["DONE"], "a lost workspace was held against the developer"


async def test_step_that_meets_a_held_workspace_is_done_again_and_then_a_person_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Pauses are not what this is about.
    monkeypatch.setattr(workspace_recovery, "_FIRST_PAUSE_SECONDS", 0.0)
    held = [LockHeld("a run is using it")] * 2
    notes: list[str] = []

    async def step(name: str, work: Any, **more: Any) -> Any:
        return await work(SimpleNamespace(key=name, run_id="run_1"))

    async def missing(workspace_id: str) -> str:
        return ""

    async def work(context: Any) -> str:
        if held:
            raise held.pop()
        return "done"

    flow = SimpleNamespace(step=step, note=lambda event: notes.append(event.text))
    deps = SimpleNamespace(workspaces=SimpleNamespace(missing=missing))
    made, current = SimpleNamespace(id="ws_1"), SimpleNamespace()
    recovering: Any = workspace_recovery._RecoveringFlow(flow, deps, None, made, current)  # type: ignore[arg-type]
    assert await recovering.step("settle", work) == "done"
    assert notes == ["settle is done again: a run is using it"] * 2
    held += [LockHeld("a run is using it")] * 3
    with pytest.raises(NeedsHuman, match="a run is using it, 3 times during settle"):
        await recovering.step("settle", work)


async def test_a_branch_that_is_refused_again_and_again_asks_every_time(tmp_path: Path) -> None:
    rule = {"name": "push", "tool": "hand_over", "decision": "deny", "why": "not today"}
    project = Project(tmp_path).build(smooth(), settings={"policy": {"rules": [rule]}})
    run = await project.run(mode="quick")
    for number in (1, 2, 3):
        assert run.status is RunStatus.NEEDS_HUMAN
        assert run.failure is not None
        assert (run.failure.kind, "not today" in run.failure.message) == ("NeedsHuman", True)
        if number < 3:
            run = await project.resume(run.id, note=f"try {number}")
    events = await project.events(run.id)
    answered = [e["name"] for e in events if e["type"] == "signal_received"]
    assert answered == ["guidance:hand-over", "guidance:hand-over"]


@pytest.mark.soak  # tests/integration/workspaces has such names too
async def test_spaces_and_other_alphabets_in_names_do_no_harm(tmp_path: Path) -> None:
    odd = "Ordner mit Leerzeichen/été — 日本.txt"
    turns = [develops(files={odd: "neu\n"}), *smooth()]
    project = Project(tmp_path / "ein Ordner — é").build(turns, files={odd: "alt\n"})
    run = await project.run()
    assert run.status is RunStatus.SUCCEEDED, run.failure
    shown = project.git("show", f"{run.result['branch']}:{odd}")
    assert shown == "neu"


async def test_agent_whose_program_is_missing_is_reported_before_anything_is_made(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth())
    home = project.home
    home.mkdir()
    missing = {"agents": {"absent": {"kind": "command", "command": ["/nowhere/at-all"]}}}
    (home / "config.yaml").write_text(yaml.safe_dump(missing))
    with pytest.raises(BadInput, match="absent"):
        await project.run(agent="absent")
    assert project.git("branch", "--list", "task/*") == ""


@pytest.mark.soak
async def test_an_auditor_sees_which_files_go_and_a_policy_may_ask_before_a_branch_goes_out(
    tmp_path: Path,
) -> None:
    rule = {"name": "push", "tool": "hand_over", "decision": "ask", "why": "a person looks first"}
    removes = develops(when="Stage: develop, round 1")
    removes["acts"].insert(0, {"run": "git rm --quiet test_calc.py"})
    # One test is left: without any, the checks would be red and nobody would audit.
    project = Project(tmp_path).build(
        [removes, *smooth()],
        settings={
            "policy": {"rules": [rule]},
            "flows": {"pipeline": {"test_integrity": "warn"}},
        },
        files={"test_more.py": TEST},
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.WAITING, run.failure
    assert not list((project.folder / ".podium").glob("pull_requests/*"))
    await project.answer(run, yes=True)
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    async with project.podium() as podium:
        store = await podium.store()
        receipts = await store.read(lambda view: view.receipts(run.id))
    assert [receipt.tool for receipt in receipts if receipt.tool == "hand_over"] == ["hand_over"]
    asked = [e for e in await project.events(run.id) if e["type"] == "agent_asked"]
    prompts = [e["prompt"] for e in asked if e["role"] == "auditor"]
    assert "`test_calc.py`" in prompts[0]


async def test_a_sparse_checkout_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    project = Project(tmp_path).build(smooth())
    project.git("sparse-checkout", "set", "--cone", "docs")
    with pytest.raises(BadInput, match="sparse"):
        await project.run()
    assert project.git("branch", "--list", "task/*") == ""


async def test_nearly_full_disk_is_reported_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path).build(smooth())
    monkeypatch.setattr(composition, "LEAST_FREE_BYTES", 10**18)
    with pytest.raises(BadInput, match="not enough disk space"):
        await project.run()
    assert project.git("branch", "--list", "task/*") == ""
