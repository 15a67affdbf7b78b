"""Validation against untrusted JSON Schemas: nothing is fetched and no pattern runs away."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podium.core.model import Json
from podium.core.regex_cost import RegexTooCostly, pattern_cost

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


Spend = Callable[[int], None]
"""Told how many steps a search may take, before it is made. May raise to prevent it."""


def _count_nothing(steps: int) -> None:
    return


def with_defaults(schema: dict[str, Json], arguments: dict[str, Json]) -> dict[str, Json]:
    """A copy of the arguments with the schema's defaults, inside objects that are given too."""
    complete = dict(arguments)
    for name, inner in schema.get("properties", {}).items():
        if not isinstance(inner, dict):
            continue
        if name not in complete and "default" in inner:
            complete[name] = copy.deepcopy(inner["default"])
        elif isinstance(complete.get(name), dict):
            complete[name] = with_defaults(inner, complete[name])
    return complete


def validator_for(schema: Mapping[str, Json], spend: Spend = _count_nothing) -> Validator:
    """A validator of draft 2020-12 for a schema that was found to be one.

    References outside the schema are errors and never looked up. A text that is too long for its pattern
    does not fit it.
    """
    from referencing import Registry

    # A name of its own, or that of another draft, would have the schema read in another way.
    own = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    # Without a registry, jsonschema fetches what a reference names.
    made: Validator = _bounded(spend)(own, registry=Registry())
    return made


# Making such a class takes a millisecond, and whoever counts has many schemas.
@lru_cache(maxsize=4)
def _bounded(spend: Spend) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def pattern(
        validator: Validator, text: str, value: Json, schema: Json
    ) -> Iterator[ValidationError]:
        if isinstance(value, str):
            yield from _misfits(text, value, spend)

    made: Any = extend(Draft202012Validator, {"pattern": pattern})  # type: ignore[no-untyped-call]
    return made


def _misfits(pattern: str, value: str, spend: Spend) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    try:
        cost = pattern_cost(pattern)
    except RegexTooCostly as error:
        yield ValidationError(f"cannot be matched against {pattern[:100]!r}, which {error}")
        return
    if cost.longest is not None and len(value) > cost.longest:
        yield ValidationError(
            f"has {len(value)} characters, and at most {cost.longest} can be matched against {pattern!r}"
        )
        return
    spend(cost.steps(len(value)))
    if not re.search(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")
