"""Earned autonomy: entries of the trust book, what follows from them, and promotion, which only a person grants."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import model_validator

from podium.core.decisions import Tier
from podium.core.errors import BadInput, CallRefused
from podium.core.model import FrozenModel, NonEmpty, UtcDatetime
from podium.jobs.sense.orders.work_order import TierName

if TYPE_CHECKING:
    from podium.ports import Clock


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
        """Identity of an entry: a person's answer to one order counts once."""
        about = self.wo_id or self.at.isoformat()
        return json.dumps([self.kind, self.target, self.zone, about], ensure_ascii=False)

    @model_validator(mode="after")
    def _promotion_names_a_person(self) -> TrustEntry:
        if self.kind == "promoted" and not self.by.strip():
            raise ValueError("only a person can promote; name the person in `by`")
        return self


class EarnedTrust(FrozenModel):
    """Autonomy that one target has earned in one zone."""

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
    """Reason of the last demotion."""

    def proposes(self, needed: int) -> bool:
        """True if a promotion is worth proposing to a person."""
        more = self.granted is None or self.highest_agreed > self.granted
        return self.agreed >= needed and more


def earned_trust(entries: Iterable[TrustEntry]) -> tuple[EarnedTrust, ...]:
    """Compute earned trust from the whole book, by target and zone."""
    by_zone: dict[tuple[str, str], EarnedTrust] = defaultdict(
        lambda: EarnedTrust(target="", zone="")
    )
    for entry in entries:
        key = (entry.target, entry.zone)
        trust = by_zone[key].model_copy(update={"target": entry.target, "zone": entry.zone})
        by_zone[key] = _after(trust, entry)
    return tuple(by_zone[key] for key in sorted(by_zone))


def _after(trust: EarnedTrust, entry: TrustEntry) -> EarnedTrust:
    change: dict[str, object]
    match entry.kind:
        case "agreed":
            highest = max(trust.highest_agreed, entry.tier)
            change = {"agreed": trust.agreed + 1, "highest_agreed": highest}
        case "disagreed":
            change = {"disagreed": trust.disagreed + 1, **_row_broken()}
        case "incident":
            change = {"incidents": trust.incidents + 1, "why": entry.why, **_demoted(), **_row_broken()}  # fmt: skip
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
    return trust.model_copy(update=change)


def _row_broken() -> dict[str, object]:
    return {"agreed": 0, "highest_agreed": Tier.T0}


def _demoted() -> dict[str, object]:
    return {"granted": None, "granted_by": "", "granted_at": None}


def granted_tier(earned: Sequence[EarnedTrust], target: str, zones: Iterable[str]) -> Tier | None:
    """Return the tier up to which orders for this target in these zones are delivered unasked. None: none are."""
    grants = {(trust.target, trust.zone): trust.granted for trust in earned}
    tiers = [grants.get((target, zone)) for zone in zones]
    if not tiers or any(tier is None for tier in tiers):
        return None
    return min(tier for tier in tiers if tier is not None)


class Promotion:
    """Grants of a promotion, for a person to confirm before they are written."""

    def __init__(self, grants: Sequence[tuple[EarnedTrust, Tier]]) -> None:
        self.grants = tuple(grants)

    @property
    def target(self) -> str:
        return self.grants[0][0].target


def plan_promotion(
    earned: Sequence[EarnedTrust],
    target: str,
    zones: Sequence[str],
    *,
    up_to: Tier | None,
    needed: int,
    anyway: bool,
) -> Promotion:
    """Plan a promotion: without `zones` for those that earned it; without `up_to` as far as people approved.

    Raises `CallRefused` where fewer than `needed` agreements stand in a row, unless `anyway`.
    """
    of_target = {trust.zone: trust for trust in earned if trust.target == target}
    chosen = zones or [
        zone for zone, trust in of_target.items() if anyway or trust.proposes(needed)
    ]
    if not chosen:
        raise CallRefused(_nothing_earned(target, of_target, needed))
    grants = []
    for zone in dict.fromkeys(chosen):
        trust = of_target.get(zone, EarnedTrust(target=target, zone=zone))
        if trust.agreed < needed and not anyway:
            raise CallRefused(
                f"{target!r} in zone {zone!r} has {trust.agreed} of the {needed} agreements in a row that are "
                "required; wait for more, or pass --anyway"
            )
        grants.append((trust, up_to if up_to is not None else max(trust.highest_agreed, Tier.T1)))
    return Promotion(grants)


class EarnedTrustBook(Protocol):
    """Decisions of people and events, from which autonomy is earned and lost. Append-only."""

    def entries(self) -> Sequence[TrustEntry]: ...

    def add(self, entry: TrustEntry) -> None:
        """Durable on return. The same entry again changes nothing."""
        ...


def promote(
    book: EarnedTrustBook, clock: Clock, promotion: Promotion, *, by: str
) -> tuple[EarnedTrust, ...]:
    """Write it into the book. Durable on return."""
    for trust, tier in promotion.grants:
        book.add(
            TrustEntry(
                kind="promoted",
                target=trust.target,
                zone=trust.zone,
                tier=tier,
                by=by,
                at=clock.now(),
            )
        )
    return _of_target(book, promotion.target)


def demote(
    book: EarnedTrustBook, clock: Clock, target: str, zones: Sequence[str], *, by: str, why: str
) -> tuple[EarnedTrust, ...]:
    """Take back what was granted: in these zones, or in all that have a grant.

    Raises `BadInput` where nothing is granted.
    """
    granted = [trust.zone for trust in _of_target(book, target) if trust.granted is not None]
    chosen = tuple(dict.fromkeys(zones)) or tuple(granted)
    if not chosen or not set(chosen) <= set(granted):
        has = f"autonomy only in {', '.join(granted)}" if granted else "no autonomy"
        raise BadInput(f"{target!r} has {has}; list grants with `podium sense trust`")
    for zone in chosen:
        book.add(
            TrustEntry(kind="demoted", target=target, zone=zone, by=by, why=why, at=clock.now())
        )
    return _of_target(book, target)


def _of_target(book: EarnedTrustBook, target: str) -> tuple[EarnedTrust, ...]:
    return tuple(trust for trust in earned_trust(book.entries()) if trust.target == target)


def _nothing_earned(target: str, of_target: dict[str, EarnedTrust], needed: int) -> str:
    if not of_target:
        return f"no approvals or rejections are recorded for target {target!r}; list known targets with `podium sense trust`"
    counts = ", ".join(f"{trust.agreed} in {zone}" for zone, trust in of_target.items())
    return (
        f"{target!r} has too few agreements in a row ({counts}; {needed} are required); wait for more, or pass "
        "--anyway with --zone"
    )
