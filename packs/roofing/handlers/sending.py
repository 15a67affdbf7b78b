"""Sending a message once: what is about to go out is on record before it does."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..comms import Mail, MaybeSent, Sms, send_mail, send_sms
from ..database import Conflict, Database, Insert, Update, new_id, open_database
from .records import Arguments, Handler


@dataclass(frozen=True)
class OutgoingMessage:
    """A message that is ready to go out."""

    channel: Literal["sms", "email"]
    recipient: str
    body: str
    subject: str = ""
    purpose: Literal["message", "quote", "invoice", "review"] = "message"
    about: dict[str, Any] = field(default_factory=dict)
    """lead_id, quote_id, invoice_id, job_id: whom and what it is about."""
    result: dict[str, Any] = field(default_factory=dict)
    """What the tool gives back beside what is known of the sending."""
    amount: str = ""
    """Sum that it is about, for those who approve it."""


Composing = Callable[[Arguments, PackScope, Database], Awaitable[OutgoingMessage]]


def sending(compose: Composing) -> Handler:
    """A handler that sends what `compose` gives, and never the same call's message twice."""

    async def perform(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
        async with open_database(scope) as db:
            before = await db.performed(scope.key)
            if before is not None:
                return before
            character = await compose(arguments, scope, db)
            message_id = new_id("message", scope.key)
            attempt = await _begin(db, scope, message_id, character)
            return await _send(db, scope, message_id, character, attempt)

    return perform


def previewing(compose: Composing) -> Handler:
    """A preview of what `compose` would give to send."""

    async def preview(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
        async with open_database(scope) as db:
            message = await compose(arguments, scope, db)
        return {
            "to": message.recipient,
            "subject": message.subject,
            "amount": message.amount,
            "text": message.body,
        }

    return preview


async def _begin(
    db: Database, scope: PackScope, message_id: str, character: OutgoingMessage
) -> str:
    """Put the message on record as being sent by this attempt, whose name is given back.

    Raises `ToolBroke` when another attempt of this call sends it or may have sent it.
    """
    attempt = secrets.token_hex(8)
    values = {
        "channel": character.channel,
        "purpose": character.purpose,
        "recipient": character.recipient,
        "subject": character.subject or None,
        "body": character.body,
        "status": "sending",
        "error": None,
        **character.about,
    }
    new = Insert("messages", {"id": message_id, **values})
    output = await db.apply(f"{scope.key}:begun", [new], {"attempt": attempt})
    if output["attempt"] != attempt:
        await _begin_again(db, f"{scope.key}:{attempt}", message_id, values)
    return attempt


async def _begin_again(db: Database, key: str, message_id: str, values: dict[str, Any]) -> None:
    """Let one attempt at a time send again what was certainly not sent."""
    try:
        await db.apply(key, [Update("messages", message_id, values, {"status": "failed"})], {})
    except Conflict:
        raise ToolBroke(
            f"this call may already have sent its message {message_id!r}, and does not send it "
            "again; ask the recipient, then request a new message"
        ) from None


async def _send(
    db: Database, scope: PackScope, message_id: str, character: OutgoingMessage, attempt: str
) -> dict[str, Any]:
    try:
        provider_id, usd = await _handed_over(character, scope)
    except ToolBroke as error:
        status = "unknown" if isinstance(error, MaybeSent) else "failed"
        output = Update("messages", message_id, {"status": status, "error": str(error)[:2000]})
        # Whatever becomes of the record, what is said is why the message did not go out.
        with suppress(ToolBroke):
            await db.apply(f"{scope.key}:{attempt}:{status}", [output], {})
        raise
    values: dict[str, Any] = {"status": "sent", "provider_id": provider_id, "sent_at": scope.now}
    result = {
        "message_id": message_id,
        "to": character.recipient,
        "provider_id": provider_id,
        "status": "sent",
        **character.result,
        **({"usd": usd} if usd is not None else {}),
    }
    try:
        return await db.apply(scope.key, [Update("messages", message_id, values)], result)
    except ToolBroke as error:
        raise ToolBroke(
            f"the message was sent ({provider_id}), but this could not be recorded: {error}; "
            "do not send it again"
        ) from None


async def _handed_over(character: OutgoingMessage, scope: PackScope) -> tuple[str, float | None]:
    """The provider's name for the message, and what it cost where that is said."""
    if character.channel == "sms":
        text = await send_sms(Sms(character.recipient, character.body), scope)
        return text.sid, text.usd
    mail = await send_mail(Mail(character.recipient, character.subject, character.body), scope)
    return mail.message_id, None
