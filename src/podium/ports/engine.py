"""Engine port: durable runs of registered flows; clock and ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from podium.core.model import FrozenModel

if TYPE_CHECKING:
    from podium.core.errors import StoreFull
    from podium.core.events import EventBody
    from podium.core.model import Json
    from podium.core.work import QueueSpec, Run, Schedule, Signal
    from podium.ports.gate import Checkpoint
    from podium.ports.store import RunQuery, Transaction


T = TypeVar("T")


class Retry(FrozenModel):
    """Further tries of a step, for errors that pass by themselves."""

    attempts: int = 1
    first_delay_seconds: float = 0.5
    factor: float = 2.0
    longest_delay_seconds: float = 60.0


ONCE = Retry()
"""No second try."""


class StepContext(Protocol):
    """The step a function runs in."""

    @property
    def run_id(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def idempotency_key(self) -> str:
        """`run:step`, the same at every attempt: hand it to whatever is called outside."""
        ...

    @property
    def checkpoint(self) -> Checkpoint:
        """For a step that is one transaction, such as the settling of a call: records the step in it."""
        ...


StepFunction = Callable[[StepContext], Awaitable[T]]


class FlowContext(Protocol):
    """Operations of a flow's body. Between two of these calls it must be deterministic."""

    @property
    def run(self) -> Run:
        """The run as it was when this process took it."""
        ...

    async def step(
        self,
        name: str,
        function: StepFunction[T],
        *,
        index: int = 0,
        returns: Any = None,
        retry: Retry = ONCE,
    ) -> T:
        """Do something once and remember what came out, in one commit.

        The key is name and index, unique in the run. `returns` is the type of the output when it
        is not plain JSON. What is given back went through JSON, the first time too.
        """
        ...

    async def wait(
        self,
        signal: str,
        *,
        index: int = 0,
        seconds: float | None = None,
        until: datetime | None = None,
    ) -> Signal | None:
        """Wait for a signal, for days if need be. None: the deadline passed."""
        ...

    async def ask_person(self, name: str, reason: str, *, index: int = 0) -> Signal:
        """Stop until a person has looked and resumed the run; what they said is the signal's payload.

        Until then the run is `needs_human`, with this reason.
        """
        ...

    async def sleep(self, name: str, *, index: int = 0, seconds: float) -> None:
        """Wait for a while. The end is fixed when the wait begins and survives restarts."""
        ...

    async def now(self, name: str, *, index: int = 0) -> datetime:
        """The time, remembered."""
        ...

    async def pin(self) -> None:
        """From here on only this host can go on with the run, until the host is lost.

        No step: whoever hosts the run says it anew.
        """
        ...

    async def start_child(
        self,
        name: str,
        flow: str,
        input: Json,
        *,
        queue: str,
        index: int = 0,
        priority: int = 0,
        dedup_key: str | None = None,
        task: str = "",
    ) -> str:
        """Queue a child run exactly once and give its id."""
        ...

    async def child(self, run_id: str) -> Run:
        """Wait until a child ended."""
        ...

    def note(self, body: EventBody) -> None:
        """Add an event to the run's stream, soon. Not repeated on replay once a later step is recorded."""
        ...


FlowBody = Callable[[FlowContext, Any], Awaitable[Any]]


class Flow(Protocol):
    """A registered flow."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int:
        """Raise it when recorded runs of the old code cannot go on under the new."""
        ...

    @property
    def input_type(self) -> Any:
        """Type the input is validated against; None for plain JSON."""
        ...

    @property
    def code(self) -> Any:
        """Function whose source is the flow."""
        ...

    @property
    def body(self) -> FlowBody: ...


class Engine(Protocol):
    """Starts, owns and ends runs. Any process may ask it about runs of another."""

    @property
    def worker_id(self) -> str:
        """This process's name as the owner of runs."""
        ...

    def register(self, flow: Flow) -> None: ...

    async def start(
        self,
        flow: str,
        input: Json = None,
        *,
        task: str = "",
        queue: str | None = None,
        priority: int = 0,
        dedup_key: str | None = None,
        delay_seconds: float = 0.0,
        settings: dict[str, Json] | None = None,
        run_id: str | None = None,
        along: Callable[[Transaction], None] | None = None,
    ) -> Run:
        """Store a run. Without a queue this process hosts it at once; with one, a worker will.

        `along` is done in the transaction that stores the run: both are kept, or neither is.
        """
        ...

    async def finish(self, run_id: str, *, stop_when_waiting: bool = False) -> Run:
        """Wait until the run ended or needs a person; with `stop_when_waiting` also until it waits
        for more than time to pass.

        The run may be hosted by any process.
        """
        ...

    async def signal(self, run_id: str, name: str, payload: Json = None, *, by: str = "") -> None:
        """Leave a message for the run; whoever hosts it goes on."""
        ...

    async def cancel(self, run_id: str, *, by: str, why: str = "") -> Run:
        """Wish the run ended. It is `cancelled` only when all its processes are dead."""
        ...

    async def resume(self, run_id: str, *, note: str = "", by: str = "") -> Run:
        """Host a run here that nobody hosts. Raises `LockHeld` while another process does.

        `note` is a person's guidance for a run that asked for it.
        """
        ...

    async def retry(self, run_id: str, *, from_step: str | None = None, by: str = "") -> Run:
        """Forget a step and all after it, and host the run here. Events stay.

        Without `from_step` that is the last step that failed, if any did.
        """
        ...

    def disk_full_error(self) -> StoreFull | None:
        """The full disk that keeps this process from taking runs, once it hosts none any more."""
        ...

    async def runs(self, query: RunQuery) -> list[Run]: ...

    async def alive(self) -> set[str]:
        """Ids of the workers that are alive: those that may still own runs."""
        ...

    async def hosted(self, run_ids: Sequence[str]) -> set[str]:
        """Those of the runs that a process alive hosts now, this one or another."""
        ...

    def serve(
        self, queues: Sequence[QueueSpec], *, answered_queue: str = ""
    ) -> AbstractAsyncContextManager[None]:
        """While open, claim and host runs of these queues, fire schedules, take over the dead's runs.

        Runs of the foreground that nobody hosts any more and whose approval is answered join
        `answered_queue`, one of `queues`; without it they are left to people.
        """
        ...

    async def schedule(self, schedule: Schedule) -> None: ...
    async def unschedule(self, name: str) -> None: ...

    async def close(self) -> None:
        """Stop hosting: end running steps, leave every run at its checkpoint, let go of the leases."""
        ...


class Clock(Protocol):
    """Source of time."""

    def now(self) -> datetime:
        """The present moment, absolute, in UTC. For records and deadlines."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back. For timeouts and durations."""
        ...


class Ids(Protocol):
    """Source of identifiers."""

    def new(self, prefix: str) -> str:
        """A fresh id such as `run_…`, later ones sorting after earlier ones."""
        ...
