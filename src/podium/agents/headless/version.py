"""Which version of a CLI is at work, found once and remembered."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from podium.domain.launching import ProcessLimits, Spawn
from podium.ports import Launcher

_VERSION = re.compile(r"\b(\d+(?:\.\d+){1,3})\b")
_SECONDS = 30.0
_known: dict[tuple[str, ...], tuple[float, str]] = {}
"""argv → when its program was last changed, and the version it gave then."""


async def version_of(launcher: Launcher, argv: tuple[str, ...], cwd: str) -> str:
    """What `argv --version` says; empty when it says nothing of use. Raises `ToolMissing`."""
    changed = _changed(argv)
    if argv in _known and _known[argv][0] == changed:
        return _known[argv][1]
    # Some make folders in the home even for this.
    with tempfile.TemporaryDirectory(prefix="podium-version-") as home:
        ended = await launcher.run(
            Spawn(
                argv=(*argv, "--version"),
                cwd=cwd,
                env={"HOME": home},
                limits=ProcessLimits(seconds=_SECONDS, output_bytes=10_000),
            )
        )
    found = _VERSION.search(ended.stdout.decode(errors="replace"))
    version = found[1] if found else ""
    if version:
        _known[argv] = (changed, version)
    return version


def newer_than(version: str, known: str) -> bool:
    """Whether this is a later version than one that was tried."""
    return _numbers(version) > _numbers(known)


def untried(agent: str, version: str, known: str) -> tuple[str, ...]:
    """The warning for a version later than the one Podium was tried with."""
    if not version or not newer_than(version, known):
        return ()
    return (f"agent {agent!r} is version {version}; Podium was tried with {known}",)


def _changed(argv: tuple[str, ...]) -> float:
    try:
        return max(Path(word).stat().st_mtime for word in argv if "/" in word)
    except (OSError, ValueError):
        return 0.0


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
