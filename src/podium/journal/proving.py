"""Proving all chains of receipts of a database, a few at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from podium.domain.gating import Receipt
from podium.journal.anchors import Anchors, Head
from podium.journal.receipt_key import load_or_create_key
from podium.journal.receipts import Sealer, verify
from podium.journal.view import SqlView
from podium.journal.whole import Reading


class Proof(NamedTuple):
    """What receipts are proved with."""

    sealer: Sealer
    anchors: Anchors
    alone: bool
    """No other machine seals: a chain without a head beside it lost the file that held it."""


def proof_with(key: Path, vault: Path, *, alone: bool) -> Proof | None:
    """The key in this file with the heads in `vault`; None when there is no key yet."""
    return Proof(Sealer(load_or_create_key(key)), Anchors(vault), alone) if key.exists() else None


def fitting(proof: Proof | None, reading: Reading) -> Proof | None:
    """The proof, unless the database says that another key sealed its receipts."""
    print_ = reading.key_print()
    return proof if proof and print_ in ("", proof.sealer.fingerprint) else None


def count_chains(reading: Reading) -> int:
    """Runs that have receipts."""
    return int(reading.execute("SELECT count(DISTINCT run_id) FROM receipts").fetchone()[0])


def chain_faults(reading: Reading, proof: Proof | None) -> Iterator[tuple[str, str]]:
    """Run and problem of everything that is wrong with a chain. Memory holds one chain at a time."""
    proof = fitting(proof, reading)
    if proof is None:
        if count_chains(reading):
            yield "", "the key they were sealed with is not here, so that none can be proved"
        return
    seen: set[str] = set()
    for run_id, receipts in _chains(reading):
        seen.add(run_id)
        heads = _HeadsAlone(proof.anchors, ())
        for finding in verify({run_id: receipts}, proof.sealer, heads, alone=proof.alone):
            number = "" if finding.number is None else f"receipt {finding.number}: "
            yield finding.run_id, f"{finding.kind}: {number}{finding.problem}"
    emptied = _HeadsAlone(proof.anchors, [run for run in proof.anchors.runs() if run not in seen])
    for finding in verify({}, proof.sealer, emptied):
        yield finding.run_id, f"{finding.kind}: {finding.problem}"


def anchor_chains(reading: Reading, proof: Proof, unproved: Collection[str]) -> Iterator[OSError]:
    """Note the end of every chain but the unproved, where this machine knows none or an earlier one.

    Gives what could not be written.
    """
    view = SqlView(reading, reading.now())
    for batch in reading.batches("SELECT DISTINCT run_id FROM receipts"):
        for (run_id,) in batch:
            last, head = view.last_receipt(run_id), proof.anchors.head(run_id)
            if run_id in unproved or last is None or (head and head.number >= last.number):
                continue
            try:
                proof.anchors.write(run_id, last.number, last.seal)
            except OSError as error:
                yield error


def _chains(reading: Reading) -> Iterator[tuple[str, list[Receipt]]]:
    view = SqlView(reading, reading.now())
    for batch in reading.batches("SELECT DISTINCT run_id FROM receipts"):
        for (run_id,) in batch:
            yield run_id, view.receipts(run_id)


class _HeadsAlone(Anchors):
    """The anchored heads, with only some runs counted among those that must have receipts."""

    def __init__(self, anchors: Anchors, runs: Sequence[str]) -> None:
        self._anchors = anchors
        self._runs = list(runs)

    def heads(self, run_id: str) -> list[Head]:
        return self._anchors.heads(run_id)

    def runs(self) -> list[str]:
        return self._runs
