"""Rows as nouns, when some of them were written by a newer Podium, or by nobody's Podium at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from podium.domain.errors import StoreUnusable
from podium.domain.model import Noun
from podium.domain.work import StepRecord, WorkerBeat

N = TypeVar("N", bound=Noun)

Report = Callable[[str, str], None]
"""Takes what cannot be read, and why."""

_LONGEST_NAME = 120


def readable(noun: type[N], rows: Iterable[tuple[Any, Any]], report: Report) -> Iterator[N]:
    """Those of the rows, keys and bodies, that can be read. The others are reported."""
    for key, body in rows:
        try:
            yield _read(noun, body)
        except (ValueError, RecursionError) as error:
            report(_named(noun, str(key)), _problem(error))


def read_or_refuse(noun: type[N], body: Any, looked_up: Mapping[str, Any]) -> N:
    """The noun of this row. Raises `StoreUnusable` that says what it was looked up by."""
    try:
        return _read(noun, body)
    except (ValueError, RecursionError) as error:
        raise StoreUnusable(
            _named(noun, " ".join(str(value) for value in looked_up.values())),
            f"its row in the database cannot be read ({_problem(error)})",
            "upgrade Podium if a newer one wrote it, else restore a backup",
        ) from None


def _read(noun: type[N], body: Any) -> N:
    if noun is not WorkerBeat:
        # What is not known of a run or a schedule would be lost when it is saved again.
        return noun.model_validate_json(body)
    # Others only look at a beat: workers of two versions must know of each other.
    found = json.loads(body)
    if isinstance(found, dict):
        found = {name: value for name, value in found.items() if name in noun.model_fields}
    return noun.model_validate(found)


def _named(noun: type[Noun], key: str) -> str:
    name = {WorkerBeat: "worker", StepRecord: "step"}.get(noun, noun.__name__.lower())
    return f"{name} {key[:_LONGEST_NAME]!r}"


def _problem(error: Exception) -> str:
    """What is wrong, without what stands there: that may be a secret."""
    if not isinstance(error, ValidationError):
        return "no JSON" if isinstance(error, ValueError) else "nested too deeply"
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place[:_LONGEST_NAME]}: {first['msg']}" if place else "no JSON"
