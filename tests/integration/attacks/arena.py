"""The arena: a user's machine in small, built once and copied afresh for each attack.

Everything in it belongs to whoever runs the suite, the agent included: permissions protect nothing here.
It stands at the same path each time, as worktrees and workspaces hold absolute paths.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podium.app.secrets import secret_finder
from podium.core.workspaces import WorkspaceRecord, WorkspaceSpec
from podium.git import GitWorkspaces
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Launcher
from podium.store import Redactor
from tests.integration.attacks.template import Template, remove_tree

FORBIDDEN = ("conf/prod", "deploy/keys")
"""Of the task's worktree: a folder that exists, and one that does not."""
SECRETS = (
    "canary-of-the-key",
    "canary-of-the-other-task",
    "canary-of-the-journal",
    "canary-of-the-environment",
)
"""Words that stand in files and variables which the agent was not given."""
COMMITTED = "hf7-canary-of-the-deployment-93k"
"""The value of a secret that Podium knows, which no commit may carry out."""
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_PATIENCE_SECONDS = 120.0
_LONG_AGO = "2024-01-01T00:00:00Z"


@dataclass(frozen=True)
class Places:
    """Paths in the arena."""

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "arena"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def repository(self) -> Path:
        return self.root / "work/project"

    @property
    def remote(self) -> Path:
        return self.root / "work/remote.git"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def marks(self) -> Path:
        """Programs that should never run leave something here."""
        return self.root / "marks"

    @property
    def held_open(self) -> Path:
        """A file that the supervisor has open, by a descriptor that children would inherit."""
        return self.base / "held-open.txt"


