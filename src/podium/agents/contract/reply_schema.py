"""The contract as the parser needs it: its keys, whether a value fits, whether it can be answered at all, and problems of a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from functools import cached_property
from types import UnionType
from typing import Annotated, Generic, Literal, TypeVar, Union, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.fields import FieldInfo

from podium.agents.contract.json_objects import misfit
from podium.core.errors import BadInput, ReplyInvalid
from podium.core.model import Json

Problem = Literal[
    "missing",  # nothing of the kind is there
    "cut off",  # it begins and does not end
    "malformed",  # it is no JSON, and mending it would be guessing
    "misfit",  # it is JSON and does not fit the contract
    "ambiguous",  # there are two, and they differ
    "misplaced",  # it stands where an answer does not: in a list, a sentence, a quotation
    "trailing",  # what follows takes it back; without a nonce, too much follows
    "thinking",  # it was only thought
    "nonce",  # it is not of this turn
    "too large",
]

REMEDIES: dict[Problem, str] = {
    "missing": "End your reply with one JSON object that fits the schema.",
    "cut off": "Send the whole object again, shorter if it was too long.",
    "malformed": "Send it again as plain JSON: double quotes, no comments, no trailing commas, "
    "quotes and line breaks inside strings escaped.",
    "misfit": "Send the whole object again with these fields corrected.",
    "ambiguous": "Send only the one that counts, once.",
    "misplaced": "Send the object alone, on lines of its own, at the end of the reply.",
    "trailing": "Write everything else first and put the object at the very end.",
    "thinking": "Send the object after your thinking, at the end of the reply.",
    "nonce": "Send the object again with the nonce of this turn, as the instructions say.",
    "too large": "Send less: put long text into a file and name its path.",
}


MAX_LINE_CHARACTERS = 2000
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class NotAnAnswer(ReplyInvalid):
    """A reply, or a part of it, that is not taken for the answer. `problem` says in a word why."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(f"{on_one_line(message)}. {REMEDIES[problem]}")
        self.problem = problem


def on_one_line(text: str, most: int = MAX_LINE_CHARACTERS) -> str:
    """Words that may hold an agent's own, made so that they cannot pass for lines of a prompt."""
    line = text[:most]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " for char in line)
    return line if len(text) <= most else f"{line}…"


def excerpt(text: str, most: int = 300) -> str:
    """The end of a text, cut short, fit for a prompt and for any encoding."""
    end = _CONTROLS.sub(" ", text[-most:]).encode("utf-8", "backslashreplace").decode()
    return end if len(text) <= most else f"[… {len(text) - most} characters before] {end}"


M = TypeVar("M", bound=BaseModel)

NONCE_KEY = "podium_nonce"
"""The key beside the contract's own that shows an object to be of this turn."""

MAX_VALUES = 50_000
MAX_OBJECTS = 5_000
"""In one answer, however deep."""


