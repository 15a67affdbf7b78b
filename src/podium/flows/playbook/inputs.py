"""What a person hands to a playbook, held against what it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from podium.domain.errors import BadInput
from podium.domain.model import Json
from podium.domain.playbooks import LONGEST_LINE, LONGEST_TEXT, InputSpec, beneath

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][-+]?[0-9]{1,3})?")
_LARGEST = 10**18
_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class Settled:
    """The values of all inputs, as text."""

    values: dict[str, str]
    missing: tuple[str, ...] = ()
    """Those that must be given and are not; each has words for that as its value."""


def settle(
    specs: Mapping[str, InputSpec], given: Mapping[str, Json], *, sample: bool = False
) -> Settled:
    """Every input's value. Raises `BadInput` with all that is wrong at once.

    With `sample` an input that must be given may be missing: the prompt is only looked at.
    """
    known = ", ".join(specs) or "none"
    problems = [
        f"there is no input {str(name)[:60]!r}; inputs: {known}"
        for name in given
        if name not in specs
    ]
    values: dict[str, str] = {}
    missing: list[str] = []
    for name, spec in specs.items():
        value = given.get(name, spec.default)
        if value is None and spec.must_be_given:
            missing.append(name)
            values[name] = f"<{name}: not given yet>"
            continue
        try:
            values[name] = "" if value is None else fitting(spec, value)
        except ValueError as unfit:
            problems.append(f"input {name!r} {unfit}")
    if not sample:
        problems += [f"input {name!r} must be given" for name in missing]
    if problems:
        raise BadInput("\n".join(problems))
    return Settled(values, tuple(missing))


def fitting(spec: InputSpec, value: Json) -> str:
    """The value as text. Raises `ValueError` with the reason why it is none of this type."""
    if spec.choices and value not in spec.choices:
        raise ValueError(f"must be one of {', '.join(spec.choices)}")
    match spec.type:
        case "integer":
            return _integer(value)
        case "number":
            return _number(value)
        case "boolean":
            return _boolean(value)
        case "path":
            return beneath(_line(value))
        case "string":
            return _line(value)
        case "text":
            return _text(value, LONGEST_TEXT)


def _integer(value: Json) -> str:
    plain = isinstance(value, int) and not isinstance(value, bool)
    if not plain and not (isinstance(value, str) and _INTEGER.fullmatch(value.strip())):
        raise ValueError("must be a whole number")
    if plain and abs(value) >= _LARGEST:
        raise ValueError("must be a smaller number")
    return str(int(value))


def _number(value: Json) -> str:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    if not abs(value) < _LARGEST:
        raise ValueError("must be a smaller number")
    return str(int(value)) if value == int(value) else repr(float(value))


def _boolean(value: Json) -> str:
    word = str(value).strip().lower()
    if not isinstance(value, bool | str) or word not in ("true", "false"):
        raise ValueError("must be true or false")
    return word


def _line(value: Json) -> str:
    text = _text(value, LONGEST_LINE)
    if _BREAKS.search(text):
        raise ValueError("must be on one line; type `text` may have many")
    return text


def _text(value: Json, longest: int) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text: put it in quotes")
    if len(value) > longest:
        raise ValueError(f"is longer than {longest} characters")
    if "\0" in value:
        raise ValueError("holds a NUL character; it must be text")
    return value
