"""Whether a contract can be answered at all, and its answers be kept."""

from __future__ import annotations

from pydantic import AliasChoices, AliasPath, BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from podium.agents.contract.wanted import field_keys
from podium.domain.errors import BadInput
from podium.domain.model import Json


def check_contract(contract: type[BaseModel]) -> None:
    """Raise `BadInput` for a contract that no JSON object fits, or whose answers could not be kept."""
    try:
        schema = contract.model_json_schema()
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        reason = str(error).splitlines()[0]
        raise _unusable(contract, f"it has no JSON Schema ({reason})") from None
    if schema.get("type", "object") != "object":
        raise _unusable(contract, "it is no JSON object; put the value under a key")
    if _asks_for_secrets(schema):
        raise _unusable(contract, "it asks for a secret, and answers are written down")
    for name, field in contract.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        if all(isinstance(each, AliasPath) for each in choices):
            raise _unusable(
                contract, f"{name!r} has only a path for an alias, which no schema shows"
            )
        if not {field.serialization_alias or name, name} & field_keys(contract, name):
            raise _unusable(contract, f"{name!r} is written by another alias than it is read by")


def kept_form(payload: BaseModel) -> Json:
    """The payload as JSON that its contract reads again. `BadInput` where it writes what it cannot read."""
    for by_alias in (True, False):
        # `round_trip` leaves out what is computed from other fields.
        kept = payload.model_dump(mode="json", by_alias=by_alias, round_trip=True)
        if _is_read_again(type(payload), kept, by_alias=by_alias):
            return kept
    raise _unusable(
        type(payload), "what it writes as JSON does not fit it again; look at its aliases"
    )


def _is_read_again(contract: type[BaseModel], kept: Json, *, by_alias: bool) -> bool:
    try:
        again = contract.model_validate(kept)
    except Exception:  # a validator of the contract may raise anything
        return False
    return bool(again.model_dump(mode="json", by_alias=by_alias, round_trip=True) == kept)


def _asks_for_secrets(schema: Json) -> bool:
    if isinstance(schema, dict):
        hidden = schema.get("format") == "password" and schema.get("writeOnly") is True
        return hidden or any(map(_asks_for_secrets, schema.values()))
    return isinstance(schema, list) and any(map(_asks_for_secrets, schema))


def _unusable(contract: type[BaseModel], reason: str) -> BadInput:
    return BadInput(f"The contract {contract.__name__} cannot be used: {reason}.")
