"""Updates of a Telegram bot, as its webhook posts them."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from podium.core.model import Json

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 — the name of a header


def is_telegram(headers: Mapping[str, str], secret: str) -> bool:
    """True when the update carries the webhook's secret."""
    secret_sent = headers.get(SECRET_HEADER, "")
    return hmac.compare_digest(secret_sent.encode(errors="replace"), secret.encode())


def message_in(update: Json) -> tuple[str, str, str, int] | None:
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


def reply(chat: int, text: str) -> dict[str, Json]:
    """Build the reply to the webhook. Without a parse mode nothing in it is markup."""
    return {
        "method": "sendMessage",
        "chat_id": chat,
        "text": text,
        "link_preview_options": {"is_disabled": True},
    }
