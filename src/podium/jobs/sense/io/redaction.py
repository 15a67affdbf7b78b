"""Secrets out of what was sensed, and of what is written to files that others read."""

from __future__ import annotations

from collections.abc import Callable

from podium.core.model import Json, whole_text

Redact = Callable[[str], str]


def redacted(value: Json, redact: Redact) -> Json:
    """A copy of the JSON value without secrets, in keys too, and with nothing in it that is no text."""
    if isinstance(value, str):
        return redact(whole_text(value))
    if isinstance(value, dict):
        return _object(value, redact)
    if isinstance(value, list | tuple):
        return [redacted(item, redact) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # A secret may be a number.
        written = str(value)
        cleaned = redact(written)
        return value if cleaned == written else cleaned
    return value


def _object(value: dict[str, Json], redact: Redact) -> dict[str, Json]:
    cleaned: dict[str, Json] = {}
    for key, item in value.items():
        name = redacted(key, redact)
        while name in cleaned:  # two secrets are the same word when they are gone
            name += "#"
        cleaned[name] = _item(name, item, redact)
    return cleaned


def _item(name: str, item: Json, redact: Redact) -> Json:
    """Some secrets are known by the name before them, as in `Authorization: Bearer …`."""
    if not isinstance(item, str):
        return redacted(item, redact)
    before = f"{name}: "
    line: str = redacted(before + item, redact)
    return redacted(item if not line.startswith(before) else line.removeprefix(before), redact)
