"""Secrets that only the word before them gives away, as in `password=…`."""

from __future__ import annotations

import re
from collections.abc import Callable

from podium.domain.model import Json

HIDDEN = "[hidden]"

_NAMES = (
    r"pass(?:word|wd|phrase)|secret|token|authorization|credentials?"
    r"|(?:api|access|secret|private|auth)[_-]?key"
)
_NAMED = re.compile(
    rf"""(?P<before>(?:{_NAMES})\\?["']?[ \t]{{0,3}}[=:][ \t]{{0,3}})"""
    r"""(?P<value>(?:(?:bearer|basic|digest|token)[ \t]{1,3})?"""
    r"""(?:\\"[^"\n]{1,1000}?\\"|"(?:[^"\\\n]|\\.){1,1000}"|'[^'\n]{1,1000}'|[^\s,;&]+))""",
    re.IGNORECASE,
)
_TELLING_KEY = re.compile(rf"(?:{_NAMES})\Z", re.IGNORECASE)
_NO_SECRETS = ("true", "false", "null", "none", "yes", "no", "required", "missing")


def hiding(redact: Callable[[str], str]) -> Callable[[str], str]:
    """The same, and what stands behind words such as password, token or api_key is hidden too."""

    def redact_and_hide(text: str) -> str:
        return _NAMED.sub(_hidden, redact(text))

    return redact_and_hide


def named_hidden(value: Json) -> Json:
    """A copy of the JSON value in which texts under such a key are hidden whole."""
    if isinstance(value, list):
        return [named_hidden(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: HIDDEN if _TELLING_KEY.search(key) and _is_secret(item) else named_hidden(item)
        for key, item in value.items()
    }


def _is_secret(value: Json) -> bool:
    return isinstance(value, str) and bool(value) and value.lower() not in _NO_SECRETS


def _hidden(found: re.Match[str]) -> str:
    value = found["value"].strip("\\\"'")
    if value.startswith("[redacted:") or not _is_secret(value):
        return found[0]
    return found["before"] + HIDDEN
