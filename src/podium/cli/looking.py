"""Looking again and again at a store that may be away for a while."""

from __future__ import annotations

import asyncio

from podium.domain.errors import Passing
from podium.telling.wording import moment
from podium.usecases import WorkSeen, WorkWatch

PATIENCE_SECONDS = 2.0
"""How long a look may take before the person is told that nothing new comes."""


class Eye:
    """The newest that was seen, and why it is not newer."""

    def __init__(
        self, watch: WorkWatch, seen: WorkSeen, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._watch = watch
        self._patience_seconds = patience_seconds
        self._looking: asyncio.Task[WorkSeen] | None = None
        self.seen = seen
        self.away = ""

    async def look(self, *, unless: asyncio.Event) -> None:
        """Look, or go on looking when the last look has not ended. Gives up early when `unless` is set.

        A store waits by itself for a database that is away, for much longer than a person would.
        """
        self._looking = self._looking or asyncio.create_task(self._watch.look())
        leaving = asyncio.create_task(unless.wait())
        await asyncio.wait(
            {self._looking, leaving},
            timeout=self._patience_seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        leaving.cancel()
        if not self._looking.done():
            self.away = f"the database does not answer; this is from {moment(self.seen.at)}"
            return
        looked, self._looking = self._looking, None
        try:
            self.seen, self.away = looked.result(), ""
        except Passing as error:
            self.away = f"{error}; this is from {moment(self.seen.at)}"

    def close(self) -> None:
        """Give up on a look that has not ended."""
        if self._looking is not None:
            self._looking.cancel()
