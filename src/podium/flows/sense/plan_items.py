"""One item of a plan: every field checked and cleaned, or the reason why it is not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from podium.domain.model import Json
from podium.domain.orders import MOST_OPS, ORDER_ID, Operation
from podium.domain.seeing import written_out
from podium.domain.sensing import PlanItem, Suggestion
from podium.flows.sense.cleaning import clean_line, clean_text, cut, id_part, is_clean_line
from podium.flows.sense.plan_schema import (
    ACTIONS,
    LONGEST_SUMMARY,
    LONGEST_TARGET,
    LONGEST_TASK,
    LONGEST_TITLE,
    MESSAGE_KEYS,
    MOST_TASKS,
    PRIORITIES,
    TYPES,
)

_CLOSED = {"type": TYPES, "priority": PRIORITIES, "action": ACTIONS}
_ONE_LINE_FIELDS = ("path", "to", "session", "tool")


class Misfit(ValueError):
    """This item is not used. Its words say why."""


def read_item(index: int, data: Json) -> PlanItem:
    """The item as a noun. Raises `Misfit` with the first thing that is wrong with it."""
    if not isinstance(data, dict):
        raise Misfit(f"the item is no object but {_shown(data)}")
    known: dict[str, Any] = {name: _one_of(data, name, values) for name, values in _CLOSED.items()}
    target = _target(data)
    suggestion = _said(known["action"], target, data.get("wo_suggestion"))
    return PlanItem(
        index=index, target=target, message=_message(data), wo_suggestion=suggestion, **known
    )


def _message(data: Mapping[str, Json]) -> str:
    """The item's own words. Planners have many names for them, and what they wanted to say must not be lost."""
    given = (data.get(name) for name in MESSAGE_KEYS)
    words = next((each for each in given if isinstance(each, str) and each.strip()), "")
    return cut(clean_line(words[: LONGEST_SUMMARY * 2]), LONGEST_SUMMARY)


def _said(action: str, target: str, said: Json) -> Suggestion | None:
    if action == "create_wo":
        return _suggestion(_mapping(said))
    # Planners write null or {} where they suggest nothing.
    return _words(target, _mapping(said)) if said not in (None, {}) else None


def _one_of(data: Mapping[str, Json], name: str, values: Sequence[str]) -> str:
    if name not in data:
        raise Misfit(f"{name} is missing; write one of {', '.join(values)}")
    value = data[name]
    if not isinstance(value, str) or value not in values:
        raise Misfit(f"unknown {name} {_shown(value)}; known: {', '.join(values)}")
    return value


def _target(data: Mapping[str, Json]) -> str:
    if "target" not in data:
        raise Misfit("target is missing; name what the item is about")
    target = _text(data, "target", LONGEST_TARGET).strip()
    if not target:
        raise Misfit("target is empty; name what the item is about")
    if not is_clean_line(target):
        # Trust is kept by target: two that look alike must not be two.
        raise Misfit(f"target {_shown(target)} holds characters that cannot be seen")
    return clean_line(target)


def _suggestion(said: Mapping[str, Json]) -> Suggestion:
    """What a work order is made of."""
    for name in ("wo_id_hint", "title"):
        if name not in said:
            raise Misfit(f"wo_suggestion.{name} is missing")
    title = clean_line(_text(said, "title", LONGEST_TITLE))
    if not title:
        raise Misfit("wo_suggestion.title is empty; say what the work order is for")
    return Suggestion(
        wo_id_hint=_hint(said),
        title=title,
        summary=clean_text(_text(said, "summary", LONGEST_SUMMARY)),
        tasks=_tasks(said.get("tasks")),
        ops=_ops(said.get("ops")),
    )


def _words(target: str, said: Mapping[str, Json]) -> Suggestion:
    """What an item says that makes no work order: its words alone count, so hint and title may be missing."""
    given = dict(said)
    summary = cut(clean_line(_text(said, "summary", LONGEST_SUMMARY)), LONGEST_TITLE)
    given.setdefault("wo_id_hint", id_part(target))
    given.setdefault("title", summary or target)
    return _suggestion(given)


