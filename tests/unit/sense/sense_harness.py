"""A root with the layout of the loop, a planner whose plans are written down, and the house around them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.agents import ContractedAgent
from podium.agents.turn_step import RoleAgent
from podium.app.app import Podium
from podium.app.approvals import approve, reject
from podium.app.flow_registry import FlowBuilder, flow_builders
from podium.config.configuration import load_configuration
from podium.core.decisions import Approval, ApprovalStatus, Receipt, Usage
from podium.core.model import Json
from podium.core.turns import Reply, TurnLimits
from podium.core.work import Run, RunStatus
from podium.engine import FlowDefinition
from podium.jobs.sense import (
    SENSE,
    WORK_ORDER,
    PlannerDeps,
    SenseDeps,
    SenseJob,
    sense,
    status_of,
    tick,
)
from podium.jobs.sense.composition import (
    current_trust,
    empty_workspace,
    sense_options,
    tick_deps,
    trust_of,
)
from podium.jobs.sense.models import CandidateStatus, SenseMemory, TickOutcome
from podium.jobs.sense.options import order_queues
from podium.jobs.sense.orders.work_order import Ack
from podium.jobs.sense.orders.worker import inbox_tender
from podium.ports import Flow, RunQuery, StoreView
from podium.testing import FakeAgent, FixedClock, retry_until
from podium.testing.agents import PreparedReply
from tests.unit.sense.process_death import Death, doomed

INBOX = "bridge/inbox/CLC"
CANDIDATES = "g/reports/wo_candidates"
ACKS = "bridge/outbox/LIAM"
CLAIMED = "bridge/claimed/CLC"
PARKED = "bridge/parked/CLC"
DONE = "bridge/done/CLC"
HEALTH = "g/telemetry/health_check_latest.json"
REPORT = {"op": "append", "path": "g/reports/daily.md", "content": "one line\n"}
USAGE = Usage(input_tokens=100, output_tokens=11, turns=1)


def item(hint: str = "FIX-A", *ops: Json, **fields: Any) -> dict[str, Any]:
    """An item of a plan that suggests an order, of these operations or of words alone."""
    suggestion = {
        "wo_id_hint": hint,
        "title": f"see to {hint}",
        "summary": "it is due",
        "tasks": ["do it"],
        **({"ops": list(ops)} if ops else {}),
    }
    payload = {"type": "clc_task", "priority": "medium", "target": "api", "action": "create_wo"}
    return {**payload, "wo_suggestion": suggestion, **fields}


def plan(*items: Json) -> Reply:
    """Return a planner's reply with these items."""
    payload = {"timestamp": "2026-01-01T12:00:00Z", "source": "test", "items": list(items)}
    return Reply(text=json.dumps({**payload, "context_summary": "as it is"}), usage=USAGE)


