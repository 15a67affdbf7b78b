"""Takes a login out of what a server says of it: as it is, in Base64, in percent signs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from itertools import chain
from urllib.parse import quote, quote_plus

Hide = Callable[[str], str]

_HIDDEN = "[hidden]"
_SHORTEST = 6
"""Less than this is found all over ordinary text."""


def hiding(secret: str, user: str = "") -> Hide:
    """A function that gives a text without the secret, which a cut text would hold unrecognised."""
    plain = (secret, f"{user}:{secret}", f"\0{user}\0{secret}") if secret else ()
    forms = set(chain.from_iterable(_forms(item) for item in plain))
    # The longest first: one is a part of another.
    longest_first = sorted(
        (item for item in forms if len(item) >= _SHORTEST), key=len, reverse=True
    )

    def hide(text: str) -> str:
        for form in longest_first:
            text = text.replace(form, _HIDDEN)
        return text

    return hide


def _forms(text: str) -> Iterator[str]:
    encoded = base64.b64encode(text.encode()).decode()
    # Without its last letters, which depend on what comes after it.
    stem = encoded.rstrip("=")[:-1] if encoded.endswith("=") else encoded
    for item in (text, encoded, stem, stem.replace("+", "-").replace("/", "_")):
        yield from (item, quote(item), quote(item, safe=""), quote_plus(item))
