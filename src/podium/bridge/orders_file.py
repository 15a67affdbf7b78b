"""The file of a work order: its bytes as an order, or as sentences about what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from podium.bridge.plain_yaml import NotPlain, parse_plain
from podium.domain.model import Json
from podium.domain.orders import OpenedOrder, Operation, WorkOrder

ORDER_LIMIT_BYTES = 1_000_000
_MOST_FAULTS = 10
_LONGEST_FAULT = 300
_LONGEST_NAME = 40


def read_order(content: bytes) -> OpenedOrder:
    """What the bytes hold. Whatever is wrong is said in `fault`, each thing with its key."""
    if len(content) > ORDER_LIMIT_BYTES:
        return _faulty(f"the file is larger than {ORDER_LIMIT_BYTES // 1000} kB; orders are small")
    try:
        data = parse_plain(content)
    except NotPlain as fault:
        return _faulty(str(fault))
    if not isinstance(data, dict):
        return _faulty("the file must be a mapping with `id`, `title` and `ops` or `tasks`")
    return _validated(data)


def is_half_written(content: bytes) -> bool:
    """Whether it is what somebody may still be writing: nothing, or nothing that is a mapping."""
    if len(content) > ORDER_LIMIT_BYTES:
        return False
    try:
        return not isinstance(parse_plain(content), dict)
    except NotPlain:
        return True


def _validated(data: dict[str, Json]) -> OpenedOrder:
    try:
        order = WorkOrder.model_validate(data)
    except ValidationError as error:
        faulty = _faulty(*_sentences(error.errors(include_url=False), data))
        return faulty.model_copy(update={"order": _addressed(data)})
    return OpenedOrder(order=order)


def _addressed(data: dict[str, Json]) -> WorkOrder | None:
    """No more of a faulty order than whom to answer: its id, and its title if it has one."""
    wo_id, title = data.get("id"), data.get("title")
    for known in ({"id": wo_id, "title": title}, {"id": wo_id, "title": wo_id}):
        try:
            return WorkOrder.model_validate(known)
        except ValidationError:
            continue
    return None


def _faulty(*sentences: str) -> OpenedOrder:
    shown = list(dict.fromkeys(sentences))
    if len(shown) > _MOST_FAULTS:
        more = len(shown) - _MOST_FAULTS
        shown = [*shown[:_MOST_FAULTS], f"{more} more"]
    return OpenedOrder(fault="; ".join(each[:_LONGEST_FAULT] for each in shown))


def _sentences(errors: Sequence[ErrorDetails], data: Json) -> list[str]:
    return [f"{_key(each, data)}: {_words(each)}" for each in errors]


def _key(error: ErrorDetails, data: Json) -> str:
    """Where in the file it is. Validators of a choice add names to the way that the file does not have."""
    way: list[str] = []
    for part in error["loc"]:
        if isinstance(data, dict):
            data = data.get(str(part))
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
        else:
            continue
        way.append(str(part))
    return ".".join(way)


def _words(error: ErrorDetails) -> str:
    match error["type"]:
        case "extra_forbidden":
            return f"there is no such key{_meant(error['loc'])}"
        case "missing":
            return "is missing"
        case "string_type":
            return "must be text; put quotes around it"
        case "tuple_type":
            return "must be a list"
        case "literal_error":
            given = str(error["input"])[:_LONGEST_NAME]
            return f"{given!r} is not known; {_message(error)}"
        case "value_error":
            return error["msg"].removeprefix("Value error, ")
        case _:
            return _message(error)


def _message(error: ErrorDetails) -> str:
    return error["msg"][:1].lower() + error["msg"][1:]


def _meant(way: tuple[str | int, ...]) -> str:
    known = list(Operation.model_fields if way[0] == "ops" else WorkOrder.model_fields)
    close = difflib.get_close_matches(str(way[-1])[:80], known, n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; known keys: {', '.join(known)}"
