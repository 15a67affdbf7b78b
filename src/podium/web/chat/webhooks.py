"""Webhooks `/chat/…`: each message is proved, deduplicated, rate-limited and handled once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from podium.app.app import Podium
from podium.app.chat import DEDUP_WINDOW, ChatService
from podium.app.single_use import OnceBook
from podium.config.chat_settings import (
    DiscordSettings,
    PlainSettings,
    SenderSettings,
    TelegramSettings,
)
from podium.config.configuration import trusted_settings, untrusted_words
from podium.core.errors import UserMustAct
from podium.core.model import Json
from podium.render.text import shown_line
from podium.web.access.limits import Rates
from podium.web.chat import discord, plain, telegram

PATIENCE_SECONDS = {"discord": 2.0}
"""How long a service is kept waiting for an answer: Discord gives up after three seconds."""
MAX_SECONDS = 20.0
SHARED = "plain"
"""The service whose messages are proved by one secret for all senders."""
MAX_STRANGERS = 100
MAX_NAME = 64
STILL_AT_IT = "Heard. What comes of it is not known yet; `status` tells how things stand."
TOO_OFTEN = "Too many messages; this one was not heard. Wait a minute."


class Hearing:
    """Hands messages to the chat, and knows again what it was handed before, also after a restart."""

    def __init__(self, podium: Podium, folder: Path, *, per_minute: int) -> None:
        self._podium = podium
        self._chat = ChatService(podium)
        self._book = OnceBook(folder)
        self._rates = Rates(per_minute)
        self._strangers: set[str] = set()
        self._working: set[asyncio.Task[str]] = set()

    def known(
        self, service: str, senders: Mapping[str, SenderSettings], sender: str
    ) -> SenderSettings | None:
        """Who speaks. Of others a note is made, each once, and they are told nothing."""
        known = senders.get(sender)
        key = f"{service}:{sender}"[:MAX_NAME]
        if known is None and key not in self._strangers and len(self._strangers) < MAX_STRANGERS:
            self._strangers.add(key)
            self._podium.notify(
                f"chat: {service} sender {shown_line(sender, MAX_NAME)!r} is not among `senders`, "
                "and was not heard"
            )
        return known

    async def is_first(self, service: str, key: str) -> bool:
        """Whether this was never seen before."""
        now = self._podium.clock.now()
        return await asyncio.to_thread(
            self._book.take, f"seen:{service}:{key}", now, now + DEDUP_WINDOW
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
        if not await asyncio.to_thread(self._book.take, key, now, now + DEDUP_WINDOW):
            return STILL_AT_IT
        # Whoever knows the secret of a plain chat can name any sender: all of them have one proof.
        credential = f"chat:{service}" if service == SHARED else f"chat:{service}:{name}"
        work = asyncio.create_task(self._work(key, sender, text, credential))
        self._working.add(work)
        work.add_done_callback(self._ended)
        done, _ = await asyncio.wait([work], timeout=PATIENCE_SECONDS.get(service, MAX_SECONDS))
        return work.result() if done else STILL_AT_IT

    async def close(self) -> None:
        """End what is still worked on. What was begun is known as heard."""
        for work in self._working:
            work.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _work(self, key: str, sender: SenderSettings, text: str, credential: str) -> str:
        said = await self._chat.answer(sender, text, credential)
        until = self._podium.clock.now() + DEDUP_WINDOW
        await asyncio.to_thread(self._book.keep_answer, key, said, until)
        return said

    def _ended(self, work: asyncio.Task[str]) -> None:
        self._working.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            self._podium.notify(f"chat: a message could not be answered: {type(error).__name__}")


MAX_BYTES = 64_000
Handler = Callable[[Request], Awaitable[Response]]


def chat_router(podium: Podium) -> APIRouter:
    """The doors that `chat` in podium.yaml opens. Where one is closed nothing is there."""
    if words := untrusted_words(podium.configuration, "chat"):
        podium.notify(words)
    settings = trusted_settings(podium.configuration, "chat").chat
    hearing = Hearing(podium, podium.key_dir / "console" / "chat", per_minute=settings.per_minute)
    podium.close_with(hearing.close)
    router = APIRouter(prefix="/chat", include_in_schema=False)
    if settings.telegram and (secret := _secret(podium, settings.telegram.secret)):
        router.post("/telegram")(_of_telegram(hearing, settings.telegram, secret))
    if settings.discord:
        router.post("/discord")(_of_discord(podium, hearing, settings.discord))
    if settings.plain and (secret := _secret(podium, settings.plain.secret)):
        router.post("/plain")(_of_programs(podium, hearing, settings.plain, secret))
    return router


def _of_telegram(hearing: Hearing, settings: TelegramSettings, secret: str) -> Handler:
    async def hear(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _too_large()
        if not telegram.is_telegram(request.headers, secret):
            return _not_proved()
        said = telegram.said_in(_json(body))
        sender = said and hearing.known("telegram", settings.senders, said[1])
        if not said or not sender:
            return _nothing()
        number, name, text, chat = said
        answer = await hearing.answer("telegram", number, name, sender, text)
        return JSONResponse(telegram.reply(chat, answer))

    return hear


def _of_discord(podium: Podium, hearing: Hearing, settings: DiscordSettings) -> Handler:
    async def hear(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _too_large()
        now = podium.clock.now()
        if not discord.is_discord(request.headers, body, settings.public_key, now):
            return _not_proved()
        interaction = _json(body)
        if isinstance(interaction, dict) and interaction.get("type") == discord.PING:
            return JSONResponse(discord.PONG)
        said = discord.said_in(interaction)
        sender = said and hearing.known("discord", settings.senders, said[1])
        if not said or not sender:
            return _nothing()
        number, name, text = said
        answer = await hearing.answer("discord", number, name, sender, text)
        return JSONResponse(discord.reply(answer))

    return hear


def _of_programs(podium: Podium, hearing: Hearing, settings: PlainSettings, secret: str) -> Handler:
    async def hear(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _too_large()
        if not plain.is_signed(request.headers, body, secret, podium.clock.now()):
            return _not_proved()
        if not await hearing.is_first("plain", request.headers[plain.NONCE]):
            return _not_proved("this was sent before; take a new nonce")
        said = plain.said_in(_json(body))
        if said is None:
            return JSONResponse({"detail": 'send {"id": …, "from": …, "text": …}'}, 422)
        number, name, text = said
        sender = hearing.known("plain", settings.senders, name)
        if sender is None:
            return _nothing()
        return JSONResponse({"text": await hearing.answer("plain", number, name, sender, text)})

    return hear


async def _body(request: Request) -> bytes | None:
    """None: more than any message has."""
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > MAX_BYTES:
            return None
    return bytes(found)


def _json(body: bytes) -> Json:
    """What the body holds; None for what is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _secret(podium: Podium, reference: str) -> str:
    """Empty, and a person is told, when it is not there."""
    try:
        return podium.resolve_secret(reference.removeprefix("secret://"))
    except UserMustAct as error:
        podium.notify(f"chat is closed to those who prove themselves by {reference}: {error}")
        return ""


def _nothing() -> Response:
    return JSONResponse({})


def _too_large() -> Response:
    return JSONResponse({"detail": f"a message has at most {MAX_BYTES} bytes"}, 413)


def _not_proved(words: str = "this is not signed as it must be") -> Response:
    return JSONResponse({"detail": words}, 401)
