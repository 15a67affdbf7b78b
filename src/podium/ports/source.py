"""A source: one place that tells something of a system's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.sensing import Look


class Source(Protocol):
    """Looks, and changes nothing. One small class for each kind of place."""

    @property
    def name(self) -> str:
        """Under which it stands in bundles and counts, such as `health`."""
        ...

    async def mark(self) -> str:
        """Changes when what `look` would find has changed, and is the same in every process.

        Where there are files it is made of what the file system tells, and nothing is read; it may then change
        once more although nothing did: two seconds after a file was written. For commands, addresses and
        repositories it is made of what was found, and a `look` right after it does not ask again.
        """
        ...

    async def look(self) -> Look:
        """What is there now, with its mark. It never raises for what it finds: that is said in the look.

        Looking again at what has not changed must not cost much more than asking the file system.
        """
        ...
