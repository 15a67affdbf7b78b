"""`/api/v1/receipts`: the sealed proof of every call that was performed."""

from __future__ import annotations

from fastapi import APIRouter

from podium.app.receipt_proof import proven
from podium.app.receipts import Verdict, list_receipts
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
    """Whether the chains are whole."""

    sound: bool
    verdict: Verdict


@router.get("/receipts")
async def list_all_receipts(
    context: CurrentContext, person: Viewer, run: NameAsked = "", limit: Rows = 200
) -> ReceiptsListed:
    """Receipts of a run, or of all, in the order of their chains; the last ones."""
    found = await list_receipts(await context.store(), run or None)
    shown = found[-limit:]
    return ReceiptsListed(receipts=tuple(shown), left_out=len(found) - len(shown))


@router.get("/receipts/verify")
async def verify_receipts(context: CurrentContext, person: Viewer, run: NameAsked = "") -> Proof:
    """Prove that no receipt was edited, removed, reordered or cut off."""
    verdict = await proven(context.podium, run or None)
    return Proof(sound=verdict.sound, verdict=verdict)
