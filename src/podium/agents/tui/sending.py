"""Sending a message once, whoever is killed in between and whoever else sends at the same time.

Each message is a letter: a private file that is written before anything is put in. It has the words and the number that
they are to have. Whether they got it is known by the ledger alone, which has the letter's name for the number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from podium.agents.tui.fates import Fates
from podium.agents.tui.injecting import Injector
from podium.agents.tui.ledger import Entry
from podium.agents.tui.letters import Letter, Letters, owner_of
from podium.agents.tui.server import ServerIdentity
from podium.agents.tui.trouble import DeliveryInDoubt, NotListening, NumberTaken
from podium.domain.model import Json

_TRIES = 20
"""So often another may have been quicker before that is told."""


class Sender:
    """Gives letters their numbers and has them delivered."""

    def __init__(
        self,
        injector: Injector,
        letters: Letters,
        server: ServerIdentity,
        life: int,
        fates: Fates,
    ) -> None:
        self._fates = fates
        self._injector = injector
        self._letters = letters
        self._life = life
        self._server = (server.pid, server.started)

    async def send(self, key: str, text: str, mark: Callable[[], Awaitable[Json]]) -> Letter:
        """Have the program take these words, once for each key. On return it has.

        `mark` is asked right before they are put in. Raises as `Injector.deliver` does; whoever comes later calls again
        with the same key and text. What an earlier attempt put in and nobody saw is put in again when the program
        surely never had it.
        """
        owner = owner_of(key)
        letter = self._letters.read(owner)
        for _ in range(_TRIES):
            entry = await self._injector.ledger.read()
            if letter is None or not self._has_its_number(letter, entry):
                if not entry.is_settled:
                    await self._finish_another(entry)
                    continue
                # Not beside the ledger: a mark from before another's message would take that for ours.
                marked, face = await asyncio.gather(mark(), self._fates.face())
                letter = Letter(
                    owner=owner,
                    text=text,
                    number=entry.sent + 1,
                    server=self._server,
                    life=self._life,
                    mark=marked,
                    face=face,
                )
                await asyncio.to_thread(self._letters.keep, letter)
            try:
                await self._deliver(letter, again=entry.pasted >= letter.number)
            except NumberTaken:
                continue
            return letter
        raise NotListening("others send to the same program all the time; wait until they are done")

    async def is_on_its_way(self, key: str) -> bool:
        """Whether the program took what is sent under this key, or has it in its input, in this life of the server."""
        letter = self._letters.read(owner_of(key))
        if letter is None:
            return False
        return self._has_its_number(letter, await self._injector.ledger.read())

    def _has_its_number(self, letter: Letter, entry: Entry) -> bool:
        """One so old that its owner is forgotten was sent: nothing is ever sent twice."""
        if letter.server != self._server or entry.pasted < letter.number:
            return False
        return entry.owners.get(letter.number, letter.owner) == letter.owner

    async def _finish_another(self, entry: Entry) -> None:
        """Somebody's words stand in the input. He may be dead, so whoever comes next sends them."""
        owner = entry.owners.get(entry.pasted, "")
        letter = self._letters.read(owner) if owner else None
        if letter is not None:
            await self._let_through(letter)
        elif await self._fates.is_bare():
            await self._injector.ledger.take_as_sent(entry.pasted)
        else:
            raise NotListening(
                f"message {entry.pasted} stands in the input, and nobody knows its words; look at the pane, then send "
                "or remove it"
            )

    async def _deliver(self, letter: Letter, *, again: bool) -> None:
        """`again`: it was put in before; now it may have become clear what became of it."""
        if again:
            await self._let_through(letter)
        # It has left by now, or its number is free again.
        await self._injector.deliver(letter.number, letter.text, letter.owner)

    async def _let_through(self, letter: Letter) -> None:
        """Have what stands in the input leave, or know that it is not there. Raises `DeliveryInDoubt` when that is not known."""
        try:
            await self._injector.deliver(letter.number, letter.text, letter.owner)
        except DeliveryInDoubt:
            fate = await self._fates.of(letter)
            if fate == "unknown":
                raise
            if fate == "taken":
                await self._injector.ledger.take_as_sent(letter.number)
            else:
                await self._injector.ledger.reopen(letter.number)
