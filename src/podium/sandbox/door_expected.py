"""Which uses of tools a CLI's hook may ask for: those that the CLI itself tells of, each once."""

from __future__ import annotations

import asyncio

from podium.domain.errors import CallRefused
from podium.ports import ANY_USE


class ExpectedUses:
    """What a CLI has told of on its own line to Podium, and what its hook has asked for of that.

    A command that the gate lets run may find the hook's token. With it, it could ask for something
    else, or once more for the same, and use up the approval of a call that is about to be made.
    """

    def __init__(self, seconds: float) -> None:
        """A hook may be quicker than what its CLI tells; so long it waits for that."""
        self._seconds = seconds
        self._open: dict[str, list[set[str]]] = {}
        self._news = asyncio.Event()

    def add(self, use: str) -> None:
        self._open.setdefault(use, []).append(set())
        news, self._news = self._news, asyncio.Event()
        news.set()

    def remove(self, use: str) -> None:
        """One of the uses by this name is asked for no more: the one that was asked for first."""
        uses = self._open.get(use, [])
        if uses:
            uses.sort(key=bool, reverse=True)
            uses.pop(0)
        if not uses:
            self._open.pop(use, None)

    async def take(self, ref: str) -> None:
        """Return when the use is expected. Raises `CallRefused` when it is not, or was asked for."""
        try:
            async with asyncio.timeout(self._seconds):
                while not self._is_taken(ref):
                    await self._news.wait()
        except TimeoutError:
            raise CallRefused(
                f"the agent tells of no use {ref[:100]!r} that is still to be asked for; denied"
            ) from None

    def _is_taken(self, ref: str) -> bool:
        # One use may be several questions: they are told apart by what follows the sign.
        for asked in self._open.get(ref.partition("#")[0], []):
            if ref not in asked:
                asked.add(ref)
                return True
        return ANY_USE in self._open
