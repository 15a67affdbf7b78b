"""Promotion and demotion of a target's autonomy in a zone. Only a person grants any."""

from __future__ import annotations

from collections.abc import Sequence

from podium.core.decisions import Tier
from podium.core.errors import BadInput, CallRefused
from podium.jobs.sense.ports import TrustBook
from podium.jobs.sense.trust import EarnedTrust, TrustEntry, earned_trust
from podium.ports import Clock


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
    """Without `zones` it is for those that earned it; without `up_to` as far as people said yes to.

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
                f"{target!r} in zone {zone!r} has {trust.agreed} of the {needed} agreements in a row that it "
                "takes; wait for more, or say --anyway"
            )
        grants.append((trust, up_to if up_to is not None else max(trust.highest_agreed, Tier.T1)))
    return Promotion(grants)


def promote(
    book: TrustBook, clock: Clock, promotion: Promotion, *, by: str
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
    book: TrustBook, clock: Clock, target: str, zones: Sequence[str], *, by: str, why: str
) -> tuple[EarnedTrust, ...]:
    """Take back what was granted: in these zones, or in all that have a grant.

    Raises `BadInput` where nothing is granted.
    """
    granted = [trust.zone for trust in _of_target(book, target) if trust.granted is not None]
    chosen = tuple(dict.fromkeys(zones)) or tuple(granted)
    if not chosen or not set(chosen) <= set(granted):
        where = f"only in {', '.join(granted)}" if granted else "nowhere"
        raise BadInput(
            f"{target!r} has autonomy {where}; `podium sense trust` lists what is granted"
        )
    for zone in chosen:
        book.add(
            TrustEntry(kind="demoted", target=target, zone=zone, by=by, why=why, at=clock.now())
        )
    return _of_target(book, target)


def _of_target(book: TrustBook, target: str) -> tuple[EarnedTrust, ...]:
    return tuple(trust for trust in earned_trust(book.entries()) if trust.target == target)


def _nothing_earned(target: str, of_target: dict[str, EarnedTrust], needed: int) -> str:
    if not of_target:
        return f"nobody has said anything of target {target!r} yet; `podium sense trust` lists those that are known"
    counts = ", ".join(f"{trust.agreed} in {zone}" for zone, trust in of_target.items())
    return (
        f"{target!r} has too few agreements in a row ({counts}; it takes {needed}); wait for more, or say "
        "--anyway with --zone"
    )
