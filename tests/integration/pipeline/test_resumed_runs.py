"""A run goes on where its record says it is: with its workspace gone, on another host, and from an earlier step."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.core.work import Run, RunStatus
from tests.integration.pipeline.pipeline_harness import (
    PLAN,
    RIGHT,
    Project,
    audits,
    develops,
    plans,
    smooth,
)
from tests.soaking import in_soak

OTHERWISE = "def add(one, two):\n    return sum((one, two))\n"


async def stopped(project: Project, turns: int = 3, mode: str = "direct") -> Run:
    """A run that was stopped by its budget after so many turns, and may go on now."""
    say(project, budgets={"run": {"turns": turns}})
    run = await project.run(mode=mode)
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure
    assert run.failure is not None
    assert run.failure.exit_code == 5
    say(project, budgets={"run": {"turns": 50}})
    return run


def say(project: Project, **more: Any) -> None:
    file = project.folder / "podium.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **more}))


async def retried(project: Project, run_id: str, step: str) -> Run:
    async with project.podium() as podium:
        engine = await podium.hosting_engine()
        run = await engine.retry(run_id, from_step=step, by="Ann")
        return await engine.finish(run.id, stop_when_waiting=True)


async def asked(project: Project, run_id: str) -> list[str]:
    return [e["role"] for e in await project.events(run_id) if e["type"] == "agent_asked"]


async def notes(project: Project, run_id: str, word: str) -> list[str]:
    texts = [e["text"] for e in await project.events(run_id) if e["type"] == "note_taken"]
    return [text for text in texts if word in text]


def workspace_of(project: Project) -> Path:
    (folder,) = (project.folder.parent / ".worktrees").iterdir()
    return folder


def elsewhere(project: Project, folder: Path, *branches: str) -> Project:
    """The project on another host that shares the record: a clone with these branches, and a home of its own."""
    other = Project(folder)
    folder.mkdir()
    project.git("clone", "--quiet", "--single-branch", project.folder.as_uri(), str(other.folder))
    other.git("config", "user.name", "Ann")
    other.git("config", "user.email", "ann@example.org")
    other.git("remote", "remove", "origin")
    for branch in branches:
        other.git("fetch", "--quiet", str(project.folder), f"{branch}:{branch}")
    shutil.copy(project.folder / "podium.yaml", other.folder)
    shutil.copy(project.folder.parent / "script.yaml", folder)
    shutil.copytree(project.folder / ".podium", other.folder / ".podium")
    shutil.copytree(project.home / "state/vaults", other.home / "state/vaults")
    return other


def branch_of(project: Project) -> str:
    return project.git("branch", "--list", "task/*", "--format=%(refname:short)")


@pytest.mark.soak
async def test_a_workspace_that_somebody_removed_is_made_again_and_no_step_is_repeated(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth())
    run = await stopped(project)
    gone = workspace_of(project)
    shutil.rmtree(gone)
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(project, run.id)).count("developer") == 1
    assert project.tree(run.result["branch"])["calc.py"] == RIGHT.strip()
    assert run.result["workspace"] == str(gone)
    assert "is gone" in "".join(await notes(project, run.id, "recreated"))


@pytest.mark.parametrize("gone", [False, in_soak(True)])
async def test_what_a_person_committed_to_the_branch_stays_there_until_he_says_what_is_to_be(
    tmp_path: Path, gone: bool
) -> None:
    project = Project(tmp_path).build(smooth())
    run = await stopped(project, turns=2, mode="quick")
    branch = branch_of(project)
    head = project.git("rev-parse", branch)
    mine = project.git("commit-tree", f"{branch}^{{tree}}", "-p", branch, "-m", "mine")
    project.git("update-ref", f"refs/heads/{branch}", mine)
    if gone:
        shutil.rmtree(workspace_of(project))
    run = await project.resume(run.id)
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure
    assert run.failure is not None
    assert f"git update-ref refs/heads/{branch} {head}" in run.failure.message
    assert f"podium resume {run.id}" in run.failure.message
    assert project.git("rev-parse", branch) == mine
    project.git("branch", "kept", branch)
    project.git("update-ref", f"refs/heads/{branch}", head)
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert project.tree(branch)["calc.py"] == RIGHT.strip()


@pytest.mark.soak
async def test_work_a_person_left_uncommitted_is_kept_and_reported(tmp_path: Path) -> None:
    project = Project(tmp_path).build(smooth())
    run = await stopped(project)
    (workspace_of(project) / "mine.txt").write_text("not committed\n")
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    (output,) = await notes(project, run.id, "mine.txt")
    (ref,) = [word.strip(".;") for word in output.split() if word.startswith("refs/podium/")]
    assert project.git("show", f"{ref}:mine.txt") == "not committed"
    assert "mine.txt" not in project.tree(run.result["branch"])


@pytest.mark.soak
async def test_with_all_of_its_home_gone_too_it_is_made_beside_what_lies_in_its_place(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth())
    run = await stopped(project)
    old = workspace_of(project)
    (old / "notes.txt").write_text("not committed\n")
    shutil.rmtree(project.home / "workspaces", ignore_errors=True)
    for found in tmp_path.rglob("ws_*"):
        if found.is_dir():
            shutil.rmtree(found)
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert run.result["workspace"] == f"{old}-2"
    assert (old / "notes.txt").read_text() == "not committed\n"


@pytest.mark.soak  # the next one comes to it too
async def test_another_host_that_has_the_branch_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path / "one").build(smooth())
    run = await stopped(project)
    other = elsewhere(project, tmp_path / "two", branch_of(project))
    run = await other.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(other, run.id)).count("developer") == 1
    assert other.tree(run.result["branch"])["calc.py"] == RIGHT.strip()
    assert run.result["workspace"].startswith(str(tmp_path / "two"))


@pytest.mark.soak
async def test_a_host_without_the_branch_asks_for_it_and_goes_on_when_it_is_there(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path / "one").build(smooth())
    run = await stopped(project, turns=2, mode="quick")
    branch = branch_of(project)
    other = elsewhere(project, tmp_path / "two")
    run = await other.resume(run.id)
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure
    assert run.failure is not None
    tip = project.git("rev-parse", branch)
    for word in (
        f"refs/heads/{branch}",
        tip[:12],
        socket.gethostname(),
        "git fetch",
        "podium retry",
        str(other.folder),
    ):
        assert word in run.failure.message
    assert not other.git("branch", "--list", "task/*")
    other.git("fetch", "--quiet", str(project.folder), branch)
    run = await other.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(other, run.id)).count("developer") == 1


@pytest.mark.soak
async def test_a_turn_whose_commits_were_lost_with_their_host_is_asked_for_again(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path / "one").build(smooth())
    run = await project.run()
    other = elsewhere(project, tmp_path / "two")
    project.git("branch", "before", run.result["stages"][1]["commit"])
    branch = run.result["branch"]
    other.git("fetch", "--quiet", str(project.folder), f"before:{branch}")
    run = await retried(other, run.id, "settle:develop#1")
    assert run.status is RunStatus.SUCCEEDED, run.failure
    roles = await asked(other, run.id)
    assert (roles.count("architect"), roles.count("developer")) == (1, 2)
    assert other.tree(branch)["calc.py"] == RIGHT.strip()


@pytest.mark.soak
async def test_a_host_that_was_left_behind_catches_up(tmp_path: Path) -> None:
    project = Project(tmp_path / "one").build(smooth())
    run = await stopped(project)
    branch = branch_of(project)
    other = elsewhere(project, tmp_path / "two", branch)
    say(other, budgets={"run": {"turns": 4}})
    run = await other.resume(run.id)
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure
    shutil.rmtree(project.folder / ".podium")
    shutil.copytree(other.folder / ".podium", project.folder / ".podium")
    shutil.copytree(other.home / "state/vaults", project.home / "state/vaults", dirs_exist_ok=True)
    behind = await project.resume(run.id)
    assert behind.status is RunStatus.NEEDS_HUMAN, behind.failure
    project.git("fetch", "--quiet", str(other.folder), branch)
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(project, run.id)).count("auditor") == 1


@pytest.mark.soak
async def test_going_back_finds_an_answer_as_it_was_or_asks_anew_and_keeps_what_was_delivered(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth())
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure
    old, branch = run.result["history"], run.result["branch"]
    before = project.tree(run.result["history_ref"])
    run = await retried(project, run.id, "settle:develop#1")
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(project, run.id)).count("developer") == 1
    after = project.tree(run.result["history_ref"])
    assert (run.result["branch"], after.keys()) == (branch, before.keys())
    assert after["calc.py"] == RIGHT.strip()
    plan = run.result["plan"]
    assert after[plan] == before[plan] == PLAN.strip()
    project.play([develops(OTHERWISE), audits(), audits(stage="merge_review"), *smooth()])
    run = await retried(project, run.id, "develop-1")
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert project.tree(branch)["calc.py"] == OTHERWISE.strip()
    assert RIGHT.strip() not in project.git("log", "--patch", f"main..{branch}")
    refs = project.git("for-each-ref", "--format=%(refname)", "refs/podium").split()
    assert any(project.git("merge-base", old, ref) == old for ref in refs)
    assert (await asked(project, run.id)).count("architect") == 1


@pytest.mark.soak
async def test_going_back_to_what_was_made_of_a_plan_finds_the_plan_as_it_was(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth())
    run = await project.run()
    before = run.result["branch"], project.tree(run.result["history_ref"])
    run = await retried(project, run.id, "settle:plan#1")
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(project, run.id)).count("architect") == 1
    after = project.tree(run.result["history_ref"])
    assert (run.result["branch"], after.keys()) == (before[0], before[1].keys())
    assert after["calc.py"] == RIGHT.strip()
    plan = run.result["plan"]
    assert after[plan] == before[1][plan] == PLAN.strip()


@pytest.mark.soak
async def test_going_back_with_the_workspace_gone_finds_the_commits_of_the_turn(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth())
    run = await project.run()
    shutil.rmtree(run.result["workspace"])
    run = await retried(project, run.id, "settle:develop#1")
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(project, run.id)).count("developer") == 1
    assert project.tree(run.result["branch"])["calc.py"] == RIGHT.strip()


@pytest.mark.soak
async def test_going_back_to_the_beginning_starts_from_the_base(tmp_path: Path) -> None:
    project = Project(tmp_path).build(smooth())
    run = await project.run()
    project.play([plans(f"{PLAN}\nAnother.\n"), *smooth()])
    run = await retried(project, run.id, "workspace")
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert (await asked(project, run.id)).count("architect") == 2
    assert "Another." in project.tree(run.result["history_ref"])[run.result["plan"]]