class ExpectedObject(Generic[M]):
    """A contract, and the nonce that the object must carry when there is one."""

    def __init__(self, model: type[M], nonce: str | None = None) -> None:
        self.model = model
        self.nonce = nonce
        self.keys = contract_keys(model)
        self._choices = {name: _choices(field) for name, field in model.model_fields.items()}
        keys = _one_of({*self.keys, NONCE_KEY})
        self._mention = re.compile(rf"(?<!\w){keys}(?!\w)")
        self._beginning = re.compile(rf"""(?<!\w){keys}["'”’]?\s{{0,8}}:""")
        choices = set().union(*self._choices.values())
        self.names = re.compile(rf"(?<!\w){_one_of({*self.keys, *choices, NONCE_KEY})}(?!\w)")
        """Keys of the contract and the choices it gives: what a comment in an object must not speak of."""

    def is_mentioned_in(self, source: str) -> bool:
        """Return whether a key of the contract stands anywhere in this text."""
        return not self.keys or self._mention.search(source) is not None

    def is_begun_in(self, source: str) -> bool:
        """Return whether a key of the contract stands in this text as in an object, before a colon."""
        return self._beginning.search(source) is not None

    def is_answered_otherwise_in(self, text: str, payload: M) -> bool:
        """Return whether a line names a field and another of its choices than the payload's: "the verdict is FAIL"."""
        for name, choices in self._choices.items():
            others = choices - {str(_plain(getattr(payload, name)))}
            if not others:
                continue
            field = re.compile(
                rf"(?<![^\W_]){_one_of({name, *field_keys(self.model, name)})}(?![^\W_])",
                re.IGNORECASE,
            )
            choice = re.compile(rf"(?<!\w){_one_of(others)}(?!\w)", re.IGNORECASE)
            if any(field.search(line) and choice.search(line) for line in text.splitlines()):
                return True
        return False

    def fit(self, value: Mapping[str, Json], *, mended: bool = False) -> M:
        """The value as the contract has it. Raises `NotAnAnswer` when it does not fit.

        A mended value must fit to the letter: no coercion, no keys the contract does not know.
        """
        self._check_nonce(value)
        fields = {
            key: member for key, member in value.items() if key != NONCE_KEY or not self.nonce
        }
        self._check_keys(fields, mended=mended)
        return validated(self.model, fields, strict=mended or None)

    @cached_property
    def _schema(self) -> dict[str, Json]:
        return self.model.model_json_schema()

    def _check_nonce(self, value: Mapping[str, Json]) -> None:
        if self.nonce is None or value.get(NONCE_KEY) == self.nonce:
            return
        if NONCE_KEY in value:
            raise NotAnAnswer("nonce", f"The last JSON object's {NONCE_KEY!r} is not this turn's")
        raise NotAnAnswer("nonce", f"The last JSON object has no {NONCE_KEY!r}")

    def _check_keys(self, fields: Mapping[str, Json], *, mended: bool) -> None:
        names_properties = (
            isinstance(fields.get("properties"), dict) and "properties" not in self.keys
        )
        if (self.keys and names_properties) or ("title" in fields and fields == self._schema):
            raise NotAnAnswer("misfit", "The last JSON object is the schema and not an answer")
        if not self.keys:
            return
        if fields or not self.nonce:
            check_any_key(self.keys, fields)
        unknown = [key for key in fields if key not in self.keys]
        if mended and unknown and self.model.model_config.get("extra") != "allow":
            raise NotAnAnswer(
                "malformed",
                f"The last JSON object is not valid JSON, and after repair it has the unknown key {unknown[0][:80]!r}",
            )


def check_any_key(keys: Collection[str], fields: Mapping[str, Json]) -> None:
    """Raise `NotAnAnswer` for an object about something else, that a contract without required keys would take."""
    if keys and not any(key in fields for key in keys):
        names = ", ".join(sorted(keys))
        raise NotAnAnswer("misfit", f"The last JSON object has none of the keys {names}")


def validated(model: type[M], value: Json, *, strict: bool | None = None) -> M:
    """The value as this model. Raises `NotAnAnswer` that names each field and what is wrong with it."""
    _check_amount(value)
    # As JSON, where even the strict mode lets text stand for dates and names of choices.
    source = json.dumps(value, allow_nan=False)
    try:
        return model.model_validate_json(source, strict=strict)
    except ValidationError as error:
        raise NotAnAnswer("misfit", misfit(error)) from None
    except Exception as error:  # a validator of the contract may raise anything
        raise NotAnAnswer(
            "misfit", f"The contract's own check of the JSON object failed ({type(error).__name__})"
        ) from error


