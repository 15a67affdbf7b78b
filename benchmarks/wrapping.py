"""Cost of a call that Podium performs for an agent besides the act: against its two durable commits."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import Figure, median
from benchmarks.floor import BareSqlite
from podium.core.decisions import (
    CallOutcome,
    CallRecord,
    CallStatus,
    Effect,
    Receipt,
    Tier,
    ToolSpec,
)
from podium.core.events import AnyEvent
from podium.core.model import Json
from podium.core.turns import Turn
from podium.core.work import Run, RunStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.policy import PolicyLayer, compile_policy, default_policy, split_command
from podium.policy.policy import Policy, PolicyRule
from podium.ports import EventQuery, StoreView, Transaction
from podium.sandbox import HookServer, ProcessLauncher, TurnHookServer
from podium.store import Redactor, SqlStore, StoreJournal
from podium.testing import FakeConfinementProvider
from podium.tools import (
    DoorSettings,
    GatedDoor,
    LocalToolbox,
    Registry,
    Tool,
    ToolboxSettings,
    ToolScope,
    builtin_tools,
)

ROUNDS = 800
WARM_UP_ROUNDS = 300
"""Until its write-ahead log has its full length, every commit makes it longer, which costs more."""
OWNER = "worker_1"
ROW = "x" * 600
"""About as long as what a commit of a call writes."""

NOTHING = ToolSpec(
    name="nothing",
    tier=Tier.T0,
    receipt_fields=("said",),
    input_schema={
        "type": "object",
        "properties": {"say": {"type": "string", "minLength": 1}},
        "required": ["say"],
        "additionalProperties": False,
    },
)
MAY_DO_NOTHING = PolicyRule(name="nothing", tool=("nothing",), decision=Effect.ALLOW)


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        async with _harness(_workspace(folder)) as harness:
            return [
                *await _figures(harness, "nothing", {"say": "a word"}),
                *await _figures(harness, "read_file", {"path": "a.py"}),
            ]


def _workspace(folder: str) -> Path:
    place = Path(folder).resolve()
    (place / "a.py").write_text("def work() -> None:\n    ...\n" * 8)
    return place


class Spent(NamedTuple):
    """Milliseconds by the clock, and of the processor."""

    clock: float
    cpu: float

    def less(self, other: Spent) -> Spent:
        return Spent(self.clock - other.clock, self.cpu - other.cpu)


def _now() -> Spent:
    return Spent(time.perf_counter() * 1000, time.process_time() * 1000)


@dataclass
class Harness:
    """A turn's door with all that is behind it in earnest, and the two floors."""

    store: SqlStore
    door: TurnHookServer
    bare: BareSqlite
    acts: list[Spent]
    """What the handlers themselves took, call by call."""

    async def call(self, tool: str, arguments: dict[str, Json]) -> Spent:
        """Return the cost of a call without its act."""
        began = _now()
        answer = await self.door.perform(tool, arguments)
        taken = _now().less(began)
        if answer.outcome is None or not answer.outcome.ok:
            raise RuntimeError(f"the call of {tool} did not go through: {answer}")
        return taken.less(self.acts.pop())

    async def commits(self, rows: Rows) -> Spent:
        """Return the store's cost for these rows, as they are."""
        began = _now()
        await self.store.write(rows.request)
        await self.store.write(rows.settle)
        return _now().less(began)


@dataclass(frozen=True)
class Rows:
    """Rows that a call leaves in the store, ready to be written again under another key."""

    asked: CallRecord
    settled: CallRecord
    receipt: Receipt
    requested: AnyEvent
    ended: AnyEvent

    def numbered(self, number: int) -> Rows:
        key = {"key": f"{self.settled.key}:{number}", "run_id": "run_2"}
        return replace(
            self,
            asked=self.asked.model_copy(update=key),
            settled=self.settled.model_copy(update=key),
            receipt=self.receipt.model_copy(update={"run_id": "run_2", "seal": ""}),
        )

    def request(self, tx: Transaction) -> None:
        tx.save_call(self.asked)
        tx.append("run_2", self.requested)

    def settle(self, tx: Transaction) -> None:
        tx.add_receipt(self.receipt)
        tx.append("run_2", self.ended)
        tx.save_call(self.settled)


