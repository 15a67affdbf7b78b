"""Users who run the attacks: root or an ordinary user; and root's switch to an ordinary one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.integration.attacks.trial import Outcome

ORDINARY_UID = 61234
"""Nobody's: no files, no groups, no name."""
_CHECKOUT = Path(__file__).resolve().parents[3]


def who() -> str:
    return "root" if os.geteuid() == 0 else "ordinary"


def users_here() -> tuple[str, ...]:
    """As whom the suite can be run."""
    return ("ordinary", "root") if who() == "root" else ("ordinary",)


def ordinary_python() -> str:
    """An interpreter that an ordinary user may start, of this version; "" when there is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for program in (
        os.path.realpath(sys.executable),
        f"/usr/bin/{version}",
        f"/usr/local/bin/{version}",
    ):
        try:
            done = subprocess.run([program, "-c", ""], cwd="/", **_as_ordinary())
        except OSError:
            continue
        if done.returncode == 0:
            return program
    return ""


def place() -> str:
    """Return a folder for an arena: one among other people's folders, since temporary ones are special."""
    wished = (Path("/srv"), Path.home(), Path("/var/tmp"))
    return next(str(folder) for folder in wished if os.access(folder, os.W_OK | os.X_OK))


def outcomes(user: str, layout: str, ids: Sequence[str], *, together: int = 1) -> Iterator[Outcome]:
    """Run attacks in a process of their own, as that user. Each outcome comes when it is known."""
    change = _as_ordinary() if user != who() else {}
    with tempfile.TemporaryDirectory(prefix="podium-attacks-", dir=place()) as folder:
        if change:
            os.chown(folder, ORDINARY_UID, ORDINARY_UID)
        yield from _outcomes(folder, change, layout, ids, together)


def _outcomes(
    folder: str, change: dict[str, Any], layout: str, ids: Sequence[str], together: int
) -> Iterator[Outcome]:
    python = ordinary_python() if change else sys.executable
    words = [
        python,
        "-m",
        "tests.integration.attacks",
        "--json",
        "--layout",
        layout,
        "--place",
        folder,
    ]
    words += ["--only", ",".join(ids), "--together", str(together)]
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(_import_path()),
        "HOME": "/nonexistent",
    }
    with subprocess.Popen(
        words, cwd=_CHECKOUT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **change
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found = json.loads(line)
            yield Outcome(**{**found, "through": tuple(found["through"])})
    assert process.returncode == 0, f"the attackers ended with {process.returncode}"


def _as_ordinary() -> dict[str, Any]:
    if who() != "root":
        return {}
    return {"user": ORDINARY_UID, "group": ORDINARY_UID, "extra_groups": []}


def _import_path() -> list[str]:
    return [
        str(_CHECKOUT),
        str(_CHECKOUT / "src"),
        *(path for path in sys.path if "site-packages" in path),
    ]
