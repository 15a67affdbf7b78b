"""Messages of your own programs: JSON, signed with a shared secret.

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
    """Compute the signature of a request."""
    signed = f"{timestamp}.{nonce}.".encode(errors="replace") + body
    return "sha256=" + hmac.digest(secret.encode(), signed, "sha256").hex()


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> bool:
    """True when the request is signed with the secret within the window. The nonce is not checked here."""
    stamp, nonce = headers.get(TIMESTAMP, ""), headers.get(NONCE, "")
    if not stamp.isdecimal() or len(stamp) > 15:
        return False
    if abs(now.timestamp() - int(stamp)) > WINDOW_SECONDS:
        return False
    if not SHORTEST_NONCE <= len(nonce) <= MAX_NONCE:
        return False
    signed = headers.get(SIGNATURE, "").encode(errors="replace")
    return hmac.compare_digest(signed, signature(secret, stamp, nonce, body).encode())


def message_in(message: Json) -> tuple[str, str, str] | None:
    """Return id, sender and text of the message; None when it is malformed."""
    if not isinstance(message, dict):
        return None
    number, sender, text = message.get("id"), message.get("from"), message.get("text")
    if not (isinstance(number, str) and isinstance(sender, str) and isinstance(text, str)):
        return None
    return (number, sender, text) if 0 < len(number) <= MAX_ID else None
