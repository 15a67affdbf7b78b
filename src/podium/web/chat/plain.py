"""Messages of programs of one's own: JSON, signed with a shared secret.

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

TIMESTAMP, NONCE, SIGNATURE = "x-podium-timestamp", "x-podium-nonce", "x-podium-signature"
WINDOW_SECONDS = 300.0
SHORTEST_NONCE, MAX_NONCE = 8, 200
MAX_ID = 200


def signature(secret: str, timestamp: str, nonce: str, body: bytes) -> str:
    """What proves a request."""
    signed = f"{timestamp}.{nonce}.".encode(errors="replace") + body
    return "sha256=" + hmac.digest(secret.encode(), signed, "sha256").hex()


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> bool:
    """Whether somebody who knows the secret sent this, a short while ago. Its nonce is not looked at yet."""
    stamp, nonce = headers.get(TIMESTAMP, ""), headers.get(NONCE, "")
    if not stamp.isdecimal() or len(stamp) > 15:
        return False
    if abs(now.timestamp() - int(stamp)) > WINDOW_SECONDS:
        return False
    if not SHORTEST_NONCE <= len(nonce) <= MAX_NONCE:
        return False
    given = headers.get(SIGNATURE, "").encode(errors="replace")
    return hmac.compare_digest(given, signature(secret, stamp, nonce, body).encode())


def said_in(message: Json) -> tuple[str, str, str] | None:
    """Id of the message, sender and text."""
    if not isinstance(message, dict):
        return None
    number, sender, text = message.get("id"), message.get("from"), message.get("text")
    if not (isinstance(number, str) and isinstance(sender, str) and isinstance(text, str)):
        return None
    return (number, sender, text) if 0 < len(number) <= MAX_ID else None
