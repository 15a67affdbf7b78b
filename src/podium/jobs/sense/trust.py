"""Earned autonomy: what autonomous would have done, what people said, and what may follow."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import model_validator

from podium.core.decisions import Tier
from podium.core.model import FrozenModel, NonEmpty, UtcDatetime
from podium.jobs.sense.orders.work_order import TierName

EntryKind = Literal["agreed", "disagreed", "incident", "promoted", "demoted"]


class TrustEntry(FrozenModel):
    """One line of the book."""

    kind: EntryKind
    target: NonEmpty
    zone: NonEmpty
    tier: TierName = Tier.T1
    """agreed, disagreed: of the order. promoted: up to which orders are delivered unasked."""
    wo_id: str = ""
    by: str = ""
    why: str = ""
    at: UtcDatetime

    @property
    def key(self) -> str:
        """What makes an entry the same as another one: a person's word about one order counts once."""
        about = self.wo_id or self.at.isoformat()
        return json.dumps([self.kind, self.target, self.zone, about], ensure_ascii=False)

    @model_validator(mode="after")
    def _is_somebodys_word(self) -> TrustEntry:
        if self.kind == "promoted" and not self.by.strip():
            raise ValueError("a promotion is a person's word; say in `by` whose")
        return self


class Standing(FrozenModel):
    """How far one target in one zone has come."""

    target: str
    zone: str
    agreed: int = 0
    """In a row, since the last disagreement, incident or promotion."""
    disagreed: int = 0
    incidents: int = 0
    highest_agreed: TierName = Tier.T0
    """The highest tier of an order that people said yes to in this row."""
    granted: TierName | None = None
    """Orders up to this tier are delivered unasked in autonomous mode. None: none are."""
    granted_by: str = ""
    granted_at: UtcDatetime | None = None
    why: str = ""
    """Why it was demoted last."""

    def proposes(self, needed: int) -> bool:
        """Whether a promotion is worth a person's thought."""
        more = self.granted is None or self.highest_agreed > self.granted
        return self.agreed >= needed and more


def standings(entries: Iterable[TrustEntry]) -> tuple[Standing, ...]:
    """The book, read from its beginning, by target and zone."""
    found: dict[tuple[str, str], Standing] = defaultdict(lambda: Standing(target="", zone=""))
    for entry in entries:
        place = (entry.target, entry.zone)
        standing = found[place].model_copy(update={"target": entry.target, "zone": entry.zone})
        found[place] = _after(standing, entry)
    return tuple(found[place] for place in sorted(found))


def _after(standing: Standing, entry: TrustEntry) -> Standing:
    change: dict[str, object]
    match entry.kind:
        case "agreed":
            highest = max(standing.highest_agreed, entry.tier)
            change = {"agreed": standing.agreed + 1, "highest_agreed": highest}
        case "disagreed":
            change = {"disagreed": standing.disagreed + 1, **_row_broken()}
        case "incident":
            change = {"incidents": standing.incidents + 1, "why": entry.why, **_demoted(), **_row_broken()}  # fmt: skip
        case "promoted":
            change = {
                "granted": entry.tier,
                "granted_by": entry.by,
                "granted_at": entry.at,
                "why": "",
                **_row_broken(),
            }
        case "demoted":
            change = {"why": entry.why, **_demoted(), **_row_broken()}
    return standing.model_copy(update=change)


def _row_broken() -> dict[str, object]:
    return {"agreed": 0, "highest_agreed": Tier.T0}


def _demoted() -> dict[str, object]:
    return {"granted": None, "granted_by": "", "granted_at": None}


def granted_tier(known: Sequence[Standing], target: str, zones: Iterable[str]) -> Tier | None:
    """Up to which tier an order for this target that acts in these zones goes unasked. None: it does not."""
    grants = {(each.target, each.zone): each.granted for each in known}
    found = [grants.get((target, zone)) for zone in zones]
    if not found or any(each is None for each in found):
        return None
    return min(each for each in found if each is not None)
