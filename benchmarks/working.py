"""A workspace of a large repository, against what `git worktree add` itself takes."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, median
from podium.core.workspaces import WorkspaceSpec
from podium.git import GitWorkspaces
from podium.platform.system_clock import SystemClock, SystemIds
from podium.sandbox import ProcessLauncher

FILES = 50_000
ROUNDS = 3


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        repository = _repository(Path(folder, "repository"))
        launcher = ProcessLauncher()
        made = GitWorkspaces(
            launcher,
            Path(folder, "state"),
            SystemClock(),
            SystemIds(),
            secrets_in=lambda text: (),
        )
        plain, ours = [], []
        for number in range(ROUNDS):
            tree = Path(folder, f"tree-{number}")
            plain.append(_timed(repository, "worktree", "add", "-q", str(tree)))
            shutil.rmtree(tree)
            spec = WorkspaceSpec(task=f"task-{number}", repository=str(repository))
            began = time.perf_counter()
            workspace = await made.create(spec)
            ours.append(time.perf_counter() - began)
            shutil.rmtree(workspace.record.path)
        return [
            Figure(
                f"workspace of {FILES:,} files made",
                median(ours) * 1000,
                "ms",
                median(plain) * 1000,
                "git worktree add",
                most_ratio=1.5,
            )
        ]


def _timed(folder: Path, *words: str) -> float:
    began = time.perf_counter()
    _git(folder, *words)
    return time.perf_counter() - began


def _repository(folder: Path) -> Path:
    for number in range(FILES):
        path = folder / f"{number % 100:02}" / f"{number // 100 % 10}" / f"file-{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")
    _git(folder, *who, "commit", "-qm", "first")
    return folder


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
