"""One reversal for one receipt: claimed in the transaction that permits it, given up when it fails."""

from __future__ import annotations

from datetime import UTC, datetime

from podium.domain.gating import BuiltInRule, CallRecord, Decision, Effect, Tier, undo_counter
from podium.ports import Tx
from podium.tools.wish import Wish

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def reversal_claimed(tx: Tx, wish: Wish) -> Decision | None:
    """A no, when the receipt that this call would reverse is being reversed, or was."""
    receipt = wish.call.plan.undoes if wish.call.plan else ""
    if not receipt or tx.counted(undo_counter(receipt), _BEGINNING) <= 0:
        return None
    return Decision(
        effect=Effect.DENY,
        rule=BuiltInRule.UNDONE_ALREADY,
        reason=f"receipt {receipt} was undone already, or is being undone right now",
        tier=wish.spec.tier if wish.spec else Tier.T4,
    )


def claim_reversal(tx: Tx, wish: Wish) -> None:
    """From now on no other call may reverse that receipt."""
    if wish.call.plan is not None and wish.call.plan.undoes:
        tx.count(undo_counter(wish.call.plan.undoes), wish.now)


def give_up_reversal(tx: Tx, record: CallRecord, at: datetime) -> None:
    """The reversal failed: another may be tried."""
    if record.undoes:
        tx.count(undo_counter(record.undoes), at, -1.0)
