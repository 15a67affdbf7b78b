"""The base of all nouns: frozen, strict about unknown fields, cheap to copy."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

Json = Any
"""A JSON value. Deep validation happens where a schema is known."""

Moment = AwareDatetime
"""A point in time, absolute, in UTC."""

NonEmpty = Annotated[str, Field(min_length=1)]


class Noun(BaseModel):
    """A frozen value. Change it with `model_copy(update=…)`."""

    # Schemas are built on first use: most commands touch a few nouns only.
    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), defer_build=True
    )
