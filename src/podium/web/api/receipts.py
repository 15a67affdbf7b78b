"""`/api/v1/receipts`: the sealed proof of every call that was performed."""

from __future__ import annotations

from fastapi import APIRouter

from podium.app.receipts import Verdict, list_receipts, proven
from podium.core.decisions import Receipt
from podium.core.model import FrozenModel
from podium.web.access.authentication import Viewer
from podium.web.api.requests import NameAsked, Rows
from podium.web.context import CurrentContext

router = APIRouter(tags=["receipts"])


class ReceiptsListed(FrozenModel):
    receipts: tuple[Receipt, ...]
    left_out: int
    """Earlier ones, beyond the limit."""


class Proof(FrozenModel):
    """Result of verifying the chains of receipts."""

    sound: bool
    verdict: Verdict


@router.get("/receipts")
async def list_all_receipts(
    context: CurrentContext, person: Viewer, run: NameAsked = "", limit: Rows = 200
) -> ReceiptsListed:
    """List the latest receipts of a run, or of all runs, in chain order."""
    receipts = await list_receipts(await context.store(), run or None)
    listed = receipts[-limit:]
    return ReceiptsListed(receipts=tuple(listed), left_out=len(receipts) - len(listed))


@router.get("/receipts/verify")
async def verify_receipts(context: CurrentContext, person: Viewer, run: NameAsked = "") -> Proof:
    """Verify that no receipt was edited, removed, reordered or cut off."""
    verdict = await proven(context.podium, run or None)
    return Proof(sound=verdict.sound, verdict=verdict)