class Station:
    """One root. `options` are those of `flows: sense:` in its podium.yaml.

    Where they name no planner, one that gives `replies` plans.
    """

    def __init__(
        self,
        folder: Path,
        replies: Iterable[PreparedReply] = (),
        settings: Mapping[str, Json] | None = None,
        **options: Json,
    ) -> None:
        self.root, self.home = (folder / "project").resolve(), folder / "home"
        self.root.mkdir(parents=True)
        self.planner = FakeAgent(replies, name="planner")
        self._is_fake = "planner" not in options
        # A database server has a clock of its own, which must not be far away.
        self.clock = FixedClock(datetime.now(UTC))
        self.seconds = 180.0
        """How long the planner may take."""
        self.variables: dict[str, str] = {}
        given = {**(settings or {}), "flows": {"sense": options}}
        (self.root / "podium.yaml").write_text(yaml.safe_dump(given))
        self.write(HEALTH, json.dumps({"status": "ok"}))
        self.write(f"{ACKS}/WO-0.ack.json", json.dumps({"wo_id": "WO-0", "status": "done"}))
        self.write("state/clc_sessions/SESSION-DEMO-001.yaml", "status: running\n")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        # Long settled by the clock of the test, which is not that of the file system.
        os.utime(file, (1_700_000_000, 1_700_000_000 + len(text)))
        return file

    def pass_time(self, seconds: float) -> None:
        """Let time pass here, where no database server keeps it."""
        if "PODIUM_DATABASE_URL" in os.environ:
            pytest.skip("the clock of a database server cannot be moved")
        self.clock.advance(seconds)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def files(self, folder: str) -> list[str]:
        found = self.root / folder
        return sorted(path.name for path in found.iterdir()) if found.is_dir() else []

    def tree(self) -> dict[str, bytes]:
        """Every file but Podium's own state."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".podium" not in path.relative_to(self.root).parts
        }

    def ack(self, wo_id: str) -> Ack:
        return Ack.model_validate_json(self.read(f"{ACKS}/{wo_id}.ack.json"))

    def telemetry(self) -> list[dict[str, Any]]:
        lines = self.read("g/telemetry/gmx_clc_orch.jsonl").splitlines()
        return [json.loads(line) for line in lines]

    def log(self) -> str:
        return self.read("logs/gmx_clc_orchestrator.log")

    @property
    def memory(self) -> SenseMemory:
        payload = json.loads(self.read(".podium/sense/memory.json"))
        payload.pop("format")
        return SenseMemory.model_validate_json(json.dumps(payload))

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PODIUM_DATABASE_URL",) if name in os.environ}
        own = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "PODIUM_HOME": str(self.home)}
        return {**own, **kept, **self.variables, "PODIUM_USER": "ann"}

    @asynccontextmanager
    async def open(
        self, deaths: Mapping[str, Death] | None = None, **flags: Json
    ) -> AsyncIterator[Post]:
        """A process at work here. `flags` are those of the command line, such as `mode`.

        `deaths` has the flows in which it dies.
        """
        configuration = load_configuration(self.environ, project=self.root, flags=flags)
        flows = {**flow_builders(), **({SENSE: self._sense} if self._is_fake else {})}
        for name, death in (deaths or {}).items():
            flows[name] = _dying_in(flows[name], death)
        podium = Podium(
            configuration, self.environ, clock=self.clock, flows=flows, notify=lambda text: None
        )
        try:
            async with AsyncExitStack() as stack:
                yield Post(self, podium, stack)
        finally:
            await podium.close()

    async def _sense(self, podium: Podium) -> Flow:
        options = sense_options(podium)
        agent = ContractedAgent(self.planner, new_nonce=None, redact=podium.redactor.text)
        planner = PlannerDeps(
            name="planner",
            role_agent=RoleAgent(
                role="planner",
                agent=agent,
                allowed_tools=(),
                limits=TurnLimits(seconds=self.seconds),
            ),
            profile=options.profiles[options.profile],
            workspace=empty_workspace(podium),
        )
        deps = SenseDeps(
            store=await podium.store(),
            clock=podium.clock,
            budget=await podium.budget_tracker(),
            options=options,
            planner=planner,
        )
        return FlowDefinition(SENSE, sense(deps), input_type=SenseJob)


@dataclass(frozen=True)
class Post:
    """A process at a station: it ticks, works, and passes on what people say."""

    station: Station
    podium: Podium
    stack: AsyncExitStack

    async def tick(self, *, manual: bool = False) -> TickOutcome:
        return await tick(await tick_deps(self.podium, self.stack), manual=manual)

    async def serve(self) -> None:
        """From now on candidates and orders go on in this process."""
        engine = await self.podium.hosting_engine()
        queues = order_queues(self.podium.configuration)
        await self.stack.enter_async_context(engine.serve(queues))

    async def tend(self) -> int:
        return await (await inbox_tender(self.podium)).tend()

    async def work(self) -> list[Run]:
        """Take what lies in the inbox, and give all orders when none goes on by itself."""
        await self.serve()
        await self.tend()
        return await self.at_rest(WORK_ORDER)

    async def at_rest(self, flow: str) -> list[Run]:
        """The runs of a flow, oldest first, once each has ended or waits for a person."""

        async def resting() -> list[Run] | None:
            found = await self.runs(flow)
            return found if found and all(_rests(run) for run in found) else None

        found = await retry_until(resting)
        assert found is not None
        return found

    async def runs(self, flow: str) -> list[Run]:
        store = await self.podium.store()
        found = await store.read(lambda view: view.runs(RunQuery(flow=flow, limit=1_000)))
        return sorted(found, key=lambda run: run.id)

    async def run(self, run_id: str) -> Run:
        found = await (await self.podium.store()).read(lambda view: view.run(run_id))
        assert found is not None
        return found

    async def status(self, run_id: str) -> CandidateStatus:
        """Wait for a candidate to end and return its status."""

        async def ended() -> CandidateStatus | None:
            def look(view: StoreView) -> CandidateStatus | None:
                run = view.run(run_id)
                return status_of(view, run) if run and run.status.ended else None

            return await (await self.podium.store()).read(look)

        found = await retry_until(ended)
        assert found is not None
        return found

    async def waiting_approvals(self) -> list[Approval]:
        store = await self.podium.store()
        return await store.read(lambda view: view.approvals(statuses=(ApprovalStatus.PENDING,)))

    async def approvals(self, run_id: str) -> list[Approval]:
        store = await self.podium.store()
        return await store.read(lambda view: view.approvals(run_id=run_id))

    async def receipts(self, run_id: str) -> list[Receipt]:
        store = await self.podium.store()
        return await store.read(lambda view: view.receipts(run_id))

    async def say_yes(self, approval_id: str, by: str = "ann") -> None:
        await approve(
            await self.podium.store(), self.podium.clock, self.podium.ids, approval_id, by=by
        )

    async def say_no(self, approval_id: str, why: str = "not now") -> None:
        await reject(
            await self.podium.store(), self.podium.clock, self.podium.ids, approval_id,
            by="ann", why=why,
        )  # fmt: skip

    async def dies_with(self, death: Death) -> None:
        """Abandon all that goes on here once death has come."""
        async with asyncio.timeout(120):
            await death.has_come.wait()
        engine: Any = await self.podium.hosting_engine()
        await engine.abandon()

    @property
    def trust(self) -> Any:
        return trust_of(self.podium)

    @property
    def standings(self) -> Any:
        return current_trust(self.podium)


def _dying_in(build: FlowBuilder, death: Death) -> FlowBuilder:
    async def built(podium: Podium) -> Flow:
        return doomed(await build(podium), death)

    return built


def _waits(run: Run) -> bool:
    if run.status is RunStatus.NEEDS_HUMAN:
        return True
    waits = run.waiting_for or ""
    return run.status is RunStatus.WAITING and waits.startswith("approval:")


def _rests(run: Run) -> bool:
    return run.status.ended or _waits(run)
