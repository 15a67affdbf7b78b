"""Receipts as a chain per run: each sealed with a key and with the seal of the one before it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from enum import StrEnum
from itertools import pairwise

from podium.domain.errors import BadInput
from podium.domain.gating import Receipt, canonical_json
from podium.domain.model import Noun
from podium.journal.anchors import Anchors, Head
from podium.journal.receipt_key import KEY_BYTES, load_or_create_key

__all__ = ["Anchors", "Finding", "FindingKind", "Head", "Sealer", "load_or_create_key", "verify"]


class Sealer:
    """Seals receipts, and says what a receipt's seal should be."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise BadInput(f"a key for receipts has {KEY_BYTES} bytes, not {len(key)}")
        self._key = key

    @property
    def fingerprint(self) -> str:
        """Tells keys apart without telling anything of them."""
        return hmac.new(self._key, b"which key this is", hashlib.sha256).hexdigest()[:32]

    def seal(self, receipt: Receipt, previous: str, number: int) -> Receipt:
        """The receipt with its place in the chain. `previous` is the seal before it, or empty."""
        placed = receipt.model_copy(update={"number": number, "previous": previous})
        return placed.model_copy(update={"seal": self.seal_of(placed)})

    def seal_of(self, receipt: Receipt) -> str:
        """HMAC-SHA256 over all of the receipt but the seal it carries, in hex."""
        return hmac.new(self._key, _sealed_text(receipt), hashlib.sha256).hexdigest()

    def sealed(self, receipt: Receipt) -> bool:
        """Whether the seal it carries is the one this key gives it."""
        return hmac.compare_digest(receipt.seal.encode(), self.seal_of(receipt).encode())


def _sealed_text(receipt: Receipt) -> bytes:
    # Through JSON and UTC, so that a receipt has one text before it is stored and after.
    content = json.loads(receipt.model_dump_json(exclude={"seal"}))
    for name in ("agent", "role", "approved_how"):
        # Receipts of before these were known stay provable.
        content = content if content[name] else {k: v for k, v in content.items() if k != name}
    content["requested_at"] = receipt.requested_at.astimezone(UTC).isoformat()
    content["settled_at"] = receipt.settled_at.astimezone(UTC).isoformat()
    return canonical_json(content).encode()


class FindingKind(StrEnum):
    """What can be wrong with a chain."""

    EDITED = "edited"
    """The seal is genuine, the content is no longer what was sealed."""
    FORGED = "forged"
    """The seal was not made with this key."""
    UNSEALED = "unsealed"
    MOVED = "moved"
    """It belongs to another run."""
    REORDERED = "reordered"
    REPLACED = "replaced"
    """Well sealed, but not the one that stood here."""
    REMOVED = "removed"
    CUT_OFF = "cut_off"
    """The chain ends before its anchored head."""
    HEAD_MISSING = "head_missing"
    """No head is anchored, so that a cut-off end could not be seen."""


class Finding(Noun):
    """Something wrong with a run's receipts."""

    run_id: str
    number: int | None
    """The receipt it is about; None: the chain as a whole."""
    kind: FindingKind
    problem: str


def verify(
    receipts_by_run: Mapping[str, Sequence[Receipt]],
    sealer: Sealer,
    anchors: Anchors,
    *,
    alone: bool = True,
) -> list[Finding]:
    """Everything wrong with these chains; nothing when all are as they were written.

    Hand in the receipts of all runs: a run that has heads and no receipts is found to be emptied.
    Receipts beyond the anchored head are fine when the chain goes on properly, for a crash may
    fall between commit and anchor. Not `alone`, other machines work on the same runs and keep heads of
    their own: that one is missing here says nothing then.
    """
    runs = dict.fromkeys([*receipts_by_run, *anchors.runs()])
    return [
        finding
        for run_id in runs
        for finding in _Chain(run_id, receipts_by_run.get(run_id, ()), sealer, anchors).findings()
        if alone or finding.kind is not FindingKind.HEAD_MISSING
    ]


class _Chain:
    """One run's receipts beside its anchored heads."""

    def __init__(
        self, run_id: str, receipts: Sequence[Receipt], sealer: Sealer, anchors: Anchors
    ) -> None:
        self.run_id = run_id
        self.receipts = receipts
        self.heads = anchors.heads(run_id)
        self.genuine = [sealer.sealed(receipt) for receipt in receipts]
        # Seals that something genuine vouches for: an anchored head, or the receipt that follows.
        self.vouched = {head.seal for head in self.heads} | {
            receipt.previous for receipt, genuine in self._judged() if genuine
        }

    def _judged(self) -> Iterator[tuple[Receipt, bool]]:
        return zip(self.receipts, self.genuine, strict=True)

    def findings(self) -> Iterator[Finding]:
        if not self.receipts:
            if self.heads:
                last = max(head.number for head in self.heads)
                yield self._found(None, FindingKind.REMOVED, f"all {last} receipts of it are gone")
            return
        for receipt, genuine in self._judged():
            yield from self._content(receipt, genuine)
        yield from self._order()
        yield from self._links()
        yield from self._beside_heads()

    def _content(self, receipt: Receipt, genuine: bool) -> Iterator[Finding]:
        number = receipt.number
        if receipt.run_id != self.run_id:
            problem = f"it belongs to run {receipt.run_id!r}"
            yield self._found(number, FindingKind.MOVED, problem)
        if not receipt.seal:
            yield self._found(number, FindingKind.UNSEALED, "it carries no seal")
        elif not genuine:
            if receipt.seal in self.vouched:
                problem = "its content is not what was sealed"
                yield self._found(number, FindingKind.EDITED, problem)
            else:
                problem = "its seal was not made with this key for this content"
                yield self._found(number, FindingKind.FORGED, problem)

    def _order(self) -> Iterator[Finding]:
        for before, after in pairwise(self.receipts):
            if after.number <= before.number:
                problem = f"it stands behind receipt {before.number}"
                yield self._found(after.number, FindingKind.REORDERED, problem)

    def _links(self) -> Iterator[Finding]:
        number, seal = 0, ""
        for receipt in sorted(self.receipts, key=lambda one: one.number):
            if receipt.number > number + 1:
                problem = f"missing between receipts {number} and {receipt.number}"
                yield self._found(number + 1, FindingKind.REMOVED, problem)
            elif receipt.previous != seal:
                problem = "it does not follow the receipt before it"
                yield self._found(receipt.number, FindingKind.REPLACED, problem)
            number, seal = receipt.number, receipt.seal

    def _beside_heads(self) -> Iterator[Finding]:
        by_number = {receipt.number: receipt for receipt in self.receipts}
        last = max(by_number)
        if not self.heads and last > 1:
            problem = "no head of it is anchored: receipts may be missing at its end"
            yield self._found(None, FindingKind.HEAD_MISSING, problem)
        for head in self.heads:
            kept = by_number.get(head.number)
            if kept is not None and kept.seal != head.seal:
                problem = "it is not the receipt that was anchored under this number"
                yield self._found(head.number, FindingKind.REPLACED, problem)
        furthest = max((head.number for head in self.heads), default=last)
        if furthest > last:
            problem = f"the chain ends at {last}, its anchored head is {furthest}"
            yield self._found(last + 1, FindingKind.CUT_OFF, problem)

    def _found(self, number: int | None, kind: FindingKind, problem: str) -> Finding:
        return Finding(run_id=self.run_id, number=number, kind=kind, problem=problem)
