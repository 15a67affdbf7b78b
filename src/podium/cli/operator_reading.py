"""Lines that somebody types or pipes to the prompt; with history and completion where they type."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType

from podium.cli.door import Door
from podium.domain.errors import PodiumError
from podium.domain.operating import OperatorMode
from podium.platform import make_private_folder
from podium.wiring import Podium

PROMPT = "operator> "
HISTORY = "operator_history"
MOST_HISTORY = 1_000
_LONGEST_LINE = 100_000
"""Far more than is read of a message; the rest of a longer line is passed over."""


class LineReader:
    """Gives one line after the other, and `EOFError` behind the last. Keeps the history when it is left."""

    def __init__(self, door: Door, commands: Sequence[str], packs: tuple[str, ...]) -> None:
        self._door = door
        self._words = [*commands, *OperatorMode, "APPROVE:"]
        self._packs = packs
        self._typed = sys.stdin.isatty()
        self._history: Path | None = None

    def __enter__(self) -> LineReader:
        if self._typed:
            self._prepare()
        else:
            # What is no UTF-8 is told as a fault of the message, and the next line is read.
            getattr(sys.stdin, "reconfigure", lambda **_: None)(errors="surrogateescape")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._history is not None:
            self._keep_history(self._history)

    def next_line(self) -> str:
        """A line without its end. Ctrl-C drops what was typed of it."""
        if not self._typed:
            return self._piped()
        while True:
            try:
                return input(PROMPT)
            except KeyboardInterrupt:
                self._door.screen.line()
            except EOFError:
                self._door.screen.line()
                raise

    def _piped(self) -> str:
        line = sys.stdin.readline(_LONGEST_LINE)
        if not line:
            raise EOFError
        rest = line
        while rest and not rest.endswith("\n"):
            rest = sys.stdin.readline(_LONGEST_LINE)
        return line.rstrip("\n")

    def _prepare(self) -> None:
        import readline

        file = self._door.configuration.folders.user_state / HISTORY
        with suppress(OSError):
            readline.read_history_file(file)
        readline.set_history_length(MOST_HISTORY)
        readline.set_completer_delims(" ")
        readline.set_completer(self._completed)
        edits_like_bsd = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if edits_like_bsd else "tab: complete")
        self._history = file

    def _keep_history(self, file: Path) -> None:
        """What was typed, without the secrets in it, for its owner alone."""
        import readline

        redact = Podium(self._door.configuration, os.environ).redactor.text
        for index in range(readline.get_current_history_length()):
            line = readline.get_history_item(index + 1) or ""
            if (kept := redact(line)) != line:
                readline.replace_history_item(index, kept)
        with suppress(OSError):
            make_private_folder(file.parent)
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(file)

    def _completed(self, text: str, state: int) -> str | None:
        words = self._words if text[:1] in (":", "A") else [*self._words, *self._tools]
        found = [word for word in words if word.startswith(text)]
        return f"{found[state]} " if state < len(found) else None

    @cached_property
    def _tools(self) -> list[str]:
        """Names of tools and skills, looked up when they are first wanted; none of a pack that is broken."""
        from podium.wiring.operating import chosen_packs, open_pack

        podium = Podium(self._door.configuration, os.environ)
        try:
            names = chosen_packs(podium, self._packs).names
            registries = [open_pack(podium, name).registry for name in names]
        except PodiumError:
            return []
        tools = [tool.name for registry in registries for tool in registry.tools]
        return sorted(tools + [skill.name for each in registries for skill in each.skills])
