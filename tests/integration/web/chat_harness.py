"""A console with a chat door, and the services that post to it."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.decisions import Approval, Tier
from podium.core.model import Json
from podium.core.work import Run
from podium.web.app import build_app
from podium.web.chat.services import signature
from podium.web.context import WebContext
from podium.web.server import served
from podium.web.settings import ConsoleSettings
from tests.unit.notices.notices_harness import add_run, ask

DISCORD_KEY = Ed25519PrivateKey.from_private_bytes(b"podium tests, and nothing else..")
TELEGRAM_SECRET, PLAIN_SECRET = "tele-gram-secret", "plain-secret-of-a-program"
ANN, BOB, EVE = 1001, 1002, 6666
"""Ann may do all, Bob only look, and Eve nothing."""

CHAT = f"""
secrets: [TELEGRAM_HOOK, PLAIN_HOOK]
chat:
  telegram:
    secret: secret://TELEGRAM_HOOK
    senders: &senders
      '{ANN}': {{person: ann, roles: [operator, approver]}}
      '{BOB}': {{person: bob}}
  discord:
    public_key: {DISCORD_KEY.public_key().public_bytes_raw().hex()}
    senders: *senders
  plain:
    secret: secret://PLAIN_HOOK
    senders: *senders
"""


@dataclass
class ChatStage:
    """A console that is served, and ways to post to its doors."""

    url: str
    context: WebContext
    podium: Podium
    messages: list[str]
    client: httpx.AsyncClient
    updates: int = field(default=100)

    async def telegram(self, text: str, *, sender: int = ANN, update_id: int = 0) -> str:
        """Return the text that Telegram would show as the answer; empty for none."""
        answer = await self.post_telegram(update(text, sender, update_id or self._next()))
        assert answer.status_code == 200, answer.text
        response = answer.json()
        if not response:
            return ""
        assert (response["method"], response["chat_id"]) == ("sendMessage", 77)
        assert "parse_mode" not in response
        return str(response["text"])

    async def post_telegram(
        self, body: Json, secret: str | None = TELEGRAM_SECRET
    ) -> httpx.Response:
        name = b"X-Telegram-Bot-Api-Secret-Token"
        headers = [(name, secret.encode())] if secret is not None else []
        return await self.client.post("/chat/telegram", json=body, headers=headers)

    async def post_discord(
        self, body: Json, headers: Mapping[str, str] | None = None, *, age_seconds: int = 0
    ) -> httpx.Response:
        content = json.dumps(body).encode()
        stamp = str(int(datetime.now(UTC).timestamp()) - age_seconds)
        signed = DISCORD_KEY.sign(stamp.encode() + content).hex()
        known = {"X-Signature-Timestamp": stamp, "X-Signature-Ed25519": signed, **(headers or {})}
        return await self.client.post("/chat/discord", content=content, headers=known)

    async def post_plain(
        self, body: Json, *, nonce: str = "", secret: str = PLAIN_SECRET, age_seconds: int = 0
    ) -> httpx.Response:
        content = json.dumps(body).encode()
        stamp = str(int(datetime.now(UTC).timestamp()) - age_seconds)
        nonce = nonce or uuid4().hex
        headers = {
            "X-Podium-Timestamp": stamp,
            "X-Podium-Nonce": nonce,
            "X-Podium-Signature": signature(secret, stamp, nonce, content),
        }
        return await self.client.post("/chat/plain", content=content, headers=headers)

    async def asked(self, summary: str = "write a.txt") -> tuple[Run, Approval]:
        """Something that waits for a person."""
        deps = (await self.podium.store(), self.podium.clock, self.podium.ids)
        run = await add_run(*deps)
        return run, await ask(*deps, run, summary=summary, tier=Tier.T3)

    async def approval(self, known: Approval) -> Approval:
        store = await self.podium.store()
        found = await store.read(lambda view: view.approval(known.id))
        assert found is not None
        return found

    def _next(self) -> int:
        self.updates += 1
        return self.updates


def update(text: str, sender: int, update_id: int) -> dict[str, Json]:
    return {
        "update_id": update_id,
        "message": {
            "message_id": 5,
            "from": {"id": sender, "is_bot": False, "first_name": "A"},
            "chat": {"id": 77, "type": "private"},
            "date": 1_700_000_000,
            "text": text,
        },
    }


def command(text: str, sender: int, interaction_id: str) -> dict[str, Json]:
    return {
        "id": interaction_id,
        "type": 2,
        "member": {"user": {"id": str(sender)}},
        "data": {"name": "podium", "options": [{"name": "text", "type": 3, "value": text}]},
    }


@asynccontextmanager
async def chatting(
    folder: Path, *, user: str = CHAT, project: str = "{}\n"
) -> AsyncIterator[ChatStage]:
    """A console over `folder/project` whose user's own file holds `user`."""
    root, home = folder / "project", folder / "home"
    for item, name, text in ((root, "podium.yaml", project), (home, "config.yaml", user)):
        item.mkdir(exist_ok=True)
        (item / name).write_text(text)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PODIUM_HOME": str(home),
        "PODIUM_USER": "sam",
        "TELEGRAM_HOOK": TELEGRAM_SECRET,
        "PLAIN_HOOK": PLAIN_SECRET,
    }
    messages: list[str] = []
    podium = Podium(load_configuration(environ, project=root), environ, notify=messages.append)
    try:
        context = WebContext(podium, ConsoleSettings(port=0))
        async with (
            served(build_app(context), context.settings) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as client,
        ):
            yield ChatStage(url, context, podium, messages, client)
    finally:
        await podium.close()
