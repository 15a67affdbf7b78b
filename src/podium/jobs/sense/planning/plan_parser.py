"""Parser from a planner's document to candidates. Never raises; an item is checked and cleaned, or skipped with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from podium.core.decisions import digest_of
from podium.core.model import Json
from podium.jobs.sense.models import Candidate, ParsedPlan, PlanItem, SkippedItem, Suggestion
from podium.jobs.sense.orders.work_order import MAX_OPS, ORDER_ID, Operation
from podium.jobs.sense.planning.bundle import clean_line, clean_text, cut, id_part, is_clean_line
from podium.jobs.sense.planning.plan_schema import (
    ACTIONS,
    IDLE_TYPES,
    MAX_ITEMS,
    MAX_SUMMARY,
    MAX_TARGET,
    MAX_TASK,
    MAX_TASKS,
    MAX_TITLE,
    MESSAGE_KEYS,
    PRIORITIES,
    TYPES,
    Broken,
    read_document,
)
from podium.platform.invisible_text import written_out

_CLOSED = {"type": TYPES, "priority": PRIORITIES, "action": ACTIONS}
_ONE_LINE_FIELDS = ("path", "to", "session", "tool")


class Misfit(ValueError):
    """This item is not used. Its words say why."""


def read_item(index: int, data: Json) -> PlanItem:
    """The item as a noun. Raises `Misfit` with the first thing that is wrong with it."""
    if not isinstance(data, dict):
        raise Misfit(f"the item must be an object, not {_preview(data)}")
    fields: dict[str, Any] = {name: _one_of(data, name, values) for name, values in _CLOSED.items()}
    target = _target(data)
    suggestion = _suggestion_of(fields["action"], target, data.get("wo_suggestion"))
    return PlanItem(
        index=index, target=target, message=_message(data), wo_suggestion=suggestion, **fields
    )


def _message(data: Mapping[str, Json]) -> str:
    """The item's own words. Planners have many names for them, and what they wanted to say must not be lost."""
    texts = (data.get(name) for name in MESSAGE_KEYS)
    message = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return cut(clean_line(message[: MAX_SUMMARY * 2]), MAX_SUMMARY)


def _suggestion_of(action: str, target: str, suggestion: Json) -> Suggestion | None:
    if action == "create_wo":
        return _suggestion(_mapping(suggestion))
    # Planners write null or {} where they suggest nothing.
    return (
        _informal_suggestion(target, _mapping(suggestion)) if suggestion not in (None, {}) else None
    )


def _one_of(data: Mapping[str, Json], name: str, values: Sequence[str]) -> str:
    if name not in data:
        raise Misfit(f"{name} is missing; write one of {', '.join(values)}")
    value = data[name]
    if not isinstance(value, str) or value not in values:
        raise Misfit(f"unknown {name} {_preview(value)}; known: {', '.join(values)}")
    return value


def _target(data: Mapping[str, Json]) -> str:
    if "target" not in data:
        raise Misfit("target is missing; name what the item is about")
    target = _text(data, "target", MAX_TARGET).strip()
    if not target:
        raise Misfit("target is empty; name what the item is about")
    if not is_clean_line(target):
        # Trust is kept by target: two that look alike must not be two.
        raise Misfit(f"target {_preview(target)} contains invisible characters")
    return clean_line(target)


def _suggestion(suggestion: Mapping[str, Json]) -> Suggestion:
    """Read the suggestion of a work order."""
    for name in ("wo_id_hint", "title"):
        if name not in suggestion:
            raise Misfit(f"wo_suggestion.{name} is missing")
    title = clean_line(_text(suggestion, "title", MAX_TITLE))
    if not title:
        raise Misfit("wo_suggestion.title is empty; say what the work order is for")
    return Suggestion(
        wo_id_hint=_hint(suggestion),
        title=title,
        summary=clean_text(_text(suggestion, "summary", MAX_SUMMARY)),
        tasks=_tasks(suggestion.get("tasks")),
        ops=_ops(suggestion.get("ops")),
    )


def _informal_suggestion(target: str, suggestion: Mapping[str, Json]) -> Suggestion:
    """Read a suggestion that makes no work order: only its text counts, so hint and title may be missing."""
    fields = dict(suggestion)
    summary = cut(clean_line(_text(suggestion, "summary", MAX_SUMMARY)), MAX_TITLE)
    fields.setdefault("wo_id_hint", id_part(target))
    fields.setdefault("title", summary or target)
    return _suggestion(fields)


