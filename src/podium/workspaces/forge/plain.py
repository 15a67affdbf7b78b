"""Words of others made fit to be shown: one line, no controls, no secrets, not too long."""

from __future__ import annotations

import re

_NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


def plain(text: str, most: int = 500) -> str:
    """On one line, without escapes, and cut."""
    line = " ".join(_NOT_SHOWN.sub(" ", text).split())
    line = line.encode(errors="replace").decode()
    return line if len(line) <= most else f"{line[: most - 1]}…"


def said(text: str, secrets: tuple[str, ...], most: int = 500) -> str:
    """The end of what a program or server said, without secrets and without credentials in addresses."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[secret]")
    text = _USER_INFO.sub("", text)
    return plain(text[-4 * most :], most)
