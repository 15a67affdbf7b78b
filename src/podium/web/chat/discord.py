"""Interactions of a Discord application, as its endpoint is posted them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from podium.core.model import Json
from podium.notices import tamed

SIGNATURE, TIMESTAMP = "x-signature-ed25519", "x-signature-timestamp"
WINDOW_SECONDS = 300.0
PING, COMMAND = 1, 2
PONG: dict[str, Json] = {"type": 1}
_MESSAGE = 4
_FOR_THE_SENDER_ALONE = 64
OWN_NAME = "podium"
"""Command whose text is the whole message; other commands are `run`, `status` and so on themselves."""


def is_discord(headers: Mapping[str, str], body: bytes, public_key: str, now: datetime) -> bool:
    """True when Discord signed this body within the window."""
    # Late: only those who use Discord pay for it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    stamp = headers.get(TIMESTAMP, "")
    if not stamp.isdecimal() or len(stamp) > 15:
        return False
    if abs(now.timestamp() - int(stamp)) > WINDOW_SECONDS:
        return False
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    try:
        key.verify(bytes.fromhex(headers.get(SIGNATURE, "")), stamp.encode() + body)
    except (InvalidSignature, ValueError):
        return False
    return True


def message_in(interaction: Json) -> tuple[str, str, str] | None:
    """Return id, sender and text of a command; None for any other interaction."""
    if not isinstance(interaction, dict) or interaction.get("type") != COMMAND:
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
    words = [] if name.lower() == OWN_NAME else [name]
    return number, sender, " ".join([*words, *map(str, values)])


def reply(text: str) -> dict[str, Json]:
    """Build the reply, which only the sender sees and which mentions nobody."""
    return {
        "type": _MESSAGE,
        "data": {
            "content": tamed(text),
            "flags": _FOR_THE_SENDER_ALONE,
            "allowed_mentions": {"parse": []},
        },
    }