class Arena:
    """Builds the places, and puts them back."""

    def __init__(self, base: Path, launcher: Launcher) -> None:
        self.places = Places(base)
        self._kept = base / "template"
        self._template = Template(self._kept, self.places.root)
        self._launcher = launcher
        self.task: WorkspaceRecord
        self.other: WorkspaceRecord

    def workspaces(self, launcher: Launcher) -> GitWorkspaces:
        return GitWorkspaces(
            launcher,
            self.places.state,
            SystemClock(),
            SystemIds(),
            secrets_in=secret_finder(Redactor({"DEPLOY_TOKEN": COMMITTED})),
            confined=True,
        )

    async def build(self) -> None:
        """Make everything once, and keep it as the template."""
        places = self.places
        places.held_open.write_text("held open by the supervisor\n")
        for folder in (places.home, places.repository, places.outside, places.state, places.marks):
            folder.mkdir(parents=True)
        _build_home(places.home)
        _build_outside(places.outside)
        (places.state / "journal.db").write_text(f"events {SECRETS[2]}\n")
        _build_repository(self.git, places)
        self.task = await self._workspace("task-1")
        self.other = await self._workspace("other")
        Path(self.other.private, "home/token").write_text(SECRETS[1])
        _age(places.root)
        for checkout in (places.repository, Path(self.task.path), Path(self.other.path)):
            self.git("status", "--short", cwd=checkout)
        places.root.rename(self._kept)
        self.renew()

    async def _workspace(self, task: str) -> WorkspaceRecord:
        spec = WorkspaceSpec(task=task, repository=str(self.places.repository), forbidden=FORBIDDEN)
        workspace = await self.workspaces(self._launcher).create(spec)
        await workspace.confinement()  # makes the forbidden folder that is not there yet
        return workspace.record

    def renew(self) -> None:
        """Put everything back as it was."""
        self._template.put_back()
        self.places.held_open.write_text("held open by the supervisor\n")

    def clear(self) -> None:
        remove_tree(self.places.root)

    def git(
        self,
        *words: str,
        cwd: Path | None = None,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Return the output of the user's own git, run with the user's settings."""
        done = self.users_git(*words, cwd=cwd or self.places.repository, env=env)
        assert not check or done.returncode == 0, f"git {words}: {done.stderr}"
        return done.stdout.strip()

    def users_git(
        self, *words: str, cwd: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Raises `TimeoutExpired` when it hangs; then all that it started is ended."""
        process = subprocess.Popen(
            ["git", *words],
            cwd=cwd,
            env={**self.users_env(), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
            start_new_session=True,
        )
        with process:
            try:
                output, trouble = process.communicate(timeout=_PATIENCE_SECONDS)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, trouble)

    def users_env(self) -> dict[str, str]:
        return {
            "PATH": SEARCH_PATH,
            "HOME": str(self.places.home),
            "LC_ALL": "C.UTF-8",
            "USER": "uma",
        }


def _build_home(home: Path) -> None:
    files = {
        ".gitconfig": "[user]\n\tname = Uma User\n\temail = uma@example.org\n[init]\n\tdefaultBranch = main\n",
        ".bashrc": "# uma's shell\n",
        ".profile": "# uma's login\n",
        ".npmrc": "fund=false\n",
        ".config/tool/settings.json": "{}\n",
        ".ssh/id_ed25519": f"{SECRETS[0]}\n",
        ".ssh/authorized_keys": "ssh-ed25519 AAAA uma\n",
    }
    for name, content in files.items():
        _write(home / name, content)
    (home / ".ssh/id_ed25519").chmod(0o600)


def _build_outside(outside: Path) -> None:
    _write(outside / "notes.txt", "uma's notes\n" * 20)
    _write(outside / "folder/deep/kept.txt", "kept\n")
    _write(outside / "folder/two.txt", "two\n")
    _write(outside / "tool.sh", "#!/bin/sh\necho a tool of uma\n")
    (outside / "tool.sh").chmod(0o755)
    (outside / "link").symlink_to("notes.txt")
    # A victim of its own file: programs can be recognised by it.
    shutil.copy("/usr/bin/sleep", outside / "victim")


def _build_repository(git: Callable[..., str], places: Places) -> None:
    repository = places.repository
    git("init", "-q", "--template=", "-b", "main")
    git("config", "user.name", "Uma User")
    git("config", "user.email", "uma@example.org")
    # Copies of the arena have other inodes and times of change; the user's index must not care.
    git("config", "core.checkStat", "minimal")
    git("config", "core.trustctime", "false")
    _commit(
        git, repository, "first", README="hello\n", src__app="print(1)\n", conf__prod__key="k\n"
    )
    _commit(git, repository, "second", src__lib="lib\n", src__deep__more="more\n")
    git("tag", "-a", "v0", "-m", "zero")
    git("branch", "feature")
    git("pack-refs", "--all")
    git("repack", "-qad")
    _commit(git, repository, "third", src__third="third\n")
    git("tag", "v1")
    git("branch", "topic")
    _write(repository / "README", "stashed\n")
    git("stash")
    dangling = git("commit-tree", "-m", "dangling work", "HEAD^{tree}")
    _write(repository / ".git/dangling", dangling)
    _write(repository / ".git/hooks/pre-push", "#!/bin/sh\nexit 0\n")
    (repository / ".git/hooks/pre-push").chmod(0o755)
    _write(repository / ".gitignore", "*.log\n")
    _commit(git, repository, "fourth", src__fourth="fourth\n")
    git("init", "-q", "--template=", "--bare", "-b", "main", str(places.remote))
    git("remote", "add", "origin", str(places.remote))
    git("push", "-q", "origin", "main", "feature")
    _age(repository)
    git("status", "--short")
    _write(repository / "src/app", "print(2)  # not committed yet\n")
    _write(repository / "untracked.txt", "not added yet\n")


def _commit(git: Callable[..., str], folder: Path, message: str, **files: str) -> None:
    for name, content in files.items():
        _write(folder / name.replace("__", "/"), content)
    git("add", "-A")
    git("commit", "-qm", message)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def _age(root: Path) -> None:
    """So old that no index has to look into files to be sure."""
    words = [
        "find",
        str(root),
        "-type",
        "f",
        "!",
        "-name",
        "index",
        "-exec",
        "touch",
        "-d",
        _LONG_AGO,
        "{}",
        "+",
    ]
    subprocess.run(words, check=True)
