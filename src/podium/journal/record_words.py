"""The words and values that stored records are made of, which no redaction may replace.

A configured pattern such as `[0-9a-f]{32}` fits every id, and `\\d{4}-\\d\\d-\\d\\d` every deadline:
a record in which they were hidden could not be read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, Literal, get_args, get_origin

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
    return frozenset(word for each in _record_classes() for word in _words_of(each))


def _record_classes() -> set[type]:
    """All that a record can be made of: records hold records."""
    # Late: where there is no secret and no pattern, nobody asks for these words.
    from podium.domain import events, gating, work

    found: set[type] = set()
    waiting = [thing for module in (events, gating, work) for thing in vars(module).values()]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, type) and thing not in found:
            found.add(thing)
            waiting.extend(part for each in _annotations(thing) for part in _parts(each))
    return found


def _words_of(thing: type) -> Iterator[str]:
    if issubclass(thing, Enum):
        yield from (str(member) for member in thing)
    elif issubclass(thing, Noun):
        yield from thing.model_fields
        for each in _annotations(thing):
            yield from _literals(each)


def _annotations(thing: type) -> list[Any]:
    if not issubclass(thing, Noun):
        return []
    return [field.annotation for field in thing.model_fields.values()]


def _parts(annotation: Any) -> Iterator[Any]:
    """What an annotation is made of, such as the noun in a tuple of them."""
    if arguments := get_args(annotation):
        for argument in arguments:
            yield from _parts(argument)
    else:
        yield annotation


def _literals(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from (str(word) for word in get_args(annotation))
    else:
        for argument in get_args(annotation):
            yield from _literals(argument)
