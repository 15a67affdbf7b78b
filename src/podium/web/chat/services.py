"""Message formats of chat services: plain signed JSON, Discord and Telegram.

Plain messages come from your own programs, signed with a shared secret:

X-Podium-Timestamp: seconds since 1970
X-Podium-Nonce:     a word that is used once
X-Podium-Signature: sha256=HMAC-SHA256(secret, TIMESTAMP.NONCE.BODY) in hex
{"id": "…", "from": "…", "text": "…"}
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime

from podium.core.model import Json
from podium.notices import tamed

TIMESTAMP_HEADER, NONCE_HEADER, SIGNATURE_HEADER = (
    "x-podium-timestamp",
    "x-podium-nonce",
    "x-podium-signature",
)
WINDOW_SECONDS = 300.0
"""Maximum age of a signed request."""
SHORTEST_NONCE, MAX_NONCE = 8, 200
MAX_ID = 200


def signature(secret: str, timestamp: str, nonce: str, body: bytes) -> str:
    """Compute the signature of a request."""
    signed = f"{timestamp}.{nonce}.".encode(errors="replace") + body
    return "sha256=" + hmac.digest(secret.encode(), signed, "sha256").hex()


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> bool:
    """True when the request is signed with the secret within the window. The nonce is not checked here."""
    stamp, nonce = headers.get(TIMESTAMP_HEADER, ""), headers.get(NONCE_HEADER, "")
    if not stamp.isdecimal() or len(stamp) > 15:
        return False
    if abs(now.timestamp() - int(stamp)) > WINDOW_SECONDS:
        return False
    if not SHORTEST_NONCE <= len(nonce) <= MAX_NONCE:
        return False
    signed = headers.get(SIGNATURE_HEADER, "").encode(errors="replace")
    return hmac.compare_digest(signed, signature(secret, stamp, nonce, body).encode())


def plain_message(message: Json) -> tuple[str, str, str] | None:
    """Return id, sender and text of the message; None when it is malformed."""
    if not isinstance(message, dict):
        return None
    number, sender, text = message.get("id"), message.get("from"), message.get("text")
    if not (isinstance(number, str) and isinstance(sender, str) and isinstance(text, str)):
        return None
    return (number, sender, text) if 0 < len(number) <= MAX_ID else None


DISCORD_SIGNATURE, DISCORD_TIMESTAMP = "x-signature-ed25519", "x-signature-timestamp"
DISCORD_PING, DISCORD_COMMAND = 1, 2
DISCORD_PONG: dict[str, Json] = {"type": 1}
_DISCORD_MESSAGE = 4
_FOR_THE_SENDER_ALONE = 64
DISCORD_COMMAND_NAME = "podium"
"""Command whose text is the whole message; other commands are `run`, `status` and so on themselves."""


def is_discord(headers: Mapping[str, str], body: bytes, public_key: str, now: datetime) -> bool:
    """True when Discord signed this body within the window."""
    # Late: only those who use Discord pay for it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    stamp = headers.get(DISCORD_TIMESTAMP, "")
    if not stamp.isdecimal() or len(stamp) > 15:
        return False
    if abs(now.timestamp() - int(stamp)) > WINDOW_SECONDS:
        return False
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    try:
        key.verify(bytes.fromhex(headers.get(DISCORD_SIGNATURE, "")), stamp.encode() + body)
    except (InvalidSignature, ValueError):
        return False
    return True


def discord_message(interaction: Json) -> tuple[str, str, str] | None:
    """Return id, sender and text of a command; None for any other interaction."""
    if not isinstance(interaction, dict) or interaction.get("type") != DISCORD_COMMAND:
        return None
    # Within a server the person is a member of it.
    member = interaction.get("member")
    user = member.get("user") if isinstance(member, dict) else interaction.get("user")
    data, number = interaction.get("data"), interaction.get("id")
    if not isinstance(user, dict) or not isinstance(data, dict) or not isinstance(number, str):
        return None
    sender, name, options = user.get("id"), data.get("name"), data.get("options", [])
    if not isinstance(sender, str) or not isinstance(name, str) or not isinstance(options, list):
        return None
    values = [
        option["value"] for option in options if isinstance(option, dict) and "value" in option
    ]
    words = [] if name.lower() == DISCORD_COMMAND_NAME else [name]
    return number, sender, " ".join([*words, *map(str, values)])


def discord_reply(text: str) -> dict[str, Json]:
    """Build the reply, which only the sender sees and which mentions nobody."""
    return {
        "type": _DISCORD_MESSAGE,
        "data": {
            "content": tamed(text),
            "flags": _FOR_THE_SENDER_ALONE,
            "allowed_mentions": {"parse": []},
        },
    }


TELEGRAM_SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 — the name of a header


def is_telegram(headers: Mapping[str, str], secret: str) -> bool:
    """True when the update carries the webhook's secret."""
    secret_sent = headers.get(TELEGRAM_SECRET_HEADER, "")
    return hmac.compare_digest(secret_sent.encode(errors="replace"), secret.encode())


def telegram_message(update: Json) -> tuple[str, str, str, int] | None:
    """Return id, sender, text and chat of the update; None unless it is a person's own new text message."""
    message = update.get("message") if isinstance(update, dict) else None
    if not isinstance(message, dict):
        return None
    sender, chat = message.get("from"), message.get("chat")
    number, text = update.get("update_id"), message.get("text")
    if not isinstance(sender, dict) or not isinstance(chat, dict) or not isinstance(text, str):
        return None
    # What somebody passes on, another has said.
    if "forward_origin" in message or "forward_date" in message or sender.get("is_bot"):
        return None
    if not isinstance(number, int) or not isinstance(sender.get("id"), int):
        return None
    chat_id = chat.get("id")
    return (str(number), str(sender["id"]), text, chat_id) if isinstance(chat_id, int) else None


def telegram_reply(chat: int, text: str) -> dict[str, Json]:
    """Build the reply to the webhook. Without a parse mode nothing in it is markup."""
    return {
        "method": "sendMessage",
        "chat_id": chat,
        "text": text,
        "link_preview_options": {"is_disabled": True},
    }
