"""The demo's sample project: a small shop with a bug, and a colleague who does not wait."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree

from podium.cli.demo_host import done

TASK = "Discounts are wrong"
"""The documents' names in the sample's script are made of it."""
BASE = "main"
MEANWHILE = "Add shipping to totals"

_KEPT = ("PODIUM_HOME", "PODIUM_SANDBOX")
_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
"""Nobody's hooks, templates and signing keys have a part in the play."""


def demo_environ(environ: Mapping[str, str], home: Path | None) -> dict[str, str]:
    """The person's environment without what would make another play of it.

    With a `home` nothing is left in the person's own.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or not name.startswith(("PODIUM_", "GIT_"))
    }
    return kept if home is None else {**kept, "PODIUM_HOME": str(home)}


class Sample:
    """The project, as its owner and a colleague use it."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self._environ = {**environ, **_ALONE}

    def make(self) -> None:
        """Write it down and commit it on the base branch."""
        self._copy("project")
        (self.folder / ".gitignore").write_text(".podium/\n__pycache__/\n")
        self.git("init", "--quiet", "--template=", f"--initial-branch={BASE}")
        self.git("config", "user.name", "Podium demo")
        self.git("config", "user.email", "demo@podium.invalid")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A small shop")

    def move_base(self) -> None:
        """What a colleague commits there while the agents are at work, on the lines they change."""
        self._copy("meanwhile")
        self.git("commit", "--quiet", "--all", "--message", MEANWHILE)

    def graph(self, branch: str) -> tuple[str, ...]:
        told = self.git("log", "--oneline", "--graph", f"refs/heads/{branch}", "--")
        return tuple(line.rstrip() for line in told.splitlines())

    def holds_base(self, branch: str) -> bool:
        """Whether the base, as the colleague left it, was merged into the branch."""
        return not self.git("log", "--oneline", f"refs/heads/{branch}..refs/heads/{BASE}", "--")

    def git(self, *words: str) -> str:
        return done(["git", *words], self.folder, self._environ)

    def _copy(self, part: str) -> None:
        with as_file(files("podium.cli") / "sample" / part) as content:
            copytree(content, self.folder, dirs_exist_ok=True)
