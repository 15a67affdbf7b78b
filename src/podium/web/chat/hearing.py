"""Every message is heard once, from those who may speak, and not too often."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from podium.telling.untrusted import shown_line
from podium.web.access.rates import Rates
from podium.wiring import Podium
from podium.wiring.chat_settings import SenderSettings
from podium.wiring.chatting import HEARD_FOR, ChatDesk
from podium.wiring.once import OnceBook

PATIENCE_SECONDS = {"discord": 2.0}
"""How long a service is kept waiting for an answer: Discord gives up after three seconds."""
MOST_SECONDS = 20.0
SHARED = "plain"
"""The service whose messages are proved by one secret for all senders."""
MOST_STRANGERS = 100
LONGEST_NAME = 64
STILL_AT_IT = "Heard. What comes of it is not known yet; `status` tells how things stand."
TOO_OFTEN = "Too many messages; this one was not heard. Wait a minute."


class Hearing:
    """Hands messages to the desk, and knows again what it was handed before, also after a restart."""

    def __init__(self, podium: Podium, folder: Path, *, per_minute: int) -> None:
        self._podium = podium
        self._desk = ChatDesk(podium)
        self._book = OnceBook(folder)
        self._rates = Rates(per_minute)
        self._strangers: set[str] = set()
        self._working: set[asyncio.Task[str]] = set()

    def known(
        self, service: str, senders: Mapping[str, SenderSettings], sender: str
    ) -> SenderSettings | None:
        """Who speaks. Of others a note is made, each once, and they are told nothing."""
        known = senders.get(sender)
        key = f"{service}:{sender}"[:LONGEST_NAME]
        if known is None and key not in self._strangers and len(self._strangers) < MOST_STRANGERS:
            self._strangers.add(key)
            self._podium.tell(
                f"chat: {service} sender {shown_line(sender, LONGEST_NAME)!r} is not among `senders`, "
                "and was not heard"
            )
        return known

    async def is_first(self, service: str, key: str) -> bool:
        """Whether this was never seen before."""
        now = self._podium.clock.now()
        return await asyncio.to_thread(
            self._book.take, f"seen:{service}:{key}", now, now + HEARD_FOR
        )

    async def answer(
        self, service: str, message: str, name: str, sender: SenderSettings, text: str
    ) -> str:
        """What to say to a message. A service that sends it again gets the same answer, and nothing is done twice."""
        key = f"{service}:{message}"
        if await asyncio.to_thread(self._book.is_taken, key):
            return await asyncio.to_thread(self._book.answer, key) or STILL_AT_IT
        if self._rates.wait_seconds(f"{service}:{name}"):
            return TOO_OFTEN
        self._rates.spend(f"{service}:{name}")
        now = self._podium.clock.now()
        if not await asyncio.to_thread(self._book.take, key, now, now + HEARD_FOR):
            return STILL_AT_IT
        # Whoever knows the secret of a plain chat can name any sender: all of them have one proof.
        credential = f"chat:{service}" if service == SHARED else f"chat:{service}:{name}"
        work = asyncio.create_task(self._work(key, sender, text, credential))
        self._working.add(work)
        work.add_done_callback(self._ended)
        done, _ = await asyncio.wait([work], timeout=PATIENCE_SECONDS.get(service, MOST_SECONDS))
        return work.result() if done else STILL_AT_IT

    async def close(self) -> None:
        """End what is still worked on. What was begun is known as heard."""
        for work in self._working:
            work.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _work(self, key: str, sender: SenderSettings, text: str, credential: str) -> str:
        said = await self._desk.answer(sender, text, credential)
        until = self._podium.clock.now() + HEARD_FOR
        await asyncio.to_thread(self._book.keep_answer, key, said, until)
        return said

    def _ended(self, work: asyncio.Task[str]) -> None:
        self._working.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            self._podium.tell(f"chat: a message could not be answered: {type(error).__name__}")