def _hint(said: Mapping[str, Json]) -> str:
    hint = said["wo_id_hint"]
    if not isinstance(hint, str) or not ORDER_ID.fullmatch(hint):
        raise Misfit(
            f"wo_suggestion.wo_id_hint {_shown(hint)} makes no id; use letters, digits, `-` and `_`, "
            "a letter or digit first, at most 100"
        )
    if not hint.upper().removeprefix("WO-").strip("-_"):
        raise Misfit(f"wo_suggestion.wo_id_hint {_shown(hint)} says nothing; name what it is about")
    # Ids are upper case, and two hints that differ in case only are one subject.
    return hint.upper()


def _tasks(tasks: Json) -> tuple[str, ...]:
    if tasks is None:
        return ()
    if not isinstance(tasks, list):
        raise Misfit(f"wo_suggestion.tasks must be a list of texts, not {_shown(tasks)}")
    if len(tasks) > MOST_TASKS:
        raise Misfit(f"wo_suggestion.tasks has {len(tasks)} tasks; at most {MOST_TASKS}")
    by_name = {f"tasks[{number}]": task for number, task in enumerate(tasks)}
    for name, task in by_name.items():
        if not isinstance(task, str):
            raise Misfit(f"wo_suggestion.{name} must be text, not {_shown(task)}")
    cleaned = (clean_text(_text(by_name, name, LONGEST_TASK)) for name in by_name)
    return tuple(task for task in cleaned if task)


def _ops(ops: Json) -> tuple[Operation, ...]:
    if ops is None:
        return ()
    if not isinstance(ops, list):
        raise Misfit(f"wo_suggestion.ops must be a list of operations, not {_shown(ops)}")
    if len(ops) > MOST_OPS:
        raise Misfit(f"wo_suggestion.ops has {len(ops)} operations; at most {MOST_OPS}")
    return tuple(_operation(number, op) for number, op in enumerate(ops))


def _operation(number: int, data: Json) -> Operation:
    try:
        _check_texts(data)
        op = Operation.model_validate(data)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f".{_name(part)}" for part in detail["loc"])
        words = str(detail["msg"]).removeprefix("Value error, ")
        raise Misfit(f"wo_suggestion.ops[{number}]{place}: {words}") from None
    except Misfit as misfit:
        raise Misfit(f"wo_suggestion.ops[{number}]: {misfit}") from None
    return op


def _check_texts(data: Json) -> None:
    """Raise for what no file could hold, and for names in which something cannot be seen."""
    if not isinstance(data, dict):
        raise Misfit(f"an operation is an object with `op`, not {_shown(data)}")
    inside: list[Json] = [data]
    while inside:
        value = inside.pop()
        if isinstance(value, dict):
            inside += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            inside += value
        elif isinstance(value, str) and _is_damaged(value):
            raise Misfit("a text holds a NUL or half of a surrogate pair")
    for name in _ONE_LINE_FIELDS:
        value = data.get(name)
        if isinstance(value, str) and not is_clean_line(value):
            raise Misfit(f"{name} {_shown(value)} holds characters that cannot be seen")


def _is_damaged(text: str) -> bool:
    return "\0" in text or any("\ud800" <= char <= "\udfff" for char in text)


def _mapping(value: Json) -> Mapping[str, Json]:
    if isinstance(value, dict):
        return value
    if value is None:
        raise Misfit("wo_suggestion is missing; action create_wo needs one")
    raise Misfit(f"wo_suggestion must be an object, not {_shown(value)}")


def _text(data: Mapping[str, Json], name: str, longest: int) -> str:
    """The text as it is, once it is known to be one of fitting length. Not given: empty."""
    value = data.get(name)
    where = name if name == "target" else f"wo_suggestion.{name}"
    if value is None and name not in ("target", "title"):
        return ""
    if not isinstance(value, str):
        raise Misfit(f"{where} must be text, not {_shown(value)}")
    if len(value) > longest:
        raise Misfit(f"{where} has {len(value):,} characters; at most {longest:,}")
    return value


def _name(part: str | int) -> str:
    return clean_line(str(part))[:40]


def _shown(value: Json) -> str:
    """The value in a few characters, all of which can be seen."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    shown = repr(value[:80] if isinstance(value, str) else value)
    return cut(written_out(shown), 60)
