"""The book of earned autonomy: one line for each thing people decided or that happened, only added to."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from podium.bridge.folders import opened_folder, read_plain, saying
from podium.bridge.locking import append_whole, opened_with_lock
from podium.bridge.redacting import Redact, redacted
from podium.bridge.tick_files import BOOK, STATE
from podium.domain.errors import NotPossibleNow
from podium.domain.model import json_of
from podium.domain.trust import TrustEntry

_LIMIT_BYTES = 50_000_000
_UNREADABLE = (
    f"line {{number}} of {BOOK} cannot be read, so promotions before it do not count; "
    "look at it, then promote again"
)
_TORN = f"the last line of {BOOK} is cut off, as by a crash, and left out"


class FileTrustBook:
    """The book of one root.

    It fails closed: where a line cannot be read, an incident may have stood, so the promotions before it
    do not count. A person who promotes again sets that right.
    """

    def __init__(self, root: Path, *, redact: Redact) -> None:
        self._root = root
        self._redact = redact
        self._faults: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be read when the book was read last, in words."""
        return self._faults

    def entries(self) -> Sequence[TrustEntry]:
        try:
            with opened_folder(self._root, STATE) as folder:
                pages = _read(read_plain(folder, BOOK, _LIMIT_BYTES))
        except FileNotFoundError:
            pages = _Pages()
        except NotPossibleNow as error:
            pages = _Pages(faults=(f"nothing of the trust book counts: {error}",))
        self._faults = pages.faults
        return pages.entries

    def add(self, entry: TrustEntry) -> None:
        """Raises `NotPossibleNow` when it cannot be made durable."""
        cleaned = TrustEntry.model_validate(redacted(json.loads(json_of(entry)), self._redact))
        line = json.dumps(json.loads(json_of(cleaned))).encode() + b"\n"
        with (
            opened_folder(self._root, STATE, make=True, mode=0o700) as folder,
            opened_with_lock(folder, BOOK) as book,
            saying(BOOK),
        ):
            pages = _read(os.pread(book, _LIMIT_BYTES + 1, 0))
            if cleaned.key in {each.key for each in pages.entries}:
                return
            # Whoever was adding the torn line never heard that it was added, and does so again.
            os.ftruncate(book, os.fstat(book).st_size - pages.torn_bytes)
            append_whole(book, line)
            os.fsync(book)
            os.fsync(folder)


@dataclass(frozen=True)
class _Pages:
    """A book as far as it can be read."""

    entries: tuple[TrustEntry, ...] = ()
    faults: tuple[str, ...] = ()
    torn_bytes: int = 0
    """How much of a line stands at the end that a crash cut off."""


def _read(content: bytes) -> _Pages:
    if len(content) > _LIMIT_BYTES:
        raise NotPossibleNow(
            f"{BOOK!r} is larger than {_LIMIT_BYTES // 1_000_000} MB; move it away"
        )
    *lines, end = content.split(b"\n")
    entries: dict[str, TrustEntry] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, start=1):
        entry = _entry(line)
        if entry is not None:
            entries.setdefault(entry.key, entry)
        elif line.strip():
            entries = {key: each for key, each in entries.items() if each.kind != "promoted"}
            faults.append(_UNREADABLE.format(number=number))
    last = _entry(end)
    if last is not None:
        entries.setdefault(last.key, last)
    elif end:
        faults.append(_TORN)
    return _Pages(tuple(entries.values()), tuple(faults), len(end) if last is None else 0)


def _entry(line: bytes) -> TrustEntry | None:
    try:
        entry = TrustEntry.model_validate_json(line)
    except ValidationError:
        return None
    return None if entry.kind == "promoted" and not entry.by.strip() else entry
