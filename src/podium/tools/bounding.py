"""Makes what tools give back safe to show and to keep: no terminal escapes, no secrets, no floods.

The order matters. Escapes go first, for a secret with an escape in its middle would pass the
redactor and be whole again afterwards; cutting comes last, for a cut through a secret would too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache

from podium.domain.gating import Outcome
from podium.domain.model import Json

DEFAULT_RESULT_BYTES = 32_768
ERROR_BYTES = 2_000
_SMALLEST_SHARE = 80
"""Below this a cut text would be little but its own marker."""
_MARKER_SHARE = 60
"""Room for the brackets and the words that say what a list or an object had in all."""
_LONGEST_REMEMBERED = 80
_MOST_REMEMBERED = 500
_MOST_BYTES_OF_ONE = 6
"""What one character takes at most in JSON: `\\u001b`."""

# Made once: `json.dumps` would make one for every value.
_ENCODER = json.JSONEncoder(ensure_ascii=False)

# Escape sequences (operating system commands, control sequences, two-byte ones), then every
# control character that is not a tab, a line feed or the first half of a Windows line end.
_ESCAPES = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]"
    r"|\r(?!\n)"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def plain_text(text: str) -> str:
    """The text without terminal escapes, control characters and halves of characters."""
    if text.isascii() and text.isprintable():
        return text
    return _ESCAPES.sub("", text).encode(errors="replace").decode()


class Cleaner:
    """Takes escapes and secrets out of texts. Short ones are remembered: the same come with every result."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._remembered = lru_cache(maxsize=_MOST_REMEMBERED)(self._cleaned)

    def text(self, text: str) -> str:
        short = len(text) <= _LONGEST_REMEMBERED
        return self._remembered(text) if short else self._cleaned(text)

    def _cleaned(self, text: str) -> str:
        return self._redact(plain_text(text))


def clean_outcome(outcome: Outcome, cleaner: Cleaner, limit_bytes: int) -> Outcome:
    """The outcome as an agent may see it and the store may keep it."""
    clean = cleaner.text
    return outcome.model_copy(
        update={
            "result": bound(_each_text(outcome.result, clean), limit_bytes),
            "error": _cut(clean(outcome.error), ERROR_BYTES),
        }
    )


def bound(value: Json, limit_bytes: int) -> Json:
    """The value, its longest texts and lists cut until it fits. A cut says how long the whole was."""
    if _size(value) <= limit_bytes:
        return value
    if isinstance(value, str):
        return _cut(value, limit_bytes)
    if isinstance(value, dict):
        return _bound_dict(value, limit_bytes)
    if isinstance(value, list):
        return _bound_list(value, limit_bytes)
    return value


def _bound_dict(value: dict[str, Json], limit_bytes: int) -> dict[str, Json]:
    """Small fields stay whole; the large ones share what is left."""
    left = limit_bytes - _MARKER_SHARE
    fitted: dict[str, Json] = {}
    for waiting, name in enumerate(sorted(value, key=lambda name: _size(value[name]))):
        punctuated = _size(name) + len(": , ")
        share = left // (len(value) - waiting) - punctuated
        if share < min(_SMALLEST_SHARE, _size(value[name])):
            break
        fitted[name] = bound(value[name], share)
        left -= _size(fitted[name]) + punctuated
    kept = {name: fitted[name] for name in value if name in fitted}
    if len(kept) < len(value):
        kept["cut"] = f"{len(value)} fields in all"
    return kept


def _bound_list(value: list[Json], limit_bytes: int) -> list[Json]:
    left = limit_bytes - _MARKER_SHARE
    kept: list[Json] = []
    for item in value:
        size = _size(item) + len(", ")
        if size > left:
            break
        kept.append(item)
        left -= size
    if not kept and value and left > _SMALLEST_SHARE:
        kept.append(bound(value[0], left))
    kept.append(f"[cut: {len(value)} items in all]")
    return kept


def _cut(text: str, limit_bytes: int) -> str:
    """Two thirds from the beginning, one from the end: failures tend to be told last."""
    if len(text) <= limit_bytes // _MOST_BYTES_OF_ONE - len('""'):
        return text
    whole = len(text.encode())
    room = limit_bytes
    shown = text
    while _size(shown) > limit_bytes and room > 0:
        room = room * 3 // 4
        head, tail = room * 2 // 3, room // 3
        shown = f"{text[:head]}\n[cut: {whole} bytes in all]\n{text[len(text) - tail :]}"
    return shown


def _each_text(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(str(key)): _each_text(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    return value


def _size(value: Json) -> int:
    return len(_ENCODER.encode(value).encode())
