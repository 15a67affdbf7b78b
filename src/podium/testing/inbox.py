"""An inbox without files."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.errors import BadInput
from podium.domain.orders import Ack, Claim, OpenedOrder, WorkOrder
from podium.ports import Shelf

_SEPARATOR = "--"


class MemoryInbox:
    """Holds orders under names of files. What lies where can be looked at."""

    def __init__(self) -> None:
        self.waits: dict[str, OpenedOrder] = {}
        """File → what is in it, oldest first."""
        self.claimed: dict[str, OpenedOrder] = {}
        """Name of the claimed file → what is in it."""
        self.shelves: dict[Shelf, dict[str, str]] = {"done": {}, "parked": {}}
        """Name of the claimed file → why it lies there."""
        self.acks: dict[str, Ack] = {}
        """Order → the newest answer to it."""

    def drop(self, file: str, holds: WorkOrder | str) -> None:
        """Put an order there, or, as text, why what lies there is none."""
        self.waits[file] = _opened(holds)

    def rewrite(self, claim: Claim, holds: WorkOrder | str) -> None:
        """Change what a claimed file holds, as a person with an editor does."""
        self.claimed[claim.name] = _opened(holds)

    @property
    def passed_over(self) -> Sequence[str]:
        return ()

    def waiting(self) -> Sequence[str]:
        return list(self.waits)

    def claim(self, file: str, *, run_id: str, worker: str) -> Claim | None:
        if file not in self.waits:
            return None
        name = _SEPARATOR.join((run_id, worker, file))
        if name in self.claimed:
            raise BadInput(f"run {run_id} has a claim on {file!r} already")
        self.claimed[name] = self.waits.pop(file)
        return Claim(name=name, file=file, run_id=run_id, worker=worker)

    def claims(self) -> Sequence[Claim]:
        return [_claim_named(name) for name in sorted(self.claimed)]

    def open(self, claim: Claim) -> OpenedOrder:
        _claim_named(claim.name)
        gone = OpenedOrder(fault=f"{claim.file!r} is no longer among the claimed files")
        return self.claimed.get(claim.name, gone)

    def put_away(self, claim: Claim, shelf: Shelf, why: str = "") -> str:
        _claim_named(claim.name)
        if self.claimed.pop(claim.name, None) is not None:
            self.shelves[shelf][claim.name] = why
        return f"{shelf}/{claim.name}"

    def acknowledge(self, ack: Ack) -> str:
        self.acks[ack.wo_id] = ack
        return f"acks/{ack.wo_id}.ack.json"

    def answered(self, wo_id: str) -> Ack | None:
        return self.acks.get(wo_id)


def _opened(holds: WorkOrder | str) -> OpenedOrder:
    return OpenedOrder(fault=holds) if isinstance(holds, str) else OpenedOrder(order=holds)


def _claim_named(name: str) -> Claim:
    parts = name.split(_SEPARATOR, 2)
    if len(parts) < 3:
        raise BadInput(f"{name!r} is no name of a claimed file")
    run_id, worker, file = parts
    return Claim(name=name, file=file, run_id=run_id, worker=worker)
