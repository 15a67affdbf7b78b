"""Check that a login from a private home is the person's own with newer tokens.

A CLI and the commands of its agent write with the same rights, so which of them wrote a file cannot
be told. What comes back must therefore be what a refresh makes of this very login.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from podium.core.model import Json

_TOKEN_HEAD = 6
"""Tokens of one make begin alike."""
_SIGN_ENDS = re.compile(r"[-_./]")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=|:-]{1,20000}")
_MILLISECONDS = 1e11
"""From here on a moment is counted in milliseconds."""
_SKEW = timedelta(minutes=5)
_SAME_ACCOUNT = ("iss", "sub", "aud", "azp", "client_id", "scp", "email")
_OF_OPENAI = "https://api.openai.com/auth"
_SAME_OPENAI_ACCOUNT = ("chatgpt_account_id", "chatgpt_user_id", "user_id")


def refreshed(
    seed: bytes, content: bytes, refreshable: Sequence[str], now: datetime
) -> bytes | None:
    """The seed with its new tokens. None: there are none, or they are not what a refresh makes.

    Nothing but the `refreshable` values may differ; each must be the next of its kind, for the same
    account; an access token must be among them; and something must say that it expires later.
    """
    if content == seed:
        return None
    try:
        before, after = json.loads(seed), json.loads(content)
    except (ValueError, RecursionError):
        return None
    changed = [name for name in refreshable if _value(before, name) != _value(after, name)]
    pairs = {name: (_value(before, name), _value(after, name)) for name in changed}
    if not _brings_access(changed) or not all(_may_follow(*pair, now) for pair in pairs.values()):
        return None
    if not any(_expires_later(*pair) for pair in pairs.values()):
        return None
    for name, (_, new) in pairs.items():
        _put(before, name, new)
    return json.dumps(before, indent=2).encode() if before == after else None


def _brings_access(changed: Sequence[str]) -> bool:
    """A refresh is made to get one. A refresh token alone would only change hands."""
    return any(name.rpartition(".")[2].startswith("access") for name in changed)


def _may_follow(old: Json, new: Json, now: datetime) -> bool:
    """Return whether a value is the next of its kind: a token for the same account, a later time that can be."""
    if type(old) is not type(new) or isinstance(new, dict | list | bool) or new is None:
        return False
    if not isinstance(old, str):
        expires = _timestamp(new)
        return expires is not None and new > old and now < expires
    written, rewritten = _date(old), _date(new)
    if written is not None:
        return rewritten is not None and written < rewritten < now + _SKEW
    claims, renewed = _claims(old), _claims(new)
    if claims is not None:
        return renewed is not None and _is_renewed(claims, renewed, now)
    return renewed is None and _made_alike(old, new)


def _made_alike(old: str, new: str) -> bool:
    """Tokens that say nothing: only their make can be compared."""
    match = _SIGN_ENDS.search(old[:_TOKEN_HEAD])
    head = match.end() if match else _TOKEN_HEAD
    return (
        (old[:head] == new[:head] or len(old) < 2 * _TOKEN_HEAD)
        and len(old) // 2 <= len(new) <= 2 * len(old) + 64
        and _TOKEN.fullmatch(new) is not None
    )


def _is_renewed(old: dict[str, Json], new: dict[str, Json], now: datetime) -> bool:
    """Return whether the claims name the same account and are younger."""
    of_openai, of_openai_now = old.get(_OF_OPENAI), new.get(_OF_OPENAI)
    if isinstance(of_openai, dict):
        same_account = _same(of_openai, of_openai_now, _SAME_OPENAI_ACCOUNT)
    else:
        same_account = of_openai == of_openai_now
    expires, issued = _timestamp(new.get("exp")), _timestamp(new.get("iat"))
    if "exp" in old and (expires is None or expires <= now):
        return False
    if "iat" in old and (issued is None or issued > now + _SKEW):
        return False
    later = all(_number(new.get(name)) >= _number(old.get(name)) for name in ("exp", "iat"))
    return same_account and later and _same(old, new, _SAME_ACCOUNT)


def _same(old: dict[str, Json], new: Json, names: Sequence[str]) -> bool:
    return isinstance(new, dict) and all(old.get(name) == new.get(name) for name in names)


def _expires_later(old: Json, new: Json) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        claims, renewed = _claims(old) or {}, _claims(new) or {}
        return _number(renewed.get("exp")) > _number(claims.get("exp")) > 0
    return _number(new) > _number(old) > 0


def _claims(token: str) -> dict[str, Json] | None:
    """Return the claims of a JWT. Its signature only its issuer can check."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > 20_000:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _timestamp(value: Json) -> datetime | None:
    seconds = _number(value)
    if seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(
            seconds / 1000 if seconds > _MILLISECONDS else seconds, tz=UTC
        )
    except (ValueError, OverflowError, OSError):
        return None


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _date(text: str) -> datetime | None:
    """A moment in words, such as codex notes down when it refreshed."""
    try:
        date = datetime.fromisoformat(text[:64])
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _value(data: Json, dotted: str) -> Json:
    for name in dotted.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(name)
    return data


def _put(data: Json, dotted: str, value: Json) -> None:
    *path, last = dotted.split(".")
    for name in path:
        data = data[name]
    data[last] = value
