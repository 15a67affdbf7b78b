"""An agent's program: its version, its output until it is dead, and the lines that its transcript keeps."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.platform.completion import run_to_completion
from podium.ports import Launcher, Process

Hear = Callable[[str], Awaitable[None] | None]
"""Takes a line as it comes; the next one waits for it. What it raises ends the program and is handed on."""


async def hear_out(process: Process, hear: Hear) -> ProcessExit:
    """Hand on every line until the tree is dead. Cancelled, or when `hear` raises, it is ended first.

    Bytes that are no UTF-8 are replaced.
    """
    ending = asyncio.ensure_future(process.wait())
    try:
        async for line in process.lines():
            working = hear(line.decode(errors="replace"))
            if working is not None:
                await working
        return await ending
    except BaseException:
        await _end(process, ending)
        raise


async def _end(process: Process, ending: asyncio.Future[ProcessExit]) -> None:
    """Come back when nothing is left of it, however often one is cancelled meanwhile."""
    # A cancelled wait ends the tree with the launcher's own patience.
    ending.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await run_to_completion(ending)
    await process.end()


def sent_line(line: str) -> str:
    """A line of JSON that was said to the program."""
    return f'{{"sent": {line}}}'


def received_line(line: str) -> str:
    """A line that the program wrote. What is no JSON is kept as the text it is."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return printed_line(line)
    return line


def printed_line(line: str) -> str:
    # Not escaped more than need be: secrets are looked for in what is written.
    return json.dumps({"printed": line}, ensure_ascii=False)


_VERSION = re.compile(r"\b(\d+(?:\.\d+){1,3})\b")
_SECONDS = 30.0
_versions: dict[tuple[str, ...], tuple[float, str]] = {}
"""argv → when its program was last changed, and the version it gave then."""


async def version_of(launcher: Launcher, argv: tuple[str, ...], cwd: str) -> str:
    """Return the version from `argv --version`; empty when it prints none. Raises `ToolMissing`."""
    changed = _changed(argv)
    if argv in _versions and _versions[argv][0] == changed:
        return _versions[argv][1]
    # Some make folders in the home even for this.
    with tempfile.TemporaryDirectory(prefix="podium-version-") as home:
        ended = await launcher.run(
            ProcessSpec(
                argv=(*argv, "--version"),
                cwd=cwd,
                env={"HOME": home},
                limits=ProcessLimits(seconds=_SECONDS, output_bytes=10_000),
            )
        )
    match = _VERSION.search(ended.stdout.decode(errors="replace"))
    version = match[1] if match else ""
    if version:
        _versions[argv] = (changed, version)
    return version


def newer_than(version: str, tried: str) -> bool:
    """Return whether this is a later version than one that was tried."""
    return _numbers(version) > _numbers(tried)


def untried(agent: str, version: str, tried: str) -> tuple[str, ...]:
    """The warning for a version later than the one Podium was tried with."""
    if not version or not newer_than(version, tried):
        return ()
    return (f"agent {agent!r} is version {version}; Podium was tried with {tried}",)


def _changed(argv: tuple[str, ...]) -> float:
    try:
        return max(Path(argument).stat().st_mtime for argument in argv if "/" in argument)
    except (OSError, ValueError):
        return 0.0


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
