"""`/chat/telegram`, `/chat/discord` and `/chat/plain`: each proves its messages in its own way.

Wrong proof: 401. Proof, but nobody who may speak: 200 and nothing, so that nobody learns who may.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from podium.domain.errors import UserMustAct
from podium.domain.model import Json
from podium.web.chat import discord, plain, telegram
from podium.web.chat.hearing import Hearing
from podium.wiring import Podium
from podium.wiring.chat_settings import DiscordSettings, PlainSettings, TelegramSettings
from podium.wiring.trusted_keys import trusted_settings, untrusted_words

MOST_BYTES = 64_000
Handler = Callable[[Request], Awaitable[Response]]


def chat_router(podium: Podium) -> APIRouter:
    """The doors that `chat` in podium.yaml opens. Where one is closed nothing is there."""
    if words := untrusted_words(podium.configuration, "chat"):
        podium.tell(words)
    settings = trusted_settings(podium.configuration, "chat").chat
    hearing = Hearing(podium, podium.vault / "console" / "chat", per_minute=settings.per_minute)
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
        if len(found) > MOST_BYTES:
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
        podium.tell(f"chat is closed to those who prove themselves by {reference}: {error}")
        return ""


def _nothing() -> Response:
    return JSONResponse({})


def _too_large() -> Response:
    return JSONResponse({"detail": f"a message has at most {MOST_BYTES} bytes"}, 413)


def _not_proved(words: str = "this is not signed as it must be") -> Response:
    return JSONResponse({"detail": words}, 401)