def _hint(suggestion: Mapping[str, Json]) -> str:
    hint = suggestion["wo_id_hint"]
    if not isinstance(hint, str) or not ORDER_ID.fullmatch(hint):
        raise Misfit(
            f"wo_suggestion.wo_id_hint {_preview(hint)} cannot be an id; use at most 100 letters, digits, "
            "`-` and `_`, starting with a letter or digit"
        )
    if not hint.upper().removeprefix("WO-").strip("-_"):
        raise Misfit(
            f"wo_suggestion.wo_id_hint {_preview(hint)} names nothing; name what the work order is about"
        )
    # Ids are upper case, and two hints that differ in case only are one subject.
    return hint.upper()


def _tasks(tasks: Json) -> tuple[str, ...]:
    if tasks is None:
        return ()
    if not isinstance(tasks, list):
        raise Misfit(f"wo_suggestion.tasks must be a list of texts, not {_preview(tasks)}")
    if len(tasks) > MAX_TASKS:
        raise Misfit(f"wo_suggestion.tasks has {len(tasks)} tasks; at most {MAX_TASKS}")
    by_name = {f"tasks[{number}]": task for number, task in enumerate(tasks)}
    for name, task in by_name.items():
        if not isinstance(task, str):
            raise Misfit(f"wo_suggestion.{name} must be text, not {_preview(task)}")
    cleaned = (clean_text(_text(by_name, name, MAX_TASK)) for name in by_name)
    return tuple(task for task in cleaned if task)


def _ops(ops: Json) -> tuple[Operation, ...]:
    if ops is None:
        return ()
    if not isinstance(ops, list):
        raise Misfit(f"wo_suggestion.ops must be a list of operations, not {_preview(ops)}")
    if len(ops) > MAX_OPS:
        raise Misfit(f"wo_suggestion.ops has {len(ops)} operations; at most {MAX_OPS}")
    return tuple(_operation(number, op) for number, op in enumerate(ops))


def _operation(number: int, data: Json) -> Operation:
    try:
        _check_texts(data)
        op = Operation.model_validate(data)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        path = "".join(f".{_name(part)}" for part in detail["loc"])
        message = str(detail["msg"]).removeprefix("Value error, ")
        raise Misfit(f"wo_suggestion.ops[{number}]{path}: {message}") from None
    except Misfit as misfit:
        raise Misfit(f"wo_suggestion.ops[{number}]: {misfit}") from None
    return op


def _check_texts(data: Json) -> None:
    """Raise for what no file could hold, and for names in which something cannot be seen."""
    if not isinstance(data, dict):
        raise Misfit(f"an operation is an object with `op`, not {_preview(data)}")
    inside: list[Json] = [data]
    while inside:
        value = inside.pop()
        if isinstance(value, dict):
            inside += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            inside += value
        elif isinstance(value, str) and _is_damaged(value):
            raise Misfit("a text contains a NUL or half of a surrogate pair")
    for name in _ONE_LINE_FIELDS:
        value = data.get(name)
        if isinstance(value, str) and not is_clean_line(value):
            raise Misfit(f"{name} {_preview(value)} contains invisible characters")


def _is_damaged(text: str) -> bool:
    return "\0" in text or any("\ud800" <= char <= "\udfff" for char in text)


def _mapping(value: Json) -> Mapping[str, Json]:
    if isinstance(value, dict):
        return value
    if value is None:
        raise Misfit("wo_suggestion is missing; action create_wo needs one")
    raise Misfit(f"wo_suggestion must be an object, not {_preview(value)}")


def _text(data: Mapping[str, Json], name: str, longest: int) -> str:
    """The text as it is, once it is known to be one of fitting length. Not given: empty."""
    value = data.get(name)
    where = name if name == "target" else f"wo_suggestion.{name}"
    if value is None and name not in ("target", "title"):
        return ""
    if not isinstance(value, str):
        raise Misfit(f"{where} must be text, not {_preview(value)}")
    if len(value) > longest:
        raise Misfit(f"{where} has {len(value):,} characters; at most {longest:,}")
    return value


def _name(part: str | int) -> str:
    return clean_line(str(part))[:40]


