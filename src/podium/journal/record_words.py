"""The words and values that stored records are made of, which no redaction may replace.

A configured pattern such as `[0-9a-f]{32}` fits every id, and `\\d{4}-\\d\\d-\\d\\d` every deadline:
a record in which they were hidden could not be read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

from podium.domain import events, gating, work
from podium.domain.model import Noun

_ID = r"[a-z]{2,12}_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}"

# Ids, and what is made of them: the key of a call, the name of a signal and of the wait for it.
# Digests. Moments.
_RECORD_VALUE = re.compile(
    rf"{_ID}(?::.{{1,200}}:[0-9a-f]{{12}}\.[0-9]+)?"
    rf"|(?:[a-z]{{2,12}}:){{1,2}}{_ID}(?:#[0-9]+)?"
    r"|sha256:[0-9a-f]{64}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


def belongs_to_record(text: str) -> bool:
    """Whether this whole string is one that Podium itself wrote and must be able to read."""
    return text in record_words() or _RECORD_VALUE.fullmatch(text) is not None


@cache
def record_words() -> frozenset[str]:
    """Names of fields, types of events, and states."""
    return frozenset(word for module in (events, gating, work) for word in _words_of(module))


def _words_of(module: ModuleType) -> Iterator[str]:
    for thing in vars(module).values():
        if not isinstance(thing, type):
            continue
        if issubclass(thing, Enum):
            yield from (str(member) for member in thing)
        elif issubclass(thing, Noun):
            for name, field in thing.model_fields.items():
                yield name
                yield from _literals(field.annotation)


def _literals(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from (str(word) for word in get_args(annotation))
    else:
        for argument in get_args(annotation):
            yield from _literals(argument)
