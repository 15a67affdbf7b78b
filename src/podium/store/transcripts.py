"""Transcripts and prompts of turns, as files beside a run's trace, and run ids as names of files."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from podium.core.errors import BadInput, NotPossibleNow
from podium.platform import make_private_folder

if TYPE_CHECKING:
    from podium.core.turns import Turn

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def is_plain(run_id: str) -> bool:
    return _PLAIN.fullmatch(run_id) is not None


def plain_name(run_id: str) -> str:
    """The id, if it can be a file's name as it is. Raises `BadInput` for anything else."""
    if not is_plain(run_id):
        raise BadInput(
            f"run id {run_id!r} cannot be a file name; use only letters, digits, `_` and `-`"
        )
    return run_id


MAX_LINE = 1_000_000
MAX_BYTES = 32_000_000
"""Of one transcript: a program that never stops writing must not fill the disk."""
_MARGIN = 10_000
"""Looked at beyond the cut, so that a secret across it is known for one."""
_WINDOW = 4_000
"""Characters of the last lines that are looked at once more with the next: a secret may be split by line breaks."""


class FileTranscripts:
    """Keeps what was said below `runs/<run>/`: `prompts/` and `replies/`, without secrets."""

    def __init__(self, runs_folder: Path, redact: Callable[[str], str]) -> None:
        self._folder = runs_folder
        self._redact = redact

    @contextmanager
    def open(self, turn: Turn, agent: str) -> Iterator[FileTranscript]:
        folder = self._folder / plain_name(turn.run_id)
        stem = _stem(turn, agent)
        try:
            reply, name = _new_file(folder / "replies", stem, ".jsonl")
            prompt, _ = _new_file(folder / "prompts", name.removesuffix(".jsonl"), ".txt")
            with prompt:
                prompt.write(self._redact(turn.prompt))
        except OSError as error:
            # Before anything was asked, so that nothing is lost.
            raise NotPossibleNow(
                f"the transcript cannot be written to {str(folder)!r} ({error}); free space there, or "
                "give yourself write permission"
            ) from None
        transcript = FileTranscript(reply, folder / "replies" / name, self._redact)
        try:
            yield transcript
        finally:
            transcript.close()


class FileTranscript:
    """One turn's transcript. Each line reaches the file at once.

    Where a line completes a secret that earlier ones began, those are written again without it.
    """

    def __init__(self, file: IO[str], path: Path, redact: Callable[[str], str]) -> None:
        self._file = file
        self._path = path
        self._redact = redact
        self._written = 0
        self._recent: deque[tuple[int, str]] = deque()
        self._dropped_lines = self._dropped_characters = 0

    @property
    def path(self) -> str:
        return str(self._path)

    def write(self, line: str) -> None:
        if self._written >= MAX_BYTES:
            self._dropped_lines += 1
            self._dropped_characters += len(line)
            return
        redacted = self._redact(line[: MAX_LINE + _MARGIN])[:MAX_LINE]
        if len(line) > MAX_LINE:
            redacted += f" [… {len(line) - MAX_LINE} more characters]"
        try:
            self._put(line, redacted)
        except OSError:
            # A full disk must not cost the turn: the reply itself is worth more.
            self._written = MAX_BYTES

    def _put(self, line: str, redacted: str) -> None:
        """Write what is kept of a line behind the lines before it, or anew with those."""
        start, raw = self._written, line[: MAX_LINE + _MARGIN]
        if self._recent and self._is_continued(raw):
            start = self._recent[0][0]
            raw = "\n".join((*(earlier for _, earlier in self._recent), raw))
            redacted = self._redact(raw)
            self._file.seek(start)
            self._file.truncate()
            self._recent.clear()
        text = redacted.replace("\r", "").replace("\n", " ") + "\n"
        self._file.write(text)
        self._written = start + len(text.encode(errors="replace"))
        self._remember(start, raw)

    def _is_continued(self, line: str) -> bool:
        """Tell whether there is something to hide in this and the lines before it, but not in either alone."""
        before = "\n".join(earlier for _, earlier in self._recent)[-_WINDOW:]
        line = line[:_WINDOW]
        alone = f"{self._redact(before)}\n{self._redact(line)}"
        return self._redact(f"{before}\n{line}") != alone

    def _remember(self, start: int, raw: str) -> None:
        self._recent.append((start, raw))
        while sum(len(earlier) for _, earlier in self._recent) > 2 * _WINDOW:
            self._recent.popleft()

    def close(self) -> None:
        with suppress(OSError):
            if self._dropped_lines:
                self._file.write(
                    f"[… {self._dropped_lines} more lines with {self._dropped_characters} characters: "
                    "the transcript is full]\n"
                )
        with suppress(OSError):
            self._file.close()


def _stem(turn: Turn, agent: str) -> str:
    step = "".join(char if char.isalnum() or char in "-_." else "-" for char in turn.step_key)
    who = "".join(char if char.isalnum() or char in "-_" else "-" for char in agent)
    return f"{step[:80]}-{who[:40]}"


def _new_file(folder: Path, stem: str, ending: str) -> tuple[IO[str], str]:
    """A file that was not there before: a step may be asked again, and nothing is overwritten."""
    make_private_folder(folder)
    number = 1
    while True:
        name = f"{stem}{ending}" if number == 1 else f"{stem}.{number}{ending}"
        try:
            handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
            continue
        return os.fdopen(handle, "w", encoding="utf-8", errors="replace", buffering=1), name
