"""An inbox of folders: orders come in as files, and every step of theirs is one rename.

Two workers, on one machine or on two that share the folder, never get the same file: a rename takes it
away from its place, and the second one finds nothing there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from podium.bridge.claims import (
    ack_name,
    claim_named,
    claim_of,
    is_nobodys_order,
    may_hold_order,
    shelved_name,
    why_not_claimed,
)
from podium.bridge.folders import opened_folder, read_plain, replace_file, saying, why_not_plain
from podium.bridge.orders_file import ORDER_LIMIT_BYTES, is_half_written, read_order
from podium.bridge.redacting import Redact, redacted
from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.model import json_of
from podium.domain.orders import Ack, Claim, OpenedOrder
from podium.ports.clock import Clock
from podium.ports.inbox import Shelf

_SETTLED_SECONDS = 2.0
"""A file that makes no sense and was changed this recently may still be written in place."""
_ACK_LIMIT_BYTES = 5_000_000
REASON_ENDING = ".reason.txt"


@dataclass(frozen=True)
class InboxFolders:
    """Where an inbox has its files, from the root on."""

    inbox: str
    claimed: str
    done: str
    parked: str
    acks: str


class FolderInbox:
    """The inbox of one root. Raises `NotPossibleNow` where one of its folders cannot be used."""

    def __init__(self, root: Path, folders: InboxFolders, *, clock: Clock, redact: Redact) -> None:
        self._root = root
        self._at = folders
        self._clock = clock
        self._redact = redact
        self._passed_over: tuple[str, ...] = ()

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Files that the last look at the inbox left where they are, and why, a sentence each."""
        return self._passed_over

    def waiting(self) -> Sequence[str]:
        found: list[tuple[int, str]] = []
        left: list[str] = []
        with suppress(FileNotFoundError), self._folder(self._at.inbox) as inbox:
            for name, stat in _order_files(inbox):
                if why := self._why_left(inbox, name, stat):
                    left.append(f"{name!r}: {why}")
                else:
                    found.append((stat.st_mtime_ns, name))
        self._passed_over = tuple(sorted(left))
        return [name for _, name in sorted(found)]

    def claim(self, file: str, *, run_id: str, worker: str) -> Claim | None:
        claim = claim_of(file, run_id, worker)
        try:
            with self._folder(self._at.inbox) as inbox:
                return claim if self._taken(inbox, claim) else None
        except FileNotFoundError:
            return None

    def claims(self) -> Sequence[Claim]:
        found: list[Claim | None] = []
        with suppress(FileNotFoundError), self._folder(self._at.claimed) as claimed:
            found = [claim_named(name) for name in os.listdir(claimed)]  # noqa: PTH208 - a handle, not a path
        return sorted((each for each in found if each), key=lambda claim: claim.name)

    def open(self, claim: Claim) -> OpenedOrder:
        name = _checked(claim).name
        try:
            with self._folder(self._at.claimed) as claimed:
                content = read_plain(claimed, name, ORDER_LIMIT_BYTES)
        except FileNotFoundError:
            return OpenedOrder(fault=f"{claim.file!r} is no longer among the claimed files")
        except NotPossibleNow as error:
            return OpenedOrder(fault=str(error))
        return read_order(content)

    def put_away(self, claim: Claim, shelf: Shelf, why: str = "") -> str:
        place = self._at.done if shelf == "done" else self._at.parked
        checked = _checked(claim)
        name, source = shelved_name(checked), checked.name
        with (
            self._folder(self._at.claimed, make=True) as claimed,
            self._folder(place, make=True) as target,
        ):
            if _is_there(claimed, source):
                if why:
                    # Before the file: one that is parked never lies there without its reason.
                    reason = f"{self._redact(why)}\n".encode(errors="replace")
                    replace_file(target, name + REASON_ENDING, reason)
                # Another worker may find it left behind too, and be faster.
                with saying(f"{place}/{name}"), suppress(FileNotFoundError):
                    os.rename(source, name, src_dir_fd=claimed, dst_dir_fd=target)
                    os.fsync(target)
        return f"{place}/{name}"

    def acknowledge(self, ack: Ack) -> str:
        name = ack_name(ack.wo_id)
        document = redacted(json.loads(json_of(ack)), self._redact)
        if not ack.worker:
            del document["worker"]
        content = json.dumps({**document, "wo_id": ack.wo_id}, indent=2) + "\n"
        with self._folder(self._at.acks, make=True) as acks:
            replace_file(acks, name, content.encode())
        return f"{self._at.acks}/{name}"

    def answered(self, wo_id: str) -> Ack | None:
        try:
            with self._folder(self._at.acks) as acks:
                content = read_plain(acks, ack_name(wo_id), _ACK_LIMIT_BYTES)
            ack = Ack.model_validate_json(content)
        except (FileNotFoundError, ValidationError):
            return None
        return ack if ack.wo_id == wo_id else None

    def _taken(self, inbox: int, claim: Claim) -> bool:
        """Raises `FileNotFoundError` when somebody else was faster."""
        if not may_hold_order(claim.file) or why_not_claimed(claim.file):
            return False
        stat = os.stat(claim.file, dir_fd=inbox, follow_symlinks=False)
        if self._why_left(inbox, claim.file, stat):
            return False
        with self._folder(self._at.claimed, make=True) as claimed:
            if _is_there(claimed, claim.name):
                raise BadInput(f"run {claim.run_id} has a claim on {claim.file!r} already")
            with saying(f"{self._at.claimed}/{claim.name}"):
                os.rename(claim.file, claim.name, src_dir_fd=inbox, dst_dir_fd=claimed)
                os.fsync(claimed)
        return True

    def _why_left(self, inbox: int, name: str, stat: os.stat_result) -> str:
        """Why this file is not taken now; nothing if it is."""
        if fault := why_not_claimed(name) or why_not_plain(stat):
            return fault
        age = self._clock.now().timestamp() - stat.st_mtime
        if abs(age) >= _SETTLED_SECONDS:
            return ""
        try:
            half = is_half_written(read_plain(inbox, name, ORDER_LIMIT_BYTES))
        except FileNotFoundError:
            return "it is gone"
        except NotPossibleNow as error:
            return str(error)
        return "it is still being written" if half else ""

    def _folder(self, place: str, *, make: bool = False) -> AbstractContextManager[int]:
        return opened_folder(self._root, place, make=make)


def _order_files(inbox: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(inbox) as entries:
        for entry in entries:
            if may_hold_order(entry.name) or _is_meant(entry):
                try:
                    yield entry.name, entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another worker took it meanwhile


def _is_meant(entry: os.DirEntry[str]) -> bool:
    """Whether somebody may think that this is an order, so that it must be told why it is not taken."""
    return not is_nobodys_order(entry.name) and not entry.is_dir(follow_symlinks=False)


def _checked(claim: Claim) -> Claim:
    """The claim as its name tells it. Claims come back from records, and a name leads to a file."""
    found = claim_named(claim.name)
    if found is None:
        raise BadInput(f"{claim.name[:200]!r} is no name of a claimed file")
    return found


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
