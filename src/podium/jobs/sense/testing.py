"""Fakes for sense loops: inbox, source, record and earned trust, without files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from podium.core.decisions import digest_of
from podium.core.errors import BadInput, LockHeld
from podium.core.model import Json, UtcDatetime, json_of
from podium.jobs.sense.models import Bundle, Condition, Look, Sensed, SenseMemory, TickOutcome
from podium.jobs.sense.orders.work_order import Ack, Claim, OpenedOrder, WorkOrder
from podium.jobs.sense.ports import Shelf
from podium.jobs.sense.trust import TrustEntry

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
            raise BadInput(f"run {run_id} has already claimed {file!r}")
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
        raise BadInput(f"{name!r} is not the name of a claimed file")
    run_id, worker, file = parts
    return Claim(name=name, file=file, run_id=run_id, worker=worker)


class FixedSource:
    """Finds the same until it is told something else, and counts how often it was asked."""

    def __init__(self, name: str = "fixed", contents: Mapping[str, Json] | None = None) -> None:
        """`found` has what each place says."""
        self._name = name
        self._sensed: dict[str, Sensed] = {}
        self.etags_read = 0
        self.looks = 0
        for path, content in (contents or {}).items():
            self.show(path, content)

    @property
    def name(self) -> str:
        return self._name

    def show(
        self, path: str, content: Json = None, *, condition: Condition = "ok", why: str = ""
    ) -> None:
        """Set a reading. One that is not ok has no content and a reason."""
        self._sensed[path] = Sensed(
            source=self._name, place=path, condition=condition, why=why, content=content
        )

    def hide(self, path: str) -> None:
        """Remove a reading."""
        self._sensed.pop(path, None)

    async def etag(self) -> str:
        self.etags_read += 1
        return self._etag()

    async def look(self) -> Look:
        self.looks += 1
        sensed = tuple(self._sensed.values())
        return Look(source=self._name, found=sensed, total=len(sensed), mark=self._etag())

    def _etag(self) -> str:
        return digest_of([sensed.model_dump(mode="json") for sensed in self._sensed.values()])


class MemorySenseRecord:
    """Record in memory. Writing fails only when a test says so."""

    def __init__(self) -> None:
        self._held = False
        self._memory = json_of(SenseMemory())
        self._unwritten: SenseMemory | None = None
        self.problem = ""
        """Reason why memory cannot be written. Empty: it can."""
        self.bundle: Bundle | None = None
        self.plan: Json = None
        self.lines: list[str] = []
        """Of the main log, without their time."""
        self.parser_lines: list[str] = []
        self.outcomes: list[TickOutcome] = []

    @property
    def problems(self) -> tuple[str, ...]:
        return (self.problem,) if self.problem else ()

    @contextmanager
    def alone(self) -> Iterator[None]:
        if self._held:
            raise LockHeld("another loop ticks here; wait for it to end")
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self._unwritten = None

    def memory(self) -> SenseMemory:
        return self._unwritten or SenseMemory.model_validate_json(self._memory)

    def remember(self, memory: SenseMemory) -> bool:
        self._unwritten = memory if self.problem else None
        if not self.problem:
            self._memory = json_of(memory)
        return not self.problem

    def keep_bundle(self, bundle: Bundle) -> str:
        self.bundle = bundle
        return "context_bundle.json"

    def keep_plan(self, document: Json) -> str:
        self.plan = document
        return "plan.json"

    def log(self, text: str, *, at: UtcDatetime, kind: Literal["main", "parser"] = "main") -> None:
        (self.lines if kind == "main" else self.parser_lines).append(text)

    def tick_ended(self, outcome: TickOutcome) -> None:
        self.lines.append(outcome.summary())
        self.outcomes.append(outcome)


class MemoryTrustBook:
    """Keeps entries in their order, each once."""

    def __init__(self, entries: Iterable[TrustEntry] = ()) -> None:
        self._entries: dict[str, TrustEntry] = {}
        for entry in entries:
            self.add(entry)

    def entries(self) -> Sequence[TrustEntry]:
        return tuple(self._entries.values())

    def add(self, entry: TrustEntry) -> None:
        self._entries.setdefault(entry.key, entry)
