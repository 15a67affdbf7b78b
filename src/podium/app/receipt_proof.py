"""Proof of a project's receipts, for every interface that shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.app.receipts import Verdict, list_receipts, verify_receipts
from podium.core.errors import NotPossibleNow

if TYPE_CHECKING:
    from podium.app.app import Podium


async def proven(podium: Podium, run: str | None = None) -> Verdict:
    """Check all chains, and report on one run or on all of them.

    Raises `UnknownId`, `RecordLost` where nothing is left to check, and `NotPossibleNow` where the key is missing: without it no receipt can be told
    from a forged one.
    """
    from podium.store import is_empty

    store = await podium.store(although_lost=not (podium.database_url or is_empty(podium.database)))
    if podium.receipt_key.exists():
        return await verify_receipts(store, await podium.verifier(), run)
    await list_receipts(store, run)  # an unknown run is an error here too
    if await list_receipts(store) or podium.has_heads:
        raise NotPossibleNow(
            f"the key of the receipts is missing: {str(podium.receipt_key)!r}; restore it from a "
            "backup, or bring it along when the project came from another machine or home. "
            "Until then no receipt can be proved, nor called forged"
        )
    return Verdict(runs=0, receipts=0)
