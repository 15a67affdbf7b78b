"""A planner's document becomes candidates. Whatever it is, this raises nothing and nothing bad gets through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from podium.domain.gating import digest_of
from podium.domain.model import Json
from podium.domain.sensing import Candidate, ParsedPlan, PlanItem, SkippedItem
from podium.flows.sense.cleaning import clean_line, clean_text, cut
from podium.flows.sense.plan_document import Broken, read_document
from podium.flows.sense.plan_items import Misfit, read_item
from podium.flows.sense.plan_schema import (
    IDLE_TYPES,
    LONGEST_SUMMARY,
    LONGEST_TITLE,
    MOST_ITEMS,
)

_LONGEST_ID = 100
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
    for index, item in enumerate(plan["items"][:MOST_ITEMS]):
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
        raise Broken(f"{name!r} must be text, not {type(value).__name__}; mend the plan")
    if name == "context_summary":
        return cut(clean_text(value[: LONGEST_SUMMARY * 2]), LONGEST_SUMMARY)
    return cut(clean_line(value[: LONGEST_TITLE * 2]), LONGEST_TITLE)


def _beyond(items: Sequence[Json]) -> Iterator[SkippedItem]:
    more = len(items) - MOST_ITEMS
    if more > 0:
        reason = f"the plan has {len(items)} items and at most {MOST_ITEMS} are read: the last {more} are left out"  # fmt: skip
        yield SkippedItem(index=MOST_ITEMS, reason=reason)


@dataclass
class _Taken:
    """What has come of the items so far."""

    salt: str
    items: list[PlanItem] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    skipped: list[SkippedItem] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    """What two equal items have in common → the first of them."""

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
        first = self.seen.setdefault(key, item.index)
        if first != item.index:
            raise Misfit(f"duplicate: item {first} says the same of {item.target!r}")


def identity(item: PlanItem) -> str:
    """At most one order is made for one target and hint, whatever its words."""
    if item.action == "create_wo" and item.wo_suggestion:
        return digest_of([item.target.casefold(), item.wo_suggestion.wo_id_hint])
    return digest_of(item.model_dump(mode="json", exclude={"index"}))


def _why_no_order(item: PlanItem) -> str:
    """Why an item that fits the schema gives no candidate; empty when it does."""
    if item.action == "alert":
        return "action alert: people are told, nothing to create"
    if item.action != "create_wo":
        return f"action {item.action}: nothing to create"
    if item.type in IDLE_TYPES:
        return f"type {item.type}: nothing to do, so nothing to create"
    return ""


def order_id(item: PlanItem, salt: str = "") -> str:
    """`WO-<HINT>-<8 hex>`: readable, fit for a file name, another one for each other item or salt."""
    hint = item.wo_suggestion.wo_id_hint if item.wo_suggestion else item.type
    said = item.model_dump(mode="json", exclude={"index", "message"})
    digest = digest_of([said, salt]).removeprefix("sha256:")[:_DIGITS]
    room = _LONGEST_ID - len("WO-") - len("-") - _DIGITS
    return f"WO-{hint.upper().removeprefix('WO-')[:room].strip('-_')}-{digest}"


def _title_of(data: Json) -> str:
    """The title of an item of any shape, as far as it has one."""
    said = data.get("wo_suggestion") if isinstance(data, dict) else None
    title = said.get("title") if isinstance(said, dict) else None
    return cut(clean_line(title[: LONGEST_TITLE * 2]), LONGEST_TITLE) if isinstance(title, str) else ""  # fmt: skip
