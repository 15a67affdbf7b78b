"""The remote's base branch: fetched, integrated, and looked at once more before anything is pushed."""

from __future__ import annotations

import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from podium.core.forge import RemoteBase
from podium.core.work import RunStatus
from podium.git.forge import RepositoryForge
from podium.git.forge.remotes import Remotes
from tests.integration.pipeline.pipeline_harness import (
    FEAT,
    RIGHT,
    WRONG,
    Project,
    audits,
    smooth,
    turn,
    writes,
)
from tests.soaking import in_soak

THEIRS = "def add(one, two):\n    return two - one\n"


def run_git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Shared:
    """A project with a bare remote and a colleague's clone of it."""

    def __init__(self, folder: Path, turns: list[dict[str, Any]], **more: Any) -> None:
        self.project = Project(folder).build(turns, **more)
        self.bare = folder / "origin.git"
        self.colleague = folder / "colleague"
        run_git(folder, "clone", "--quiet", "--bare", str(self.project.folder), str(self.bare))
        self.project.git("remote", "add", "origin", str(self.bare))
        self.project.git("update-ref", "refs/remotes/origin/main", "main")
        run_git(folder, "clone", "--quiet", str(self.bare), str(self.colleague))

    def moves(self, path: str, text: str) -> str:
        """A shell line by which the colleague commits and pushes."""
        who = "-c user.name=Bo -c user.email=bo@example.org"
        return (
            f"cd {self.colleague} && printf '{text}' > {path} && git add {path} && "
            f"git {who} commit --quiet -m 'Of a colleague: {path}' && git push --quiet origin main"
        )

    def move(self, path: str, text: str) -> None:
        subprocess.run(["sh", "-c", self.moves(path, text)], check=True)

    def merges(self, branch: str) -> bool:
        """Return whether the remote's main can take in the pushed branch without a conflict."""
        words = ["git", "merge-tree", "--write-tree", "main", branch]
        done = subprocess.run(words, cwd=self.bare, capture_output=True, check=False)
        return done.returncode == 0

    def refs(self) -> str:
        form = "--format=%(refname) %(objectname)"
        names = ("refs/heads/main", "refs/remotes/origin/main", "refs/tags")
        return self.project.git("for-each-ref", form, *names)


def solves() -> dict[str, Any]:
    return turn(
        "integration_specialist",
        writes("calc.py", RIGHT),
        {"run": "git add calc.py && git -c user.name=Io -c user.email=io@x.y commit -qm 'Join'"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
    )


@pytest.mark.soak  # the next but one comes to it too
async def test_a_remote_base_that_is_ahead_is_in_the_branch_and_moves_no_ref_of_the_users(
    tmp_path: Path,
) -> None:
    shared = Shared(tmp_path, smooth())
    shared.move("other.py", "NEW = 1\\n")
    before, head = shared.refs(), shared.project.git("rev-parse", "HEAD")
    run = await shared.project.run()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert "other.py" in shared.project.tree(run.result["branch"])
    assert shared.merges(run.result["branch"])
    assert run.result["remote_base"]["name"] == "origin/main"
    assert (shared.refs(), shared.project.git("rev-parse", "HEAD")) == (before, head)
    assert not (shared.project.folder / ".git/FETCH_HEAD").exists()


@pytest.mark.soak
async def test_a_remote_base_that_conflicts_is_solved_before_the_push(tmp_path: Path) -> None:
    shared = Shared(tmp_path, [*smooth(), solves()])
    shared.move("calc.py", THEIRS.replace("\n", "\\n"))
    run = await shared.project.run()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert shared.merges(run.result["branch"])
    assert shared.project.tree(run.result["branch"])["calc.py"] == RIGHT.strip()
    assert shared.project.tree("main")["calc.py"] == WRONG.strip()


@pytest.mark.soak
@pytest.mark.parametrize("look", [in_soak(3), 4], ids=["after the review", "right before the push"])
async def test_a_base_that_moves_before_the_push_goes_back_to_integration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    """Verify that it does the same as for a base that is ahead from the beginning."""
    shared = Shared(tmp_path, [*smooth(), audits(stage="merge_review", number=2)])
    shared.move("early.py", "OLD = 1\\n")
    before, head = shared.refs(), shared.project.git("rev-parse", "HEAD")
    looks = count(1)
    fetched = RepositoryForge._fetched

    async def fetched_late(self: RepositoryForge, repository: str, remotes: Remotes) -> RemoteBase:
        # Patched, because nobody else can come exactly between two looks at the remote.
        if next(looks) == look:
            shared.move("other.py", "NEW = 1\\n")
        return await fetched(self, repository, remotes)

    monkeypatch.setattr(RepositoryForge, "_fetched", fetched_late)
    run = await shared.project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    stages = [(stage["stage"], stage["round"]) for stage in run.result["stages"]]
    assert stages[-4:] == [
        ("integrate", 1),
        ("merge_review", 1),
        ("integrate", 2),
        ("merge_review", 2),
    ]
    tree = shared.project.tree(run.result["branch"])
    assert {"early.py", "other.py"} <= set(tree)
    assert run.result["remote_base"]["name"] == "origin/main"
    assert (shared.refs(), shared.project.git("rev-parse", "HEAD")) == (before, head)
    assert not (shared.project.folder / ".git/FETCH_HEAD").exists()
    assert shared.merges(run.result["branch"])
    history = shared.project.tree(run.result["history_ref"])
    assert set(run.result["documents"]) <= set(history) - set(tree)
    assert run.result["plan"] in history


async def test_unreachable_remote_is_reported_in_result_and_pull_request(
    tmp_path: Path,
) -> None:
    settings = {"flows": {"pipeline": {"push": False}}}
    shared = Shared(tmp_path, smooth(), settings=settings)
    shared.bare.rename(tmp_path / "gone.git")
    run = await shared.project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert "origin" in run.result["remote_base"]["why_not"]
    notes = [e["text"] for e in await shared.project.events(run.id) if e["type"] == "note_taken"]
    assert len([text for text in notes if text.startswith("Base not fetched: ")]) == 1
    assert "Base not fetched" in Path(run.result["pull_request"]["file"]).read_text()
    assert FEAT in run.result["branch"]
