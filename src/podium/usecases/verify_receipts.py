"""Proof that no receipt was edited, removed, reordered or cut off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from podium.domain.gating import Receipt
from podium.domain.model import Json, Noun
from podium.ports import Store, View
from podium.usecases.find_id import find_id


class Finding(Protocol):
    """Something wrong with a chain."""

    @property
    def run_id(self) -> str: ...
    @property
    def number(self) -> int | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def problem(self) -> str: ...


Verifier = Callable[[Mapping[str, Sequence[Receipt]]], Sequence[Finding]]
"""Checks the chains of all runs against key and heads."""


class Fault(Noun):
    """A finding, as it is shown."""

    run_id: str
    number: int | None
    kind: str
    problem: str


class Verdict(Noun):
    """What was checked and what was found."""

    runs: int
    receipts: int
    faults: tuple[Fault, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.faults

    def record(self) -> dict[str, Json]:
        return {"sound": self.sound, **self.model_dump(mode="json")}


async def verify_receipts(store: Store, verifier: Verifier, run: str | None = None) -> Verdict:
    """Check all chains, and report on one run or on all of them."""
    run_id, receipts = await store.read(lambda view: _read(view, run))
    chains: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        chains.setdefault(receipt.run_id, []).append(receipt)
    # All chains go in, whichever run is asked for: a run whose every receipt is gone is still found.
    faults = tuple(
        Fault(run_id=one.run_id, number=one.number, kind=one.kind, problem=one.problem)
        for one in verifier(chains)
        if run_id is None or one.run_id == run_id
    )
    told = [run_id] if run_id else list(chains)
    count = sum(len(chains.get(one, ())) for one in told)
    return Verdict(runs=len(told), receipts=count, faults=faults)


def _read(view: View, run: str | None) -> tuple[str | None, list[Receipt]]:
    return (None if run is None else find_id(view, "run", run)), view.receipts()
