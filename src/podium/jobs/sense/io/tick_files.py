"""Files that every tick of a root writes: lock, memory, log, telemetry. Imports no pydantic: an idle tick uses it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from podium.core.errors import NotPossibleNow
from podium.jobs.sense.io.safe_files import (
    append_whole,
    exclusive_lock,
    explain_errors,
    opened_folder,
    opened_with_lock,
    read_plain,
    replace_file,
)
from podium.platform.invisible_text import is_visible, written

if TYPE_CHECKING:
    from podium.core.model import Json, UtcDatetime
    from podium.ports.engine import Clock


MAX_OLD_FILES = 5
"""Maximum number of rotated files; `.1` is the youngest."""
# A line takes microseconds; whoever keeps the file for longer is no writer of lines.
_PATIENCE_SECONDS = 0.25


class LineFile:
    """One file of lines beneath a root. Several processes may add to it at the same time."""

    def __init__(self, root: Path, relative: str, *, limit_bytes: int, mode: int = 0o644) -> None:
        self._root = root
        self._folder = str(PurePosixPath(relative).parent)
        self._name = PurePosixPath(relative).name
        self._limit_bytes = limit_bytes
        self._mode = mode

    def add(self, line: str) -> None:
        """Add one line, whole or not at all. Raises `NotPossibleNow` when it cannot be written."""
        data = f"{line}\n".encode(errors="backslashreplace")
        with opened_folder(self._root, self._folder, make=True) as folder:
            while not self._added(folder, data):
                pass

    def _added(self, folder: int, data: bytes) -> bool:
        """False: the file was full, and is turned over now."""
        with opened_with_lock(folder, self._name, mode=self._mode, patience_seconds=_PATIENCE_SECONDS) as file:  # fmt: skip
            size = os.fstat(file).st_size
            if size and size + len(data) > self._limit_bytes:
                self._turn_over(folder)
                return False
            with explain_errors(self._name):
                append_whole(file, data)
            return True

    def _turn_over(self, folder: int) -> None:
        names = [self._name, *(f"{self._name}.{number}" for number in range(1, MAX_OLD_FILES + 1))]
        with explain_errors(self._name):
            for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
                with suppress(FileNotFoundError):
                    os.rename(newer, older, src_dir_fd=folder, dst_dir_fd=folder)


STATE = ".podium/sense"
MODE_VARIABLE = "GMX_ORCH_MODE"
"""Lowers the mode of the loop, and never raises it."""
MEMORY = "memory.json"
BOOK = "trust.jsonl"
LOCK = "lock"

_MEMORY_LIMIT_BYTES = 20_000_000
_MAX_LINE = 20_000
_Level = Literal["INFO", "WARNING"]


@dataclass(frozen=True)
class RecordFiles:
    """Files the loop writes for other programs, relative to the root."""

    log: str
    parser_log: str
    telemetry: str


class TickFiles:
    """The files of one root. Log lines are written without secrets; documents are written as they are given."""

    def __init__(
        self,
        root: Path,
        files: RecordFiles,
        *,
        clock: Clock,
        redact: Callable[[str], str],
        limit_bytes: int = 5_000_000,
    ) -> None:
        """`limit_bytes`: so large a log or telemetry file is turned over."""
        self._root = root
        self._files = files
        self._clock = clock
        self._redact = redact
        self._lines = {
            path: LineFile(root, path, limit_bytes=limit_bytes)
            for path in (files.log, files.parser_log, files.telemetry)
        }
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Files that cannot be written just now, and why, each once. Cleared when writing works again."""
        return tuple(self._problems.values())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the loop's lock. Raises also `NotPossibleNow`, when the state folder cannot be written."""
        what = f"the sense loop of {str(self._root)!r}"
        with (
            opened_folder(self._root, STATE, make=True, mode=0o700) as folder,
            exclusive_lock(folder, LOCK, what=what, since=self._clock.now()),
        ):
            yield

    def log(self, text: str, *, at: UtcDatetime, kind: Literal["main", "parser"] = "main") -> None:
        self._log(self._files.log if kind == "main" else self._files.parser_log, text, at)

    def end_tick(self, summary: str, document: Mapping[str, Json]) -> None:
        """A line in the log and one in the telemetry."""
        # By the moment it ended: lines that the tick wrote before it are older.
        self._log(self._files.log, summary, self._clock.now())
        self._add(self._files.telemetry, json.dumps({**document, "event": "tick"}))

    def keep(self, name: str, document: Callable[[], Json]) -> str:
        """Put a JSON file into the state folder. Gives its path from the root on; empty if it could not be written."""
        path = f"{STATE}/{name}"
        with self._noting_problem(path):
            content = json.dumps(document(), indent=2, default=str) + "\n"
            with opened_folder(self._root, STATE, make=True, mode=0o700) as folder:
                replace_file(folder, name, content.encode(), mode=0o600)
        return "" if path in self._problems else path

    def _log(self, path: str, text: str, at: UtcDatetime, level: _Level = "INFO") -> None:
        self._add(
            path,
            f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} [{level}] {one_line(self._redact(text))}",
        )

    def _add(self, path: str, line: str) -> None:
        with self._noting_problem(path):
            self._lines[path].add(line)

    @contextmanager
    def _noting_problem(self, path: str) -> Iterator[None]:
        try:
            yield
        except (NotPossibleNow, OSError) as error:
            self._problems[path] = f"{path}: {error}"
        except RecursionError:  # planners may nest without end
            self._problems[path] = f"{path}: its values are nested too deeply to be written"
        else:
            self._problems.pop(path, None)


def read_state(root: Path, name: str, limit_bytes: int = _MEMORY_LIMIT_BYTES) -> bytes:
    """The content of a file in the state folder. Raises `FileNotFoundError` and `NotPossibleNow`."""
    with opened_folder(root, STATE) as folder:
        return read_plain(folder, name, limit_bytes)


def one_line(text: str) -> str:
    r"""The text on one line that steers no terminal: what cannot be seen is written out, as `\n` or `\x1b`."""
    cut = text if len(text) <= _MAX_LINE else f"{text[:_MAX_LINE]}…"
    return "".join(char if char == " " or is_visible(char) else written(char) for char in cut)
