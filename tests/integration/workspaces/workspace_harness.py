"""Repositories and confined processes for tests of workspaces.

Confinement is a bubblewrap command line written by hand here, so that these tests stand on the data of a
`Confinement` alone and not on the code that enforces it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.core.processes import Confinement, ProcessExit, ProcessSpec
from podium.core.workspaces import WorkspaceSpec
from podium.git.workspace import GitWorkspace
from podium.git.workspace_registry import GitWorkspaces
from podium.ports.launcher import Launcher, Process
from podium.sandbox import ProcessLauncher
from podium.testing import FixedClock, SteadyIds
from tests.repositories import copy_repository

_ALONE = shlex.split(
    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-net --cap-drop ALL --die-with-parent "
    "--new-session --ro-bind /usr /usr --ro-bind /etc /etc --proc /proc --dev /dev --tmpfs /tmp --tmpfs /run"
)


def needs_bwrap() -> pytest.MarkDecorator:
    """Skip, with the reason, where bubblewrap cannot confine."""
    probe = ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"]
    works = shutil.which("bwrap") and subprocess.run(probe, capture_output=True).returncode == 0
    return pytest.mark.skipif(not works, reason="bubblewrap does not work on this machine")


def bwrap_words(confinement: Confinement, cwd: str) -> list[str]:
    """The command line that enforces mounts and pinned paths."""
    words = ["bwrap", *_ALONE]
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            words += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
    for mount in confinement.mounts:
        words += ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]
    roots = [mount.target for mount in confinement.mounts if mount.writable]
    above: dict[str, None] = {}
    for path in confinement.pinned:
        for folder in reversed(Path(path).parents):
            if any(Path(root) in folder.parents for root in roots):
                above[str(folder)] = None
    for name in above:
        words += ["--bind", name, name]
    for path in confinement.pinned:
        words += ["--ro-bind", path, path]
    return [*words, "--remount-ro", "/", "--chdir", cwd, "--"]


class BwrapLauncher:
    """Starts confined spawns under bubblewrap, all others as they are."""

    def __init__(self) -> None:
        self._inner = ProcessLauncher()
        self.spawns: list[ProcessSpec] = []

    async def start(self, spawn: ProcessSpec) -> Process:
        return await self._inner.start(self._wrapped(spawn))

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        return await self._inner.run(self._wrapped(spawn))

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        return await self._inner.on_terminal(self._wrapped(spawn))

    def _wrapped(self, spawn: ProcessSpec) -> ProcessSpec:
        self.spawns.append(spawn)
        if spawn.confinement.kind == "none":
            return spawn
        words = bwrap_words(spawn.confinement, spawn.cwd)
        return spawn.model_copy(
            update={"argv": (*words, *spawn.argv), "cwd": "/", "confinement": Confinement()}
        )


def git(folder: Path | str, *words: str, check: bool = True) -> str:
    """Run git in a repository as the user."""
    done = subprocess.run(
        ["git", "-c", "user.name=Uma", "-c", "user.email=uma@example.org", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path | str, message: str = "work", **files: str) -> str:
    """Write files, given as `name=content` with `__` for `/`, commit them, and give the commit."""
    for name, content in files.items():
        path = Path(folder, name.replace("__", "/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def make_repository(folder: Path, *words: str) -> Path:
    """A repository of a user with a few files, a feature branch, a tag and a stash."""
    copy_repository(folder, ("rig", *words), lambda template: _make_repository(template, *words))
    return folder


def _make_repository(folder: Path, *words: str) -> None:
    git(folder, "init", "-q", "-b", "main", *words)
    git(folder, "config", "user.name", "Uma User")
    git(folder, "config", "user.email", "uma@example.org")
    commit(folder, "first", README="hello\n", src__app="print(1)\n", conf__prod__key="k\n")
    git(folder, "branch", "feature")
    git(folder, "tag", "-a", "v1", "-m", "one")
    (folder / "README").write_text("stashed\n")
    git(folder, "stash")
    commit(folder, "second", src__lib="lib\n")


class Place:
    """A user's repository, a state home, and the workspaces in it."""

    def __init__(
        self, folder: Path, launcher: Launcher | None = None, *, confined: bool = True
    ) -> None:
        self.repository = make_repository(folder / "repo")
        self.state_home = folder / "state"
        self.launcher = launcher or BwrapLauncher()
        self.workspaces = self.opened(confined=confined)

    def opened(self, *, confined: bool = True, seed: int = 0) -> GitWorkspaces:
        return GitWorkspaces(
            self.launcher,
            self.state_home,
            FixedClock(),
            SteadyIds(seed),
            secrets_in=lambda text: (),
            confined=confined,
        )

    async def make(
        self, task: str = "t1", forbidden: Sequence[str] = (), **more: str
    ) -> GitWorkspace:
        spec = WorkspaceSpec(task=task, repository=str(self.repository), forbidden=tuple(forbidden))
        return await self.workspaces.create(spec.model_copy(update=more))

    async def agent(self, workspace: GitWorkspace, script: str) -> ProcessExit:
        """Run a shell script as an agent would: confined."""
        return await self.launcher.run(
            ProcessSpec(
                argv=("bash", "-ec", script),
                cwd=workspace.record.path,
                env={"HOME": f"{workspace.record.private}/home"},
                confinement=await workspace.confinement(),
            )
        )

    async def works(self, workspace: GitWorkspace, script: str) -> str:
        """The same, for what must succeed; what it printed."""
        ended = await self.agent(workspace, script)
        assert ended.exit_code == 0, ended.stderr.decode()
        return ended.stdout.decode().strip()

    def user(self, *words: str) -> str:
        return git(self.repository, *words)

    def state(self) -> dict[str, str]:
        """Everything of the user's repository that must not change by itself, by name."""
        git_dir = self.repository / ".git"
        names = ["HEAD", "config", "packed-refs", "index"]
        files = {name: _content(git_dir / name) for name in names}
        files |= {str(p.relative_to(git_dir)): _content(p) for p in (git_dir / "hooks").iterdir()}
        refs = self.user("for-each-ref", "--format=%(objectname) %(refname)")
        return {**files, "refs": refs, "status": self.user("status", "--porcelain")}


def _content(path: Path) -> str:
    return path.read_bytes().hex() if path.exists() else ""
