"""Receipts as a chain per run: sealed with a key outside the database, anchored by chain heads in files."""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from heapq import nlargest
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from podium.core.errors import BadInput, StoreUnusable
from podium.core.model import FrozenModel, canonical_json
from podium.platform import make_private_folder
from podium.platform.file_lock import folder_lock
from podium.store.sqlite import seals_of
from podium.store.transcripts import is_plain, plain_name

if TYPE_CHECKING:
    from podium.core.decisions import Receipt

KEY_BYTES = 32
HEADS_FOLDER = "heads"
"""Folder beside the key that holds the heads of the chains."""


def load_or_create_key(path: Path) -> bytes:
    """The key in this file, made on first use. Processes that race for it get the same one.

    Raises `StoreUnusable` when the file is there and is not a key, when it cannot be read or
    made, and when it is gone although heads sealed with it stand beside it.
    """
    try:
        with folder_lock(path.parent):
            if not path.exists():
                _refuse_beside_heads(path)
                _create(path)
            key = path.read_bytes()
    except OSError as error:
        raise StoreUnusable(
            str(path),
            f"the receipts' key cannot be read or created: {error.strerror or error}",
            "make the file and its folder accessible to this user, or set PODIUM_HOME to a folder you own",
        ) from error
    if len(key) != KEY_BYTES:
        raise StoreUnusable(
            str(path),
            f"this is not a key for receipts: {len(key)} bytes instead of {KEY_BYTES}",
            "restore the file from a backup",
        )
    return key


def _refuse_beside_heads(path: Path) -> None:
    heads = path.parent / HEADS_FOLDER
    if heads.is_dir() and any(heads.iterdir()):
        raise StoreUnusable(
            str(path),
            f"the receipts' key is missing, but {str(heads)!r} has heads of chains sealed with it",
            "restore the key from a backup, or move the heads away to start again "
            "(earlier receipts can then no longer be verified)",
        )


def _create(path: Path) -> None:
    """Write a whole key or none: a crash leaves at most the side file, which the next try overwrites."""
    side = path.with_name(f".{path.name}.new")
    handle = os.open(side, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    side.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


BEGUN_ANEW = "begun-anew"
"""File beside the key: the record was begun anew and holds no receipt yet."""
_LINE = re.compile(rb"([1-9][0-9]{0,17}) ([0-9a-f]{64})")


class ChainHead(NamedTuple):
    """The last receipt of a chain, as it was at some time."""

    number: int
    seal: str


class Anchors:
    """Append-only notes of every head a chain has had, one file for each run.

    They are written after the commit, so a crash may leave them behind the database, never ahead.
    """

    def __init__(self, folder: Path, name: str = HEADS_FOLDER) -> None:
        """`folder` is the one that holds the key, `name` that of the heads in it; others are those put aside."""
        self._folder = folder / name
        self._begun_anew = folder / BEGUN_ANEW

    def write(self, run_id: str, number: int, seal: str) -> None:
        """Note a head. Cheap: the file is appended to and not forced to disk.

        Raises `OSError` when it cannot be written; earlier heads stay readable.
        """
        path = self._folder / plain_name(run_id)
        try:
            handle = _open_for_append(path)
        except FileNotFoundError:
            make_private_folder(self._folder)
            handle = _open_for_append(path)
        try:
            # A line that a crash tore is ended first, so that it spoils itself alone.
            start = "" if _ends_whole(handle) else "\n"
            line = f"{start}{number} {seal}\n".encode()
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, f"head {number} was written in part only", str(path))
        finally:
            os.close(handle)
        self._begun_anew.unlink(missing_ok=True)

    def head(self, run_id: str) -> ChainHead | None:
        """The furthest head of the run, or None when there is none."""
        return max(self.heads(run_id), key=lambda head: head.number, default=None)

    def heads(self, run_id: str) -> list[ChainHead]:
        """Every head of the run in the order of writing. Torn lines are passed over."""
        path = self._folder / run_id
        if not is_plain(run_id) or not path.exists():
            return []
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StoreUnusable(
                str(path),
                f"the chain heads cannot be read: {error.strerror}",
                "make the file readable",
            ) from error
        whole = content.split(b"\n")[:-1]
        matches = [match for line in whole if (match := _LINE.fullmatch(line))]
        return [ChainHead(int(match[1]), match[2].decode()) for match in matches]

    def newest(self, limit: int) -> dict[str, int]:
        """Numbers of the furthest heads of the runs that were noted last, at most so many."""
        if not self._folder.is_dir():
            return {}
        entries = [entry for entry in os.scandir(self._folder) if is_plain(entry.name)]
        noted = nlargest(limit, entries, key=lambda entry: (entry.stat().st_mtime_ns, entry.name))
        heads = {entry.name: self.head(entry.name) for entry in noted}
        return {run: head.number for run, head in heads.items() if head is not None}

    @property
    def are_begun_anew(self) -> bool:
        """Tell whether the record was begun anew, and nothing was sealed since."""
        return self._begun_anew.exists()

    def archive(self, now: datetime) -> Path | None:
        """Begin without heads, and note that. Returns where the old ones are; None: there were none."""
        self._begun_anew.write_text(f"{now:%Y-%m-%dT%H:%M:%SZ}\n")
        if not self.runs():
            return None
        return self._folder.rename(self._folder.with_name(f"{HEADS_FOLDER}-{now:%Y%m%dT%H%M%SZ}"))

    def runs(self) -> list[str]:
        """Ids of all runs that have heads."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if is_plain(path.name))


def copy_heads(source: Anchors, target: Anchors, database: Path) -> None:
    """Take over those heads whose receipts are in this database."""
    for run_id in source.runs():
        seals = seals_of(database, run_id)
        for head in source.heads(run_id):
            if seals.get(head.number) == head.seal:
                target.write(run_id, head.number, head.seal)


def _open_for_append(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _ends_whole(handle: int) -> bool:
    size = os.fstat(handle).st_size
    return size == 0 or os.pread(handle, 1, size - 1) == b"\n"


__all__ = [
    "Anchors",
    "ChainFinding",
    "ChainHead",
    "FindingKind",
    "Sealer",
    "load_or_create_key",
    "verify",
]


class Sealer:
    """Seals receipts, and says what a receipt's seal should be."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise BadInput(f"a key for receipts must have {KEY_BYTES} bytes, not {len(key)}")
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
        """Tell whether the seal it carries is the one this key gives it."""
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
    """Kinds of problems of a chain."""

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


