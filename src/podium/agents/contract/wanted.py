"""The contract as the parser needs it: which keys it knows, and whether a value fits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Generic, TypeVar

from pydantic import AliasChoices, BaseModel, RootModel, ValidationError
from pydantic.fields import FieldInfo

from podium.agents.contract.not_an_answer import NotAnAnswer
from podium.domain.model import Json

M = TypeVar("M", bound=BaseModel)

NONCE_KEY = "podium_nonce"
"""The key beside the contract's own that shows an object to be of this turn."""

MOST_PROBLEMS = 5


class Wanted(Generic[M]):
    """A contract, and the nonce that the object must carry when there is one."""

    def __init__(self, model: type[M], nonce: str | None = None) -> None:
        self.model = model
        self.nonce = nonce
        self.keys = _keys(model)
        names = "|".join(map(re.escape, sorted({*self.keys, NONCE_KEY})))
        self._mention = re.compile(rf"(?<!\w)(?:{names})(?!\w)")

    def is_mentioned_in(self, source: str) -> bool:
        """Whether a key of the contract stands anywhere in this text."""
        return not self.keys or self._mention.search(source) is not None

    def fit(self, value: Mapping[str, Json], *, mended: bool = False) -> M:
        """The value as the contract has it. Raises `NotAnAnswer` when it does not fit.

        A mended value must fit to the letter: no coercion, no keys the contract does not know.
        """
        self._check_nonce(value)
        fields = {key: each for key, each in value.items() if key != NONCE_KEY or not self.nonce}
        self._check_keys(fields, mended=mended)
        return validated(self.model, fields, strict=mended or None)

    def _check_nonce(self, value: Mapping[str, Json]) -> None:
        if self.nonce is None or value.get(NONCE_KEY) == self.nonce:
            return
        if NONCE_KEY in value:
            raise NotAnAnswer("nonce", f"The last JSON object's {NONCE_KEY!r} is not this turn's")
        raise NotAnAnswer("nonce", f"The last JSON object has no {NONCE_KEY!r}")

    def _check_keys(self, fields: Mapping[str, Json], *, mended: bool) -> None:
        if not self.keys:
            return
        if isinstance(fields.get("properties"), dict) and "properties" not in self.keys:
            raise NotAnAnswer("misfit", "The last JSON object is the schema and not an answer")
        if not self.nonce and self.keys.isdisjoint(fields):
            known = ", ".join(sorted(self.keys))
            raise NotAnAnswer("misfit", f"The last JSON object has none of the keys {known}")
        unknown = [key for key in fields if key not in self.keys]
        if mended and unknown and self.model.model_config.get("extra") != "allow":
            raise NotAnAnswer(
                "malformed",
                f"The last JSON object is not valid JSON, and mended it has the unknown key {unknown[0][:80]!r}",
            )


def validated(model: type[M], value: Json, *, strict: bool | None = None) -> M:
    """The value as this model. Raises `NotAnAnswer` that names each field and what is wrong with it."""
    try:
        # As JSON, where even the strict mode lets text stand for dates and names of choices.
        return model.model_validate_json(json.dumps(value, allow_nan=False), strict=strict)
    except ValidationError as error:
        raise NotAnAnswer("misfit", _misfit(error)) from None


def _keys(model: type[BaseModel]) -> frozenset[str]:
    if issubclass(model, RootModel):
        return frozenset()
    return frozenset(
        key for name, field in model.model_fields.items() for key in _names(name, field)
    )


def _names(name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias or field.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [name, *(each for each in choices if isinstance(each, str))]


def _misfit(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False)
    shown = "; ".join(
        f"{_path(each['loc'])}: {each['msg']}{_was(each['input'], each['type'])}"
        for each in found[:MOST_PROBLEMS]
    )
    more = f"; and {len(found) - MOST_PROBLEMS} more" if len(found) > MOST_PROBLEMS else ""
    return f"The last JSON object does not fit the schema: {shown}{more}"


def _was(given: object, kind: str) -> str:
    if kind == "missing":
        return ""
    shown = json.dumps(given, default=repr)
    return f" (was {shown if len(shown) <= 80 else shown[:80] + '…'})"


def _path(location: tuple[int | str, ...]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
