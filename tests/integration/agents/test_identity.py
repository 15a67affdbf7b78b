"""Whose name commits bear, without asking git each time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from podium.agents.deps import AgentDeps
from podium.agents.headless import git_identity
from podium.agents.headless.git_identity import identity_for
from podium.core.processes import ProcessExit, ProcessSpec
from podium.sandbox import ProcessLauncher
from podium.testing import FakeConfinementProvider, FakeHookDoors, FixedClock, MemoryTranscripts


class CountingLauncher(ProcessLauncher):
    """Starts real programs, and counts them."""

    started = 0

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        self.started += 1
        return await super().run(spawn)


class Somebody:
    """A person with a home, and a repository."""

    def __init__(self, folder: Path) -> None:
        self.home, self.repository = folder / "person", folder / "repository"
        self.home.mkdir()
        self.launcher = CountingLauncher()
        self.deps = AgentDeps(
            confinement_provider=FakeConfinementProvider(),
            launcher=self.launcher,
            doors=FakeHookDoors(),
            transcripts=MemoryTranscripts(),
            clock=FixedClock(),
            hook_command=("hook",),
            homes=folder / "homes",
            user_home=self.home,
            environ={},
        )
        self.git(folder, "init", "-q", str(self.repository))

    def git(self, folder: Path, *words: str) -> None:
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)

    async def name(self, folder: Path | None = None) -> str | None:
        found = await identity_for(self.deps, {}, str(folder or self.repository))
        keys = {value: name for name, value in found.items()}
        number = keys.get("user.name", "").removeprefix("GIT_CONFIG_KEY_")
        return found.get(f"GIT_CONFIG_VALUE_{number}")


@pytest.fixture
def somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Somebody:
    monkeypatch.setattr(git_identity, "_cache", {})
    return Somebody(tmp_path)


async def test_git_is_asked_once_as_long_as_nothing_changes(somebody: Somebody) -> None:
    (somebody.home / ".gitconfig").write_text("[user]\nname = Ada\n")
    assert [await somebody.name() for _ in range(3)] == ["Ada"] * 3
    assert somebody.launcher.started == 1
    (somebody.repository / "new.txt").write_text("work does not change who works")
    somebody.git(somebody.repository, "add", "-A")
    assert await somebody.name() == "Ada"
    assert somebody.launcher.started == 1


async def test_every_place_where_a_name_can_be_set_is_looked_at(somebody: Somebody) -> None:
    assert await somebody.name() is None
    for place, name in (
        (somebody.home / ".config/git/config", "Bea"),
        (somebody.home / ".gitconfig", "Cleo"),
        (somebody.repository / ".git/config", "Dora"),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a") as file:
            file.write(f"[user]\nname = {name}\n")
        assert await somebody.name() == name


async def test_a_worktree_has_the_name_of_its_repository(
    somebody: Somebody, tmp_path: Path
) -> None:
    somebody.git(somebody.repository, "config", "user.name", "Eve")
    somebody.git(somebody.repository, "config", "user.email", "eve@example.org")
    somebody.git(somebody.repository, "commit", "-q", "--allow-empty", "-m", "x")
    tree = tmp_path / "tree"
    somebody.git(somebody.repository, "worktree", "add", "-q", str(tree))
    assert [await somebody.name(tree) for _ in range(2)] == ["Eve", "Eve"]
    assert somebody.launcher.started == 1
    somebody.git(somebody.repository, "config", "user.name", "Fay")
    assert await somebody.name(tree) == "Fay"
    somebody.git(somebody.repository, "config", "extensions.worktreeConfig", "true")
    somebody.git(tree, "config", "--worktree", "user.name", "Gil")
    assert (await somebody.name(tree), await somebody.name()) == ("Gil", "Fay")


async def test_settings_included_from_elsewhere_are_read_every_time(somebody: Somebody) -> None:
    (somebody.home / ".gitconfig").write_text("[include]\npath = other\n")
    (somebody.home / "other").write_text("[user]\nname = Hal\n")
    assert await somebody.name() == "Hal"
    (somebody.home / "other").write_text("[user]\nname = Ida\n")
    assert await somebody.name() == "Ida"


async def test_a_pipe_in_the_place_of_a_repository_is_not_waited_on(
    somebody: Somebody, tmp_path: Path
) -> None:
    (tmp_path / "odd").mkdir()
    os.mkfifo(tmp_path / "odd/.git")
    files = list(git_identity._files_of_git(somebody.home, tmp_path / "odd"))
    assert [file.name for file in files[2:]] == ["config", "config.worktree"]


async def test_names_in_the_settings_need_no_git(somebody: Somebody) -> None:
    env = {"GIT_AUTHOR_NAME": "Jo", "GIT_AUTHOR_EMAIL": "jo@example.org", "GIT_CONFIG_COUNT": "1"}
    found = await identity_for(somebody.deps, env, str(somebody.repository))
    assert found["GIT_CONFIG_COUNT"] == "3"
    assert found["GIT_CONFIG_VALUE_2"] == "Jo"
    assert somebody.launcher.started == 0