def _check_amount(value: Json) -> None:
    """pydantic keeps a kilobyte for each thing that is wrong: a megabyte of `{}` would cost gigabytes."""
    level: list[Json] = [value]
    values = objects = 0
    while level:
        values += len(level)
        objects += sum(isinstance(item, dict) for item in level)
        if values > MAX_VALUES or objects > MAX_OBJECTS:
            raise NotAnAnswer(
                "too large",
                f"The last JSON object has more than {MAX_VALUES} values or {MAX_OBJECTS} objects",
            )
        level = [inner for item in level for inner in _inner(item)]


def _inner(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def contract_keys(model: type[BaseModel]) -> frozenset[str]:
    """The keys its objects have. None when it takes any."""
    if issubclass(model, RootModel):
        return frozenset()
    return frozenset[str]().union(*(field_keys(model, name) for name in model.model_fields))


def field_keys(model: type[BaseModel], name: str) -> frozenset[str]:
    """The keys a field of a model is read from."""
    field = model.model_fields[name]
    alias = field.validation_alias or field.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    aliases = frozenset(choice for choice in choices if isinstance(choice, str))
    by_name = any(
        model.model_config.get(option) for option in ("populate_by_name", "validate_by_name")
    )
    return aliases | {name} if by_name or not aliases else aliases


def _choices(field: FieldInfo) -> set[str]:
    """The texts a field may be, when it may be nothing else."""
    texts: set[str] = set()
    kinds: list[object] = [field.annotation]
    while kinds:
        kind = kinds.pop()
        if get_origin(kind) is Literal:
            texts |= {str(_plain(choice)) for choice in get_args(kind)}
        elif get_origin(kind) in (Union, UnionType, Annotated):
            kinds += get_args(kind)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            texts |= {str(member.value) for member in kind}
    return {text for text in texts if len(text) > 1}


def _plain(choice: object) -> object:
    return choice.value if isinstance(choice, Enum) else choice


def _one_of(names: set[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(names)))})"


def check_contract(contract: type[BaseModel]) -> None:
    """Raise `BadInput` for a contract that no JSON object fits, or whose answers could not be kept."""
    try:
        schema = contract.model_json_schema()
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        reason = str(error).splitlines()[0]
        raise _unusable(contract, f"it has no JSON Schema ({reason})") from None
    if schema.get("type", "object") != "object":
        raise _unusable(contract, "it is not a JSON object; put the value under a key")
    if _asks_for_secrets(schema):
        raise _unusable(contract, "it asks for a secret, and answers are stored")
    for name, field in contract.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        if all(isinstance(choice, AliasPath) for choice in choices):
            raise _unusable(
                contract, f"{name!r} has only an alias path, which a JSON Schema cannot express"
            )
        if not {field.serialization_alias or name, name} & field_keys(contract, name):
            raise _unusable(
                contract, f"{name!r} is written under a different alias than it is read from"
            )


def stored_form(payload: BaseModel) -> Json:
    """The payload as JSON that its contract reads again. `BadInput` where it writes what it cannot read."""
    for by_alias in (True, False):
        # `ask_once` leaves out what is computed from other fields.
        stored = payload.model_dump(mode="json", by_alias=by_alias, round_trip=True)
        if _is_read_again(type(payload), stored, by_alias=by_alias):
            return stored
    raise _unusable(type(payload), "the JSON that it writes is not valid for it; check its aliases")


def _is_read_again(contract: type[BaseModel], stored: Json, *, by_alias: bool) -> bool:
    try:
        again = contract.model_validate(stored)
    except Exception:  # a validator of the contract may raise anything
        return False
    return bool(again.model_dump(mode="json", by_alias=by_alias, round_trip=True) == stored)


def _asks_for_secrets(schema: Json) -> bool:
    if isinstance(schema, dict):
        hidden = schema.get("format") == "password" and schema.get("writeOnly") is True
        return hidden or any(map(_asks_for_secrets, schema.values()))
    return isinstance(schema, list) and any(map(_asks_for_secrets, schema))


def _unusable(contract: type[BaseModel], reason: str) -> BadInput:
    return BadInput(f"The contract {contract.__name__} cannot be used: {reason}.")
