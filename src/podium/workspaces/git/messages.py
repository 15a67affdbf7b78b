"""Commit messages of Podium's own: text, and trailers that say what a commit was made for."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from podium.domain.errors import BadInput

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_NOT_IN_A_TEXT = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]+")


def message_with(message: str, trailers: Mapping[str, str]) -> str:
    """The whole text. Raises `BadInput` for an empty message, or a key that git does not take for one."""
    text = _NOT_IN_A_TEXT.sub(" ", message).strip()
    if not text:
        raise BadInput("a commit needs a message; say in a line what it is for")
    for key in trailers:
        if not _KEY.fullmatch(key):
            raise BadInput(
                f"{key!r} cannot be the key of a trailer; use letters, digits and dashes"
            )
    lines = [
        f"{key}: {_NOT_IN_A_LINE.sub(' ', value).strip()}\n" for key, value in trailers.items()
    ]
    return f"{text}\n" + (f"\n{''.join(lines)}" if lines else "")


def digest_of(trailers: Mapping[str, str]) -> str:
    """By which a commit is known again; empty when there are none."""
    if not trailers:
        return ""
    return hashlib.sha256(json.dumps(sorted(trailers.items())).encode()).hexdigest()
