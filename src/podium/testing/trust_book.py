"""A book of earned autonomy without a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.domain.trust import TrustEntry


class MemoryTrustBook:
    """Keeps entries in their order, each once."""

    def __init__(self, entries: Iterable[TrustEntry] = ()) -> None:
        self._entries: dict[str, TrustEntry] = {}
        for entry in entries:
            self.add(entry)

    def entries(self) -> Sequence[TrustEntry]:
        return tuple(self._entries.values())

    def add(self, entry: TrustEntry) -> None:
        self._entries.setdefault(entry.key, entry)