class ChainFinding(FrozenModel):
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
) -> list[ChainFinding]:
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
        for finding in _ReceiptChain(
            run_id, receipts_by_run.get(run_id, ()), sealer, anchors
        ).findings()
        if alone or finding.kind is not FindingKind.HEAD_MISSING
    ]


class _ReceiptChain:
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

    def findings(self) -> Iterator[ChainFinding]:
        if not self.receipts:
            if self.heads:
                last = max(head.number for head in self.heads)
                yield self._finding(
                    None, FindingKind.REMOVED, f"all of its receipts are missing ({last})"
                )
            return
        for receipt, genuine in self._judged():
            yield from self._content(receipt, genuine)
        yield from self._order()
        yield from self._links()
        yield from self._beside_heads()

    def _content(self, receipt: Receipt, genuine: bool) -> Iterator[ChainFinding]:
        number = receipt.number
        if receipt.run_id != self.run_id:
            problem = f"it belongs to run {receipt.run_id!r}"
            yield self._finding(number, FindingKind.MOVED, problem)
        if not receipt.seal:
            yield self._finding(number, FindingKind.UNSEALED, "it has no seal")
        elif not genuine:
            if receipt.seal in self.vouched:
                problem = "its content differs from what was sealed"
                yield self._finding(number, FindingKind.EDITED, problem)
            else:
                problem = "its seal was not made with this key for this content"
                yield self._finding(number, FindingKind.FORGED, problem)

    def _order(self) -> Iterator[ChainFinding]:
        for before, after in pairwise(self.receipts):
            if after.number <= before.number:
                problem = f"it is out of order, after receipt {before.number}"
                yield self._finding(after.number, FindingKind.REORDERED, problem)

    def _links(self) -> Iterator[ChainFinding]:
        number, seal = 0, ""
        for receipt in sorted(self.receipts, key=lambda one: one.number):
            if receipt.number > number + 1:
                problem = f"missing between receipts {number} and {receipt.number}"
                yield self._finding(number + 1, FindingKind.REMOVED, problem)
            elif receipt.previous != seal:
                problem = "it does not follow the receipt before it"
                yield self._finding(receipt.number, FindingKind.REPLACED, problem)
            number, seal = receipt.number, receipt.seal

    def _beside_heads(self) -> Iterator[ChainFinding]:
        by_number = {receipt.number: receipt for receipt in self.receipts}
        last = max(by_number)
        if not self.heads and last > 1:
            problem = "its chain has no anchored head: receipts may be missing at its end"
            yield self._finding(None, FindingKind.HEAD_MISSING, problem)
        for head in self.heads:
            anchored = by_number.get(head.number)
            if anchored is not None and anchored.seal != head.seal:
                problem = "it is not the receipt that was anchored under this number"
                yield self._finding(head.number, FindingKind.REPLACED, problem)
        furthest = max((head.number for head in self.heads), default=last)
        if furthest > last:
            problem = f"the chain ends at {last}, but its anchored head is {furthest}"
            yield self._finding(last + 1, FindingKind.CUT_OFF, problem)

    def _finding(self, number: int | None, kind: FindingKind, problem: str) -> ChainFinding:
        return ChainFinding(run_id=self.run_id, number=number, kind=kind, problem=problem)