def _preview(value: Json) -> str:
    """The value in a few characters, all of which can be seen."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value[:80] if isinstance(value, str) else value)
    return cut(written_out(text), 60)


_MAX_ID = 100
_DIGITS = 8


def parse_plan(document: str | bytes | Json, *, salt: str = "") -> ParsedPlan:
    """The plan as far as it can be used. `salt` sets work orders of equal items of two plans apart.

    Text and bytes are read as JSON; anything else is taken for a document that was read before.
    """
    try:
        plan = read_document(document)
        head = {name: _head(plan, name) for name in ("timestamp", "source", "context_summary")}
    except Broken as error:
        return ParsedPlan(error=str(error))
    taken = _Taken(salt)
    for index, item in enumerate(plan["items"][:MAX_ITEMS]):
        taken.take(index, item)
    return ParsedPlan(
        **head,
        items=tuple(taken.items),
        candidates=tuple(taken.candidates),
        skipped_items=(*taken.skipped, *_beyond(plan["items"])),
    )


def _head(plan: Mapping[str, Json], name: str) -> str:
    value = plan.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Broken(f"{name!r} must be text, not {type(value).__name__}; fix the plan")
    if name == "context_summary":
        return cut(clean_text(value[: MAX_SUMMARY * 2]), MAX_SUMMARY)
    return cut(clean_line(value[: MAX_TITLE * 2]), MAX_TITLE)


def _beyond(items: Sequence[Json]) -> Iterator[SkippedItem]:
    more = len(items) - MAX_ITEMS
    if more > 0:
        reason = f"the plan has {len(items)} items, but at most {MAX_ITEMS} are read; the last {more} are skipped"  # fmt: skip
        yield SkippedItem(index=MAX_ITEMS, reason=reason)


@dataclass
class _Taken:
    """Results of the items read so far."""

    salt: str
    items: list[PlanItem] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    skipped: list[SkippedItem] = field(default_factory=list)
    first_index: dict[str, int] = field(default_factory=dict)
    """Identity of an item → index of the first one that has it."""

    def take(self, index: int, data: Json) -> None:
        title = _title_of(data)
        try:
            item = read_item(index, data)
            self._once(item)
        except Misfit as misfit:
            self.skipped.append(SkippedItem(index=index, reason=str(misfit), title=title))
            return
        self.items.append(item)
        if reason := _why_no_order(item):
            self.skipped.append(SkippedItem(index=index, reason=reason, title=title))
        else:
            self.candidates.append(Candidate(wo_id=order_id(item, self.salt), item=item))

    def _once(self, item: PlanItem) -> None:
        key = identity(item)
        first = self.first_index.setdefault(key, item.index)
        if first != item.index:
            raise Misfit(f"duplicate of item {first}, which proposes the same for {item.target!r}")


def identity(item: PlanItem) -> str:
    """Return a digest that is equal for items with one target and hint: at most one order is made of them."""
    if item.action == "create_wo" and item.wo_suggestion:
        return digest_of([item.target.casefold(), item.wo_suggestion.wo_id_hint])
    return digest_of(item.model_dump(mode="json", exclude={"index"}))


def _why_no_order(item: PlanItem) -> str:
    """Return the reason why an item that fits the schema gives no candidate; empty if it does."""
    if item.action == "alert":
        return "action alert: notifies people, nothing to create"
    if item.action != "create_wo":
        return f"action {item.action}: nothing to create"
    if item.type in IDLE_TYPES:
        return f"type {item.type}: nothing to do, so nothing to create"
    return ""


def order_id(item: PlanItem, salt: str = "") -> str:
    """`WO-<HINT>-<8 hex>`: readable, fit for a file name, another one for each other item or salt."""
    hint = item.wo_suggestion.wo_id_hint if item.wo_suggestion else item.type
    content = item.model_dump(mode="json", exclude={"index", "message"})
    digest = digest_of([content, salt]).removeprefix("sha256:")[:_DIGITS]
    length = _MAX_ID - len("WO-") - len("-") - _DIGITS
    return f"WO-{hint.upper().removeprefix('WO-')[:length].strip('-_')}-{digest}"


def _title_of(data: Json) -> str:
    """The title of an item of any shape, as far as it has one."""
    suggestion = data.get("wo_suggestion") if isinstance(data, dict) else None
    title = suggestion.get("title") if isinstance(suggestion, dict) else None
    return cut(clean_line(title[: MAX_TITLE * 2]), MAX_TITLE) if isinstance(title, str) else ""  # fmt: skip
