"""Python, git and tmux."""

from __future__ import annotations

import platform
import re
import sys
import tempfile
from pathlib import Path

from podium.ports import Launcher
from podium.wiring.checkup.finding import Finding, attempt, bad, good, weak

OLDEST_PYTHON = (3, 11)
OLDEST_TMUX = (3, 2)


async def check_python() -> Finding:
    says = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return bad("python", says, "install Python 3.11 or newer")
    return good("python", says)


async def check_git(launcher: Launcher) -> Finding:
    """Git must be there and able to make a repository."""
    version = await attempt(launcher, "git", "--version")
    mend = "install git (apt-get install git, brew install git)"
    if not version.worked:
        return bad("git", version.complaint, mend)
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        made = await attempt(launcher, "git", "init", "--quiet", folder)
        looked = await attempt(launcher, "git", "-C", folder, "status", "--porcelain")
    for trial in (made, looked):
        if not trial.worked:
            return bad("git", f"{version.first_line}, but: {trial.complaint}", mend)
    return good("git", version.first_line.removeprefix("git version "))


async def check_tmux(launcher: Launcher) -> Finding:
    """Tmux must be new enough and able to keep a session, on a socket of our own."""
    mend = "install tmux 3.2 or newer (apt-get install tmux); live terminal agents need it"
    version = await attempt(launcher, "tmux", "-V")
    if not version.worked:
        return weak("tmux", version.complaint, mend)
    found = re.search(r"(\d+)\.(\d+)", version.first_line)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_TMUX:
        return weak("tmux", f"{version.first_line} is too old", mend)
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        session = await attempt(
            launcher,
            *("tmux", "-S", str(Path(folder) / "socket"), "-f", "/dev/null"),
            *("new-session", "-d", "-s", "doctor", "cat", ";"),
            *("list-sessions", ";", "kill-server"),
        )
    if "doctor" not in session.output:
        return weak("tmux", f"{version.first_line}, but: {session.complaint}", mend)
    return good("tmux", version.first_line.removeprefix("tmux "))
