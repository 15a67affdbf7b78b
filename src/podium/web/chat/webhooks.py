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
from podium.config.configuration import trusted_settings, untrusted_notice
from podium.core.errors import UserMustAct
from podium.core.model import Json
from podium.render.text import escaped_line
from podium.web.access.limits import Rates
from podium.web.chat.services import (
    DISCORD_PING,
    DISCORD_PONG,
    NONCE_HEADER,
    discord_message,
    discord_reply,
    is_discord,
    is_signed,
    is_telegram,
    plain_message,
    telegram_message,
    telegram_reply,
)

PATIENCE_SECONDS = {"discord": 2.0}
"""Seconds a service waits for an answer: Discord gives up after three."""
MAX_SECONDS = 20.0
SHARED = "plain"
"""Service whose messages are authenticated by one secret for all senders."""
MAX_STRANGERS = 100
MAX_NAME = 64
STILL_AT_IT = "Received. There is no result yet; send `status` to check."
TOO_OFTEN = "Too many messages; this one was ignored. Wait a minute."


class ChatInbox:
    """Hands each message to the chat once, also across restarts."""

    def __init__(self, podium: Podium, folder: Path, *, per_minute: int) -> None:
        self._podium = podium
        self._chat = ChatService(podium)
        self._book = OnceBook(folder)
        self._rates = Rates(per_minute)
        self._strangers: set[str] = set()
        self._working: set[asyncio.Task[str]] = set()

    def find_sender(
        self, service: str, senders: Mapping[str, SenderSettings], sender: str
    ) -> SenderSettings | None:
        """Return the sender's settings. An unknown sender is logged once and gets no answer."""
        match = senders.get(sender)
        key = f"{service}:{sender}"[:MAX_NAME]
        if match is None and key not in self._strangers and len(self._strangers) < MAX_STRANGERS:
            self._strangers.add(key)
            self._podium.notify(
                f"chat: {service} sender {escaped_line(sender, MAX_NAME)!r} is not listed in `senders`; "
                "the message was ignored"
            )
        return match

    async def is_first(self, service: str, key: str) -> bool:
        """Record the key; True the first time."""
        now = self._podium.clock.now()
        return await asyncio.to_thread(
            self._book.take, f"seen:{service}:{key}", now, now + DEDUP_WINDOW
        )

    async def answer(
        self, service: str, message: str, name: str, sender: SenderSettings, text: str
    ) -> str:
        """Answer a message. A repeated delivery gets the same answer, and nothing is done twice."""
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
        """Cancel messages in progress. They count as received."""
        for work in self._working:
            work.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _work(self, key: str, sender: SenderSettings, text: str, credential: str) -> str:
        answer = await self._chat.answer(sender, text, credential)
        until = self._podium.clock.now() + DEDUP_WINDOW
        await asyncio.to_thread(self._book.keep_answer, key, answer, until)
        return answer

    def _ended(self, work: asyncio.Task[str]) -> None:
        self._working.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            self._podium.notify(f"chat: cannot answer a message: {type(error).__name__}")


MAX_BYTES = 64_000
Handler = Callable[[Request], Awaitable[Response]]


def chat_router(podium: Podium) -> APIRouter:
    """Router of the webhooks that `chat` in podium.yaml configures; others do not exist."""
    if warning := untrusted_notice(podium.configuration, "chat"):
        podium.notify(warning)
    settings = trusted_settings(podium.configuration, "chat").chat
    inbox = ChatInbox(podium, podium.key_dir / "console" / "chat", per_minute=settings.per_minute)
    podium.close_with(inbox.close)
    router = APIRouter(prefix="/chat", include_in_schema=False)
    if settings.telegram and (secret := _secret(podium, settings.telegram.secret)):
        router.post("/telegram")(_of_telegram(inbox, settings.telegram, secret))
    if settings.discord:
        router.post("/discord")(_of_discord(podium, inbox, settings.discord))
    if settings.plain and (secret := _secret(podium, settings.plain.secret)):
        router.post("/plain")(_of_programs(podium, inbox, settings.plain, secret))
    return router


def _of_telegram(inbox: ChatInbox, settings: TelegramSettings, secret: str) -> Handler:
    async def hear(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _too_large()
        if not is_telegram(request.headers, secret):
            return _not_proved()
        message = telegram_message(_json(body))
        sender = message and inbox.find_sender("telegram", settings.senders, message[1])
        if not message or not sender:
            return _nothing()
        number, name, text, chat = message
        answer = await inbox.answer("telegram", number, name, sender, text)
        return JSONResponse(telegram_reply(chat, answer))

    return hear


def _of_discord(podium: Podium, inbox: ChatInbox, settings: DiscordSettings) -> Handler:
    async def hear(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _too_large()
        now = podium.clock.now()
        if not is_discord(request.headers, body, settings.public_key, now):
            return _not_proved()
        interaction = _json(body)
        if isinstance(interaction, dict) and interaction.get("type") == DISCORD_PING:
            return JSONResponse(DISCORD_PONG)
        message = discord_message(interaction)
        sender = message and inbox.find_sender("discord", settings.senders, message[1])
        if not message or not sender:
            return _nothing()
        number, name, text = message
        answer = await inbox.answer("discord", number, name, sender, text)
        return JSONResponse(discord_reply(answer))

    return hear


def _of_programs(podium: Podium, inbox: ChatInbox, settings: PlainSettings, secret: str) -> Handler:
    async def hear(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _too_large()
        if not is_signed(request.headers, body, secret, podium.clock.now()):
            return _not_proved()
        if not await inbox.is_first("plain", request.headers[NONCE_HEADER]):
            return _not_proved("this nonce was used before; send a new one")
        message = plain_message(_json(body))
        if message is None:
            return JSONResponse({"detail": 'send {"id": …, "from": …, "text": …}'}, 422)
        number, name, text = message
        sender = inbox.find_sender("plain", settings.senders, name)
        if sender is None:
            return _nothing()
        return JSONResponse({"text": await inbox.answer("plain", number, name, sender, text)})

    return hear


async def _body(request: Request) -> bytes | None:
    """Read the body; None when it is too large."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BYTES:
            return None
    return bytes(content)


def _json(body: bytes) -> Json:
    """Parse the body; None when it is not valid JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _secret(podium: Podium, reference: str) -> str:
    """Resolve a secret; log the problem and return empty when it is missing."""
    try:
        return podium.resolve_secret(reference.removeprefix("secret://"))
    except UserMustAct as error:
        podium.notify(f"chat: the webhook that needs {reference} is disabled: {error}")
        return ""


def _nothing() -> Response:
    return JSONResponse({})


def _too_large() -> Response:
    return JSONResponse({"detail": f"a message is limited to {MAX_BYTES} bytes"}, 413)


def _not_proved(message: str = "the signature is missing or wrong") -> Response:
    return JSONResponse({"detail": message}, 401)
