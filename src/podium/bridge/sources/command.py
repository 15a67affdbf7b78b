"""What a command says."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from podium.bridge.sources.asked import AskedSource
from podium.bridge.sources.kit import NotSensed, SourceKit, last_words, whole_words
from podium.bridge.sources.understanding import understand_output
from podium.domain.errors import CallRefused, ToolMissing
from podium.domain.launching import Confinement, Ended, ProcessLimits, Spawn
from podium.domain.model import Json
from podium.domain.sensing import Condition
from podium.ports.launcher import Launcher

Fence = Callable[[], Confinement]
"""How what a source starts is confined: it sees the root and writes nothing."""

_ERROR_CHARACTERS = 2_000


class CommandSource(AskedSource):
    """Runs a program at the root and gives its exit code and output, as JSON where it is JSON."""

    def __init__(
        self,
        kit: SourceKit,
        name: str,
        command: Sequence[str],
        *,
        launcher: Launcher,
        fence: Fence,
        timeout_seconds: float = 10.0,
    ) -> None:
        super().__init__(kit, name, shlex.join(command))
        self._launcher = launcher
        self._fence = fence
        self._command = tuple(command)
        self._timeout_seconds = timeout_seconds

    async def _ask(self) -> tuple[Condition, str, Json]:
        limits = ProcessLimits(seconds=self._timeout_seconds, output_bytes=self._kit.file_bytes)
        spawn = Spawn(
            argv=self._command, cwd=str(self._kit.root), limits=limits, confinement=self._fence()
        )
        ended = await ended_of(self._launcher, spawn)
        content: dict[str, Json] = {"exit_code": ended.exit_code}
        if ended.signal is not None:
            content["signal"] = ended.signal
        if ended.exit_code != 0:
            said = ended.stderr.decode(errors="replace").strip()
            content["errors"] = last_words(said, _ERROR_CHARACTERS)
        if ended.stdout_dropped_bytes:
            text = ended.stdout.decode(errors="replace").replace("\0", "�")
            content["output"] = whole_words(text)
            return "cut", f"its output is cut to {len(ended.stdout)} bytes", content
        content["output"] = understand_output(ended.stdout)
        return "ok", "", content


async def ended_of(launcher: Launcher, spawn: Spawn) -> Ended:
    """How it ended. Raises `NotSensed` when it did not by itself."""
    try:
        ended = await launcher.run(spawn)
    except ToolMissing as error:
        raise NotSensed("missing", str(error)) from None
    except (CallRefused, OSError) as error:
        raise NotSensed("unreadable", f"it could not be started: {error}") from None
    if ended.timed_out:
        raise NotSensed("unreadable", f"it took longer than {spawn.limits.seconds:g} seconds")
    return ended
