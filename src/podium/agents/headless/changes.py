"""A replacement of one text by another, as a person can judge it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from podium.agents.headless.edits import whole_edit
from podium.domain.model import Json


def change_in_words(old: Json, new: Json, more: Mapping[str, Json] | None = None) -> str:
    """What goes, what comes, and what else has an effect. Different changes never read the same."""
    return whole_edit("\n".join([*_lines("-", old), *_lines("+", new), *_lines("=", more or None)]))


def _lines(sign: str, found: Json) -> Iterator[str]:
    if found is None:
        return
    text = found if isinstance(found, str) else json.dumps(found, sort_keys=True)
    # By line feeds alone: with other ends of lines it is another change.
    yield from (f"{sign}{line}" for line in text.split("\n"))
