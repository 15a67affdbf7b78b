"""Notices, put together: those of podium.yaml are told as long as this is open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from podium.domain.errors import UserMustAct
from podium.domain.tiers import Tier
from podium.usecases.notify import PAUSES_SECONDS, NoticeWish, Teller
from podium.wiring.chat_settings import NoticeSettings
from podium.wiring.notice_words import notice_of
from podium.wiring.trusted_keys import trusted_settings, untrusted_words

if TYPE_CHECKING:
    from podium.notices import FileToldBook
    from podium.ports import Outlet, Store
    from podium.wiring.podium import Podium

PathTo = Callable[[str, NoticeSettings], str]
"""The path of a card's own page for whoever this notice is for, beginning with `/`."""

NOTICES_FOLDER = "notices"
HOLD_PAUSE_SECONDS = 5.0
"""How often a console that is not the one that tells looks whether the other is gone."""
CLOSE_SECONDS = 5.0
"""How long closing waits for a message that is on its way."""


@asynccontextmanager
async def notices_told(
    podium: Podium,
    *,
    console_url: str = "",
    path_to: PathTo | None = None,
    pauses_seconds: Sequence[float] = PAUSES_SECONDS,
    hold_pause_seconds: float = HOLD_PAUSE_SECONDS,
) -> AsyncIterator[None]:
    """While open, everybody in `notices` is told. What cannot be set up is said, and the rest goes on.

    `console_url` is where people reach the console, such as https://podium.example.org; without it, or
    without `path_to`, notices have no links.
    """
    if words := untrusted_words(podium.configuration, "notices"):
        podium.tell(words)
    wished = trusted_settings(podium.configuration, "notices").notices
    if not wished:
        yield
        return
    from podium.notices import FileToldBook

    book = FileToldBook(podium.folders.make_state() / NOTICES_FOLDER)
    store = await podium.store()

    def link_to(settings: NoticeSettings, card_id: str) -> str:
        return (
            console_url.rstrip("/") + path_to(card_id, settings) if console_url and path_to else ""
        )

    tellers = [
        Teller(
            store,
            book,
            outlet,
            _wish(settings),
            partial(notice_of, link_to=partial(link_to, settings), redact=podium.redactor.text),
            say=podium.tell,
            pauses_seconds=pauses_seconds,
        )
        for settings, outlet in _outlets(podium, wished)
    ]
    telling = asyncio.create_task(_tell(podium, store, book, tellers, hold_pause_seconds))
    telling.add_done_callback(partial(_ended, podium))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])
        await asyncio.gather(*(teller.close(CLOSE_SECONDS) for teller in tellers))
        book.let_go()


async def _tell(
    podium: Podium,
    store: Store,
    book: FileToldBook,
    tellers: Sequence[Teller],
    hold_pause_seconds: float,
) -> None:
    from podium.journal.listening import keep_up

    await _hold(podium, book, hold_pause_seconds)
    async with asyncio.TaskGroup() as group:
        for teller in tellers:
            group.create_task(keep_up(store, teller.catch_up, teller.stumbled))


async def _hold(podium: Podium, book: FileToldBook, pause_seconds: float) -> None:
    """Wait until no other process tells. Trouble with the lock is said once, and tried on."""
    troubled = False
    while True:
        try:
            if await asyncio.to_thread(book.try_hold):
                break
        except OSError as error:
            if not troubled:
                podium.tell(f"nobody is told of anything yet, and it is tried on: {error}")
            troubled = True
        await asyncio.sleep(pause_seconds)
    if troubled:
        podium.tell("notices are told now")


def _ended(podium: Podium, telling: asyncio.Task[None]) -> None:
    if not telling.cancelled() and (error := telling.exception()) is not None:
        podium.tell(
            f"nobody is told of anything any more: {type(error).__name__}: {error}; start the console again"
        )


def _outlets(
    podium: Podium, wished: Sequence[NoticeSettings]
) -> list[tuple[NoticeSettings, Outlet]]:
    """Those whose URL is there. Of the others a person is told."""
    from podium.notices import AppriseOutlet

    found: list[tuple[NoticeSettings, Outlet]] = []
    for settings in wished:
        secret = settings.to.removeprefix("secret://")
        try:
            url = podium.resolve_secret(secret)
        except UserMustAct as error:
            podium.tell(f"nobody is told by {settings.to}: {error}")
            continue
        same = sum(other.to == settings.to for other, _ in found)
        name = f"{secret}.{same + 1}" if same else secret
        found.append((settings, AppriseOutlet(name, url, redact=podium.redactor.text)))
    return found


def _wish(settings: NoticeSettings) -> NoticeWish:
    return NoticeWish(what=settings.what, flows=settings.flows, min_tier=Tier[settings.min_tier])
