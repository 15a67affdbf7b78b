"""Sessions: what was said, created and shown in one person's conversation, kept in the store."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from pydantic import Field, ValidationError

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime, json_of
from podium.core.work import StepRecord, StepStatus
from podium.jobs.operator.models import AnswerStatus, RecordRef

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.ports import Store, StoreView, Transaction

MAX_TURNS = 20
MAX_BYTES = 64_000
"""Of a session. Older turns are dropped first; the last one stays."""
MAX_AGE = timedelta(days=1)
"""After this time a turn is forgotten."""
MAX_SESSIONS = 20
"""Of one person. The one that was idle for longest is dropped."""
MAX_CONTEXT_BYTES = 8_000
MAX_RECORDS = 50
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class SessionTurn(FrozenModel):
    """One message of a session with what came of it."""

    at: UtcDatetime
    text: str
    """The request that was read: a correction or an answer leaves that of the turn before."""
    full_text: str
    """All that the person said of it."""
    about: str = ""
    context: dict[str, Json] = Field(default_factory=dict)
    """Values that were known. Large ones are left out."""
    pack: str = ""
    status: AnswerStatus = "error"
    tools: tuple[str, ...] = ()
    """Tools of the plan, or those that may be meant."""
    missing: tuple[str, ...] = ()
    options: tuple[RecordRef, ...] = ()
    option_field: str = ""
    run_id: str = ""
    action_id: str = ""
    """The approval that the plan waits for."""
    settled: bool = True
    """False until the results of the run are known."""
    records: tuple[RecordRef, ...] = ()
    """Records that it was about, the most important first."""
    shown: tuple[RecordRef, ...] = ()
    """List of records that was shown."""


class Session(FrozenModel):
    """State of a conversation. `number` counts its changes: who saw another one did not see this."""

    person: NonEmpty
    name: NonEmpty
    number: int = 0
    turns: tuple[SessionTurn, ...] = ()

    @property
    def last(self) -> SessionTurn | None:
        return self.turns[-1] if self.turns else None

    @property
    def focus(self) -> tuple[RecordRef, ...]:
        """Every record that was spoken of, the newest first, once."""
        refs = (ref for turn in reversed(self.turns) for ref in turn.records)
        return tuple({(ref.kind, ref.id): ref for ref in reversed([*refs])}.values())[::-1][
            :MAX_RECORDS
        ]

    @property
    def shown(self) -> tuple[RecordRef, ...]:
        return next((turn.shown for turn in reversed(self.turns) if turn.shown), ())

    def with_turn(self, turn: SessionTurn, *, replaces: bool = False) -> Session:
        """The session with one more turn, or with another last one."""
        earlier = self.turns[:-1] if replaces else self.turns
        return self.model_copy(update={"number": self.number + 1, "turns": (*earlier, turn)})

    def bounded(self, now: datetime) -> Session:
        """The session without what is too old or too much."""
        turns = [turn for turn in self.turns if now - turn.at <= MAX_AGE][-MAX_TURNS:]
        sizes = [len(json_of(turn).encode()) for turn in turns]
        while len(turns) > 1 and sum(sizes) > MAX_BYTES:
            del turns[0], sizes[0]
        return self.model_copy(update={"turns": tuple(turns)})


class SessionMemory(Protocol):
    """Storage of one session."""

    async def load(self) -> Session:
        """The session as it is now."""
        ...

    def save(self, tx: Transaction, before: Session, session: Session) -> None:
        """Keep the session with the transaction. Raises `NotPossibleNow` when it is not as `before` any more."""
        ...

    async def keep(self, before: Session, session: Session) -> None:
        """Keep the session. Raises as `save`."""
        ...


class StoredSession:
    """A session in the project's store. It is durable when its transaction is."""

    def __init__(self, podium: Podium, person: str, name: str) -> None:
        """Raises `BadInput` for what is no name of a session."""
        must_be_session_name(name)
        self._podium = podium
        self._empty = Session(person=person, name=name)

    async def load(self) -> Session:
        if not self._podium.has_record:
            return self._empty
        store: Store = await self._podium.store()
        return await store.read(self._read)

    async def keep(self, before: Session, session: Session) -> None:
        store = await self._podium.store()
        await store.write(lambda tx: self.save(tx, before, session))

    def save(self, tx: Transaction, before: Session, session: Session) -> None:
        current = self._read(tx)
        if current.number != before.number:
            raise NotPossibleNow(
                f"session {session.name!r} went on in another process meanwhile, so nothing was done; "
                "send the message again"
            )
        now = self._podium.clock.now()
        kept = session.bounded(now)
        tx.save_step(
            StepRecord(
                run_id=folder_of(kept.person),
                key=kept.name,
                status=StepStatus.COMPLETED,
                output=json.loads(json_of(kept)),
                started_at=now,
                finished_at=now,
            )
        )
        _drop_idle(tx, kept.person, now)

    def _read(self, view: StoreView) -> Session:
        empty = self._empty
        return _session(view.step(folder_of(empty.person), empty.name), empty)


