"""The CLIs' own tools: edits and replacements as a person can judge them, and the folder that a search really reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from podium.core.model import Json

MAX_EDIT = 500_000


def whole_edit(text: str) -> str:
    """The edit as it is. A longer one is cut and told apart from others by the digest of its whole."""
    if len(text) <= MAX_EDIT:
        return text
    # Agents may write halves of surrogate pairs, which are no UTF-8.
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:MAX_EDIT]}\nsha256:{digest}"


def change_text(old: Json, new: Json, more: Mapping[str, Json] | None = None) -> str:
    """Return removed lines, added lines, and what else has an effect. Different changes never read the same."""
    return whole_edit("\n".join([*_lines("-", old), *_lines("+", new), *_lines("=", more or None)]))


def _lines(sign: str, value: Json) -> Iterator[str]:
    if value is None:
        return
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    # By line feeds alone: with other ends of lines it is another change.
    yield from (f"{sign}{line}" for line in text.split("\n"))


_GLOB = re.compile(r"[*?\[{]")


def searched_folder(path: Json, pattern: Json) -> Json:
    """The folder to be judged: a pattern may lead out of the one that was named."""
    folder = path or "."
    if not isinstance(folder, str) or not isinstance(pattern, str):
        return folder
    match = _GLOB.search(pattern)
    plain = pattern[: match.start()] if match else pattern
    behind = pattern[match.start() :] if match else ""
    if ".." in PurePosixPath(behind).parts:
        return "/"
    base = plain.rpartition("/")[0]
    if pattern.startswith("/"):
        return base or "/"
    return str(PurePosixPath(folder, base)) if ".." in PurePosixPath(plain).parts else folder
