"""An edit that a CLI makes itself, in words that a person can judge and that no other edit has."""

from __future__ import annotations

import hashlib

LONGEST_EDIT = 500_000


def whole_edit(text: str) -> str:
    """The edit as it is. A longer one is cut and told apart from others by the digest of its whole."""
    if len(text) <= LONGEST_EDIT:
        return text
    # Agents may write halves of surrogate pairs, which are no UTF-8.
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:LONGEST_EDIT]}\nsha256:{digest}"