@dataclass
class HeldTurns:
    """Turns of a prompt in a folder in which nothing is stored yet."""

    turns: tuple[SessionTurn, ...] = ()


class PromptSession:
    """A session that nobody named: held by its prompt until the project has a record, and stored from then on."""

    def __init__(self, podium: Podium, person: str, name: str, held: HeldTurns) -> None:
        self._podium = podium
        self._stored = StoredSession(podium, person, name)
        self._held = held

    async def load(self) -> Session:
        session = await self._stored.load()
        return session if session.turns else session.model_copy(update={"turns": self._held.turns})

    async def keep(self, before: Session, session: Session) -> None:
        if self._podium.has_record:
            await self._stored.keep(before, session)
        else:
            # The number stays: what is stored later is compared with what is stored.
            self._held.turns = session.bounded(self._podium.clock.now()).turns

    def save(self, tx: Transaction, before: Session, session: Session) -> None:
        self._stored.save(tx, before, session)


def must_be_session_name(name: str) -> None:
    """Raises `BadInput` for what is no name of a session."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"session name {name[:60]!r} is not valid; use up to 40 letters, digits and `-_.`"
        )


def folder_of(person: str) -> str:
    """The id under which the store keeps a person's sessions, beside the steps of runs."""
    return f"sessions_{hashlib.sha256(person.encode()).hexdigest()[:32]}"


def list_sessions(view: StoreView, person: str) -> list[Session]:
    """Read all sessions of a person."""
    empty = Session(person=person, name="none")
    sessions = (_session(record, empty) for record in view.steps(folder_of(person)))
    return [session for session in sessions if session.turns]


def forget_sessions(tx: Transaction, person: str, text: str) -> int:
    """Erase the sessions of a person in which a text was said, and return their number. Empty: all of them."""
    names = [
        session.name
        for session in list_sessions(tx, person)
        if any(text.casefold() in turn.full_text.casefold() for turn in session.turns)
    ]
    tx.drop_steps(folder_of(person), names)
    return len(names)


def _session(record: StepRecord | None, empty: Session) -> Session:
    """The stored session; an empty one where there is none, and for one that another version wrote or another person owns."""
    if record is None:
        return empty
    try:
        session = Session.model_validate_json(json.dumps(record.output))
    except ValidationError:
        return empty
    return session if session.person == empty.person else empty


def _drop_idle(tx: Transaction, person: str, now: datetime) -> None:
    """Erase the sessions whose last turn is too old, and the oldest of too many."""
    records = sorted(
        tx.steps(folder_of(person)), key=lambda record: record.started_at, reverse=True
    )
    idle = [
        record.key
        for place, record in enumerate(records)
        if place >= MAX_SESSIONS or now - record.started_at > MAX_AGE
    ]
    if idle:
        tx.drop_steps(folder_of(person), idle)


def small(context: Mapping[str, Json]) -> dict[str, Json]:
    """The values of a context that are small enough to be remembered."""
    kept: dict[str, Json] = {}
    for name, value in context.items():
        if len(json.dumps({**kept, name: value}).encode()) <= MAX_CONTEXT_BYTES:
            kept[name] = value
    return kept


def distinct(refs: Iterable[RecordRef]) -> tuple[RecordRef, ...]:
    """Each record once, where it came first."""
    return tuple({(ref.kind, ref.id): ref for ref in reversed([*refs])}.values())[::-1]