def _rows_of(view: StoreView, call: str) -> Rows:
    """Return the rows that were written of the call with this key."""
    every = view.events(EventQuery(run_id="run_1", limit=10 * ROUNDS))
    requested, ended = (item.body for item in every if getattr(item.body, "call", "") == call)
    (receipt,) = (item for item in view.receipts("run_1") if item.call_key == call)
    (settled,) = (item for item in view.calls("run_1") if item.key == call)
    open_still = {"status": CallStatus.REQUESTED, "outcome": None, "settled_at": None}
    return Rows(settled.model_copy(update=open_still), settled, receipt, requested, ended)


async def _figures(harness: Harness, tool: str, arguments: dict[str, Json]) -> list[Figure]:
    made = await harness.door.perform(tool, arguments)
    rows = await harness.store.read(lambda view: _rows_of(view, made.call))
    ours: list[Spent] = []
    commits: list[Spent] = []
    bare: list[float] = []
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        again = rows.numbered(number)
        bare.append((harness.bare.insert(ROW) + harness.bare.insert(ROW)) * 1000)
        commits.append(await harness.commits(again))
        ours.append(await harness.call(tool, arguments))
    taken, floor = _medians(ours), _medians(commits)
    barest = median(bare[WARM_UP_ROUNDS:])
    name, against = f"wrapping of a call, {tool}", "its two commits"
    return [
        Figure(name, taken.clock, "ms", floor.clock, against, most_ratio=2.0),
        Figure(f"{name}, CPU", taken.cpu, "ms", floor.cpu, against),
        Figure("those two commits", floor.clock, "ms", barest, "two bare commits"),
    ]


def _medians(spent: list[Spent]) -> Spent:
    counted = spent[WARM_UP_ROUNDS:]
    return Spent(median([item.clock for item in counted]), median([item.cpu for item in counted]))


@asynccontextmanager
async def _harness(place: Path) -> AsyncIterator[Harness]:
    redactor = Redactor({"API_KEY": secrets.token_hex(20), "PASSWORD": secrets.token_hex(10)})
    clock, ids = SystemClock(), SystemIds()
    store = await SqlStore.open(
        place / "state", clock=clock, ids=ids, redact=redactor.json_text, key_dir=place / "vault"
    )
    run = Run(
        id="run_1", flow="bench", created_at=clock.now(), status=RunStatus.RUNNING, owner=OWNER
    )
    await store.write(lambda tx: tx.add_run(run))
    acts: list[Spent] = []
    doors = _doors(store, place, redactor, acts)
    turn = Turn(run_id="run_1", step_key="ask#0", role="tester", prompt="go", workspace=str(place))
    bare = BareSqlite(place / "bare.db")
    try:
        async with doors.open(turn) as door:
            yield Harness(store, door, bare, acts)
    finally:
        bare.close()
        await store.close()


def _doors(store: SqlStore, place: Path, redactor: Redactor, acts: list[Spent]) -> HookServer:
    gate = compile_policy(
        [
            PolicyLayer(origin="built-in", policy=default_policy()),
            PolicyLayer(origin="user", policy=Policy(rules=(MAY_DO_NOTHING,))),
        ]
    )
    tools = [*builtin_tools(), Tool(NOTHING, _nothing)]
    registry = Registry(_timed(tool, acts) for tool in tools)
    door = GatedDoor(
        store,
        gate,
        registry.spec,
        clock=SystemClock(),
        ids=SystemIds(),
        settings=DoorSettings(root=str(place), owner=OWNER),
        redact=redactor.text,
    )
    toolbox = LocalToolbox(
        registry,
        door,
        ProcessLauncher(),
        confinements=FakeConfinementProvider(),
        clock=SystemClock(),
        settings=ToolboxSettings(root=str(place)),
        split_command=split_command,
        looks_secret=lambda text: None if redactor.text(text) == text else "NAME",
        resolve_secret=str,
        redact=redactor.text,
        longest_secret=redactor.longest,
        passed_over=gate.passed_over,
    )
    return HookServer(door, toolbox, StoreJournal(store), redact=redactor.text, listens=False)


def _timed(tool: Tool, acts: list[Spent]) -> Tool:
    async def act(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json] | CallOutcome:
        began = _now()
        result = await tool.handler(arguments, scope)
        acts.append(_now().less(began))
        return result

    return replace(tool, handler=act)


async def _nothing(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    return {"said": arguments["say"]}
