"""Base of all models (frozen, strict about unknown fields), base of event bodies, canonical JSON and digests."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

Json = Any
"""A JSON value. Deep validation happens where a schema is known."""

UtcDatetime = AwareDatetime
"""A point in time, absolute, in UTC."""

NonEmpty = Annotated[str, Field(min_length=1)]


class FrozenModel(BaseModel):
    """A frozen value. Change it with `model_copy(update=…)`."""

    # Schemas are built on first use: most commands touch a few nouns only.
    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), defer_build=True
    )


def json_of(model: BaseModel) -> str:
    """The noun as JSON text that every file and database can hold.

    JSON of agents and models may hold halves of surrogate pairs, which are no text: they are
    replaced, because one of them must not keep a whole record from being written.
    """
    try:
        return model.model_dump_json()
    except PydanticSerializationError:
        return json.dumps(whole_text(model.model_dump()), ensure_ascii=False, default=str)


def whole_text(value: Json) -> Json:
    """A copy of the JSON value in which halves of surrogate pairs are replaced, in keys too."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {whole_text(key): whole_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [whole_text(item) for item in value]
    return value


class EventBody(FrozenModel):
    """Something that happened. The envelope says when, to which run, and in which order."""

    type: str
    version: int = 1


# Made once: `json.dumps` would make one for every value.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Json) -> str:
    """One text for one value: keys sorted, no blanks, no NaN."""
    return _CANONICAL.encode(value)


def digest_of(value: Json) -> str:
    """SHA-256 of the canonical JSON, as `sha256:…`."""
    return "sha256:" + hashlib.sha256(canonical_json(value).encode()).hexdigest()
