"""Asking an agent from a flow: what a turn is given, what it may use, whom it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.conversation import GO_ON, ask_until_answered
from podium.agents.turn_step import RoleAgent, ask
from podium.core.decisions import Approval, Budget, Tier, Usage
from podium.core.errors import AgentLost, AgentRefused, RateLimited, TimedOut
from podium.core.events import AgentReplied, AnyEvent, ModelAnswered, StepBroke, UsageRecorded
from podium.core.ids import short_id
from podium.core.turns import ModelAnswer, Reply, Turn, TurnLimits
from podium.core.work import QueueSpec, Run, RunStatus
from podium.engine import EngineSettings, FlowDefinition, FolderPresence, LocalEngine
from podium.ports import EventQuery, FlowContext, Transaction
from podium.testing import FakeAgent, FixedClock, MemoryStore, SteadyIds, retry_until

ONE_TURN = Budget(scope="run", turns=1)
USED = Usage(turns=1, usd=0.25, input_tokens=30, output_tokens=10)


class Harness:
    """An engine on a store in memory. Opened again it is another process on the same store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FixedClock()
        self.store = MemoryStore(self.clock)
        self.agent = FakeAgent()
        self.is_patient = False
        self._ids = SteadyIds()
        self._engines: list[LocalEngine] = []

    def answers(self, *replies: Any) -> FakeAgent:
        self.agent = FakeAgent(replies)
        return self.agent

    def open(self, *budgets: Budget, notify: Callable[..., Any] | None = None) -> LocalEngine:
        engine = LocalEngine(
            self.store,
            clock=self.clock,
            ids=self._ids,
            presence=FolderPresence(self.folder),
            settings=EngineSettings(tick_seconds=0.02),
        )
        budget_tracker = BudgetTracker(self.store, self.clock, budgets)
        limits = TurnLimits(seconds=77)
        role_agent = RoleAgent(
            "developer", self.agent, ("read_file",), limits=limits, is_patient=self.is_patient
        )

        async def body(ctx: FlowContext, input: Any) -> Any:
            return await (notify or two_scenes)(ctx, role_agent, budget_tracker)

        engine.register(FlowDefinition("story", body))
        self._engines.append(engine)
        return engine

    async def stop(self, engine: LocalEngine) -> None:
        self._engines.remove(engine)
        await engine.close()

    async def close(self) -> None:
        for engine in self._engines:
            await engine.close()
        await self.store.close()

    async def events(self, run: Run) -> list[AnyEvent]:
        found = await self.store.read(lambda view: view.events(EventQuery(run_id=run.id)))
        return [event.body for event in found]

    async def asks(self, run_id: str, approval_id: str, seconds: float) -> None:
        """Store a question that can be answered for so long."""
        now = self.clock.now()
        approval = Approval(
            id=approval_id,
            run_id=run_id,
            call_key="k",
            digest="d",
            tool="t",
            summary="s",
            tier=Tier.T2,
            requested_at=now,
            deadline=now + timedelta(seconds=seconds),
        )
        await self.store.write(lambda tx: tx.save_approval(approval))


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    harness = Harness(tmp_path)
    yield harness
    await harness.close()


async def two_scenes(
    ctx: FlowContext, role_agent: RoleAgent, budget_tracker: BudgetTracker
) -> list[str]:
    names = ("one", "two")
    replies = [
        await ask(ctx, role_agent, name, budget=budget_tracker, name=name, workspace="/w")
        for name in names
    ]
    return [reply.text for reply in replies]


async def until_answered(
    ctx: FlowContext, role_agent: RoleAgent, budget_tracker: BudgetTracker
) -> str:
    reply = await ask_until_answered(
        ctx, role_agent, "go", budget=budget_tracker, name="act", workspace="/w", most_turns=2
    )
    return reply.text


async def test_a_turn_has_the_tools_of_its_role_and_the_seconds_of_its_agent(
    harness: Harness,
) -> None:
    agent = harness.answers("a", "b")
    engine = harness.open()
    done = await engine.finish((await engine.start("story")).id)
    assert done.result == ["a", "b"]
    turn = agent.turns[0]
    assert (turn.role, turn.workspace, turn.prompt) == ("developer", "/w", "one")
    assert (turn.allowed_tools, turn.limits.seconds) == (("read_file",), 77)


async def test_a_turn_beyond_the_budget_is_not_asked_until_the_limit_is_raised(
    harness: Harness,
) -> None:
    agent = harness.answers(Reply(text="a", usage=USED), Reply(text="b", usage=USED))
    engine = harness.open(ONE_TURN)
    run = await engine.start("story", settings={"budgets": [ONE_TURN.model_dump()]})
    stopped = await engine.finish(run.id)
    assert stopped.status is RunStatus.NEEDS_HUMAN
    assert stopped.failure is not None
    assert (stopped.failure.kind, stopped.failure.exit_code) == ("BudgetSpent", 5)
    assert "the run's budget is spent: 1 of 1 turns are used" in stopped.failure.message
    assert len(agent.turns) == 1

    await harness.stop(engine)
    same = harness.open(ONE_TURN)
    await same.resume(run.id)
    assert (await same.finish(run.id)).status is RunStatus.NEEDS_HUMAN
    assert len(agent.turns) == 1, "resuming alone raised the limit"

    await harness.stop(same)
    more = harness.open(Budget(scope="run", turns=2))
    await more.resume(run.id)
    done = await more.finish(run.id)
    assert (done.status, done.result) == (RunStatus.SUCCEEDED, ["a", "b"])


@pytest.mark.parametrize(
    "budget",
    [
        Budget(scope="run", usd=0.25),
        Budget(scope="run", tokens=40),
        Budget(scope="day", turns=1),
        Budget(scope="day", usd=0.2),
    ],
)
async def test_every_limit_of_run_and_day_holds_for_turns(harness: Harness, budget: Budget) -> None:
    agent = harness.answers(Reply(text="a", usage=USED), "b")
    engine = harness.open(budget)
    stopped = await engine.finish((await engine.start("story")).id)
    assert stopped.failure is not None
    assert stopped.failure.kind == "BudgetSpent"
    assert f"the {budget.scope}'s budget is spent" in stopped.failure.message
    assert len(agent.turns) == 1


async def test_a_run_keeps_to_the_budget_it_was_started_with(harness: Harness) -> None:
    agent = harness.answers(Reply(text="a", usage=USED), "b")
    engine = harness.open(Budget(scope="run", turns=9))
    money = Budget(scope="run", usd=5).model_dump()
    run = await engine.start("story", settings={"budgets": [ONE_TURN.model_dump(), money]})
    stopped = await engine.finish(run.id)
    assert stopped.status is RunStatus.NEEDS_HUMAN
    assert len(agent.turns) == 1
    assert stopped.settings["budgets"] == [money], "only what stopped the run is lifted"


async def test_what_a_turn_used_is_counted_and_recorded_once(harness: Harness) -> None:
    harness.answers(Reply(text="a", usage=USED), Reply(text="b", usage=USED))
    engine = harness.open()
    run = await engine.finish((await engine.start("story")).id)
    day = harness.clock.now().date()
    names = [f"usd:run:{run.id}", f"usd:day:{day}", f"usd:step:{run.id}:two"]
    begun = run.created_at
    counted = await harness.store.read(lambda view: [view.counted(name, begun) for name in names])
    assert counted == [0.5, 0.5, 0.25]
    recorded = [event for event in await harness.events(run) if isinstance(event, UsageRecorded)]
    assert recorded == [
        UsageRecorded(source="agent:fake", usage=USED, step=step) for step in ("one", "two")
    ]


async def slept_through(harness: Harness, run: Run) -> float:
    """Let the run's pause pass; gives its seconds."""

    async def sleeps() -> datetime | None:
        now = await harness.store.read(lambda view: view.run(run.id))
        assert now is not None
        until = now.wake_at if now.only_sleeps else None
        return until if until is not None and until > harness.clock.now() else None

    until = await retry_until(sleeps)
    assert until is not None
    seconds = (until - harness.clock.now()).total_seconds()
    harness.clock.advance(seconds)
    return float(seconds)


async def test_a_lost_agent_is_asked_again_after_growing_pauses_and_then_a_person_is(
    harness: Harness,
) -> None:
    lost = [AgentLost(f"gone {number}") for number in range(7)]
    agent = harness.answers(*lost, "a", "b")
    engine = harness.open(Budget(scope="run", turns=100))
    run = await engine.start("story")
    pauses = [await slept_through(harness, run) for _ in range(5)]
    assert pauses == [1, 2, 4, 8, 16]
    stuck = await engine.finish(run.id)
    assert (stuck.status, len(agent.turns)) == (RunStatus.NEEDS_HUMAN, 6)
    assert stuck.failure is not None
    assert stuck.failure.exit_code == 3
    assert "developer: gone 5; tried 6 times" in stuck.failure.message
    assert f"`podium resume {short_id(run.id)}` tries again" in stuck.failure.message
    assert "`podium agents check fake --ask`" in stuck.failure.message
    broke = [event for event in await harness.events(run) if isinstance(event, StepBroke)]
    assert [(item.failure.message, item.final) for item in broke] == [
        (f"gone {number}", False) for number in range(6)
    ]

    await harness.stop(engine)
    same = harness.open(Budget(scope="run", turns=100))
    await same.resume(run.id, note="I restarted it", by="ann")
    assert await slept_through(harness, run) == 1
    done = await same.finish(run.id)
    assert done.result == ["a", "b"]
    assert {turn.step_key for turn in agent.turns[:8]} == {"one"}, "calls would be made twice"
    assert agent.turns[6].prompt == "one\n\nA person says: I restarted it"
    spent = [event for event in await harness.events(run) if isinstance(event, UsageRecorded)]
    assert sum(item.usage.turns for item in spent) == 7, "a loss is not counted"


async def test_turn_of_a_patient_role_that_runs_out_of_time_is_asked_again_and_then_a_person_is(
    harness: Harness,
) -> None:
    late = [TimedOut(f"no answer within 77 s ({number})") for number in range(4)]
    agent = harness.answers(*late[:2], AgentLost("gone"), *late[2:], "a", "b")
    harness.is_patient = True
    engine = harness.open(Budget(scope="run", turns=100))
    run = await engine.start("story")
    assert [await slept_through(harness, run) for _ in range(3)] == [1, 2, 1]
    stuck = await engine.finish(run.id)
    assert (stuck.status, len(agent.turns)) == (RunStatus.NEEDS_HUMAN, 4)
    assert stuck.failure is not None
    assert "no answer within 77 s (2); tried 3 times" in stuck.failure.message
    assert "`agents: fake: timeout_seconds:`" in stuck.failure.message
    broke = [event for event in await harness.events(run) if isinstance(event, StepBroke)]
    kinds = [item.failure.kind for item in broke]
    assert kinds == ["TimedOut", "TimedOut", "AgentLost", "TimedOut"]

    await harness.stop(engine)
    same = harness.open(Budget(scope="run", turns=100))
    await same.resume(run.id, note="in small steps", by="ann")
    assert await slept_through(harness, run) == 1
    assert (await same.finish(run.id)).result == ["a", "b"]
    assert agent.turns[4].prompt == "one\n\nA person says: in small steps"


async def test_turns_that_run_out_of_time_end_with_the_budget(harness: Harness) -> None:
    agent = harness.answers(TimedOut("late"), TimedOut("late"), "a")
    harness.is_patient = True
    engine = harness.open(Budget(scope="run", turns=2))
    run = await engine.start("story")
    assert [await slept_through(harness, run) for _ in range(2)] == [1, 2]
    stopped = await engine.finish(run.id)
    assert (stopped.status, len(agent.turns)) == (RunStatus.NEEDS_HUMAN, 2)
    assert stopped.failure is not None
    assert stopped.failure.kind == "BudgetSpent"


async def test_rate_limit_without_a_known_end_is_waited_for_by_a_patient_role(
    harness: Harness,
) -> None:
    agent = harness.answers(RateLimited("too much"), RateLimited("too much"), "a", "b")
    harness.is_patient = True
    engine = harness.open()
    run = await engine.start("story")
    assert [await slept_through(harness, run) for _ in range(2)] == [30, 60]
    assert (await engine.finish(run.id)).result == ["a", "b"]
    assert len(agent.turns) == 4


async def test_the_pause_of_a_lost_agent_goes_on_in_another_process(harness: Harness) -> None:
    harness.answers(AgentLost("gone"), "a", "b")
    engine = harness.open()
    run = await engine.start("story")
    await slept_through(harness, run)
    await harness.stop(engine)
    same = harness.open()
    await same.resume(run.id)
    assert (await same.finish(run.id)).result == ["a", "b"]


async def test_a_turn_without_an_answer_is_counted_too(harness: Harness) -> None:
    harness.answers(AgentLost("gone"))
    engine = harness.open()
    run = await engine.start("story")
    await slept_through(harness, run)
    [recorded] = [event for event in await harness.events(run) if isinstance(event, UsageRecorded)]
    assert (recorded.usage.turns, recorded.usage.complete) == (1, False)


async def test_what_a_cancelled_turn_used_is_in_the_cost_of_its_run(harness: Harness) -> None:
    began = asyncio.Event()

    async def works_until_cancelled(turn: Turn) -> Reply:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            vars(error)["usage"] = USED  # as agents do
            raise
        raise AssertionError

    harness.answers(works_until_cancelled)
    engine = harness.open()
    run = await engine.start("story")
    await began.wait()
    await engine.cancel(run.id, by="ann")
    ended = await engine.finish(run.id)
    assert ended.status is RunStatus.CANCELLED
    spent = [event.usage for event in await harness.events(run) if isinstance(event, UsageRecorded)]
    assert spent == [USED]
    counted = await harness.store.read(
        lambda view: view.counted(f"usd:run:{run.id}", run.created_at)
    )
    assert counted == USED.usd


async def test_cancelled_turn_that_reports_nothing_is_still_a_turn(harness: Harness) -> None:
    began = asyncio.Event()

    async def works(turn: Turn) -> Reply:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    harness.answers(works)
    engine = harness.open()
    run = await engine.start("story")
    await began.wait()
    await harness.stop(engine)
    [spent] = [
        event.usage for event in await harness.events(run) if isinstance(event, UsageRecorded)
    ]
    assert (spent.turns, spent.complete) == (1, False)


def limited(harness: Harness, **ahead: float) -> RateLimited:
    return RateLimited("too much", harness.clock.now() + timedelta(**ahead))


async def test_a_rate_limit_is_slept_through_and_the_turn_asked_again(harness: Harness) -> None:
    agent = harness.answers(limited(harness, hours=2), "a", "b")
    engine = harness.open()
    run = await engine.start("story")
    ending = asyncio.ensure_future(engine.finish(run.id, stop_when_waiting=True))
    waits = await waiting(harness, run.id)
    assert waits.only_sleeps
    assert waits.wake_at == harness.clock.now() + timedelta(hours=2)
    assert (len(agent.turns), ending.done()) == (1, False), "it is stayed with, nobody has to act"
    harness.clock.advance(7200)
    assert (await ending).result == ["a", "b"]
    assert [turn.prompt for turn in agent.turns] == ["one", "one", "two"]
    first, again, _ = (turn.step_key for turn in agent.turns)
    assert first != again, "an agent that begins anew is not answered by what it asked before"


async def test_a_turn_whose_models_answers_are_kept_goes_on_after_a_rate_limit(
    harness: Harness,
) -> None:
    agent = harness.answers(limited(harness, hours=2), "a", "b")
    engine = harness.open()
    run = await engine.start("story")
    ending = asyncio.ensure_future(engine.finish(run.id, stop_when_waiting=True))
    await waiting(harness, run.id)
    kept = ModelAnswered(
        step="one", role="r", agent="fake", answer=ModelAnswer(number=0, request="r")
    )
    await harness.store.write(lambda tx: tx.append(run.id, kept))
    harness.clock.advance(7200)
    assert (await ending).result == ["a", "b"]
    first, again, _ = (turn.step_key for turn in agent.turns)
    assert first == again, "what was said and done before the limit is found by the step's key"


async def test_a_rate_limit_is_remembered_over_a_restart(harness: Harness) -> None:
    agent = harness.answers(limited(harness, hours=2), "a", "b")
    engine = harness.open()
    run = await engine.start("story")
    await waiting(harness, run.id)
    await harness.stop(engine)
    same = harness.open()
    await same.resume(run.id)
    await waiting(harness, run.id)
    assert len(agent.turns) == 1, "it was asked again although the limit holds"
    harness.clock.advance(7200)
    assert (await same.finish(run.id)).result == ["a", "b"]


async def test_a_rate_limit_of_a_queued_run_is_waited_for_by_its_worker(harness: Harness) -> None:
    harness.answers(limited(harness, hours=2), "a", "b")
    engine = harness.open()
    run = await engine.start("story", queue="work")
    async with engine.serve([QueueSpec(name="work")]):
        await waiting(harness, run.id)
        harness.clock.advance(7200)
        assert (await engine.finish(run.id)).result == ["a", "b"]


@pytest.mark.parametrize("ahead", [{"days": 3}, None])
async def test_a_rate_limit_without_a_near_end_lets_go_of_the_run(
    harness: Harness, ahead: dict[str, float] | None
) -> None:
    harness.answers(
        RateLimited("too much") if ahead is None else limited(harness, **ahead), "a", "b"
    )
    engine = harness.open()
    run = await engine.start("story")
    left = await engine.finish(run.id)
    assert (left.status, left.owner) == (RunStatus.RUNNING, None)
    await engine.resume(run.id)
    assert (await engine.finish(run.id)).result == ["a", "b"]


async def test_a_rate_limit_that_never_ends_lets_go_of_the_run_at_last(harness: Harness) -> None:
    agent = harness.answers(*(limited(harness, hours=-1) for _ in range(20)))
    engine = harness.open()
    run = await engine.start("story")
    ending = asyncio.ensure_future(engine.finish(run.id))

    def later() -> bool:
        harness.clock.advance(2000)
        return ending.done()

    await retry_until(later)
    assert ending.result().owner is None
    assert len(agent.turns) == 11


async def waiting(harness: Harness, run_id: str) -> Run:
    async def look() -> Run | None:
        run = await harness.store.read(lambda view: view.run(run_id))
        return run if run is not None and run.status is RunStatus.WAITING else None

    found = await retry_until(look)
    assert found is not None
    return found


async def test_a_conversation_waits_for_an_approval_until_its_own_deadline_and_asks_again(
    harness: Harness,
) -> None:
    def waiting(turn: Turn) -> Reply:
        return Reply(text="may I?", waiting_approvals=("apr_1",), session="s1")

    agent = harness.answers(waiting, "done")
    engine = harness.open(notify=until_answered)
    await harness.asks("run_1", "apr_1", seconds=90)
    run = await engine.start("story", run_id="run_1")
    waits = await engine.finish(run.id, stop_when_waiting=True)
    assert waits.waiting_for == "approval:apr_1"
    assert waits.wake_at == harness.clock.now() + timedelta(seconds=90)
    harness.clock.advance(91)
    done = await engine.finish(run.id)
    assert done.result == "done"
    assert [turn.session for turn in agent.turns] == [None, "s1"]


async def test_one_approval_can_be_waited_for_twice(harness: Harness) -> None:
    again = Reply(text="may I?", waiting_approvals=("apr_1",))
    harness.answers(again, again, "done")
    engine = harness.open(notify=until_answered)
    await harness.asks("run_1", "apr_1", seconds=90)
    run = await engine.start("story", run_id="run_1")
    await engine.signal(run.id, "approval:apr_1", by="ann")
    await engine.signal(run.id, "approval:apr_1", by="ann")
    await engine.finish(run.id)
    await harness.stop(engine)
    engine = harness.open(notify=until_answered)
    await engine.resume(run.id)
    assert (await engine.finish(run.id)).result == "done"


async def test_an_agent_that_asks_without_end_stops_for_a_person_and_goes_on_when_resumed(
    harness: Harness,
) -> None:
    again = Reply(text="may I?", waiting_approvals=("apr_unknown",))
    agent = harness.answers(again, again, again, "done")
    engine = harness.open(notify=until_answered)
    run = await engine.start("story")
    stopped = await engine.finish(run.id)
    assert stopped.status is RunStatus.NEEDS_HUMAN
    assert stopped.failure is not None
    assert "'act' has asked for approval in 2 turns" in stopped.failure.message
    assert len(agent.turns) == 2
    await harness.stop(engine)
    other = harness.open(notify=until_answered)
    await other.resume(run.id, note="Ask no more.", by="ann")
    assert (await other.finish(run.id)).result == "done"
    assert [turn.step_key for turn in agent.turns] == ["act", "act#1", "act#2", "act#3"]
    assert [turn.prompt for turn in agent.turns[1:]] == [
        "go",
        "go\n\nA person says: Ask no more.",
        "go",
    ]
    assert agent.turns[2].news == f"{GO_ON}\n\nA person says: Ask no more."


class Verdict(BaseModel):
    verdict: str


async def test_a_turn_carries_its_contract_and_where_its_words_came_from(harness: Harness) -> None:
    agent = harness.answers(Reply(text="x", payload={"verdict": "PASS"}, found="strict", agent="b"))

    async def judged(ctx: FlowContext, role_agent: RoleAgent, budget_tracker: BudgetTracker) -> Any:
        reply = await ask(
            ctx,
            role_agent,
            "judge",
            budget=budget_tracker,
            name="judge",
            workspace="/w",
            contract=Verdict,
            provenance=("github:issue/12",),
        )
        return reply.payload

    engine = harness.open(notify=judged)
    run = await engine.finish((await engine.start("story")).id)
    assert run.result == {"verdict": "PASS"}
    (turn,) = agent.turns
    assert (turn.contract, turn.provenance) == (Verdict, ("github:issue/12",))
    (replied,) = [event for event in await harness.events(run) if isinstance(event, AgentReplied)]
    assert (replied.agent, replied.found) == ("b", "strict")


async def test_refusals_with_unreported_reasons_appear_in_the_agents_next_prompt(
    harness: Harness,
) -> None:
    async def waits(turn: Turn) -> Reply:
        await harness.asks(turn.run_id, "apr_1", 5)
        return Reply(text="", waiting_approvals=("apr_1",), session="s", untold=("no pushing",))

    agent = harness.answers(waits, "done")
    engine = harness.open(notify=until_answered)
    run = await engine.start("story")
    await engine.finish(run.id, stop_when_waiting=True)
    harness.clock.advance(6)
    assert (await engine.finish(run.id)).result == "done"
    assert agent.turns[1].prompt == (
        "Results of your last turn:\n- no pushing\n"
        "- Nobody answered in time. Ask again only if needed. The call: s\n\ngo"
    )


async def test_what_a_turn_used_before_its_trouble_is_spent(harness: Harness) -> None:
    trouble = AgentRefused("no")
    trouble.usage = USED
    harness.answers(trouble)
    engine = harness.open()
    run = await engine.finish((await engine.start("story")).id)
    spent = [event for event in await harness.events(run) if isinstance(event, UsageRecorded)]
    assert [item.usage for item in spent] == [USED]


@pytest.mark.parametrize(
    ("answer", "keeps_calls", "words"),
    [
        (
            {"status": "granted", "said": "go on"},
            False,
            "Approved. Repeat your call exactly, once. The call: s\nTheir comment: go on",
        ),
        (
            {
                "status": "granted",
                "tool": "run_command",
                "arguments": {"command": "rm a\n  rm b", "cwd": ".", "env": {}},
            },
            False,
            "Approved. Repeat your call exactly, once. The command:\n```\nrm a\n  rm b\n```",
        ),
        (
            {"status": "granted", "arguments": {"command": ["rm", "a ```"]}},
            False,
            "Approved. Repeat your call exactly, once. The command:\n````\nrm 'a ```'\n````",
        ),
        (
            {"status": "granted", "arguments": {"path": "a/b.py", "change": "-x\n+y"}},
            False,
            "Approved. Repeat your call exactly, once. The file: `a/b.py`",
        ),
        (
            {"status": "granted"},
            True,
            "Approved, and performed: s. The result is above. Continue.",
        ),
        (
            {"status": "granted", "tool": "ask_human", "said": "blue"},
            False,
            "A person answered your question: blue",
        ),
        (
            {
                "status": "granted",
                "tool": "ask_human",
                "arguments": {"question": "Which?", "choices": ["red", "blue"]},
                "said": "blue",
            },
            True,
            "A person answered your question: blue",
        ),
        (
            {"status": "rejected", "why": "not\nnow", "rejected_by": "ann"},
            True,
            "Rejected: not now. Do not ask for it again. The call: s",
        ),
    ],
)
async def test_agent_is_given_a_persons_words_and_what_is_left_to_do(
    harness: Harness, answer: dict[str, Any], keeps_calls: bool, words: str
) -> None:
    waits = Reply(text="", waiting_approvals=("apr_1",), session="s", keeps_calls=keeps_calls)
    agent = harness.answers(waits, "done")
    engine = harness.open(notify=until_answered)
    await harness.asks("run_1", "apr_1", seconds=90)
    run = await engine.start("story", run_id="run_1")
    await engine.finish(run.id, stop_when_waiting=True)
    await harness.store.write(lambda tx: _answer(tx, answer))
    await engine.signal(run.id, "approval:apr_1", by="ann")
    await engine.finish(run.id)
    assert f"- {words}\n" in agent.turns[1].prompt


async def test_agent_that_kept_no_conversation_is_given_its_question_with_the_answer(
    harness: Harness,
) -> None:
    agent = harness.answers(Reply(text="", waiting_approvals=("apr_1",)), "done")
    engine = harness.open(notify=until_answered)
    await harness.asks("run_1", "apr_1", seconds=90)
    run = await engine.start("story", run_id="run_1")
    await engine.finish(run.id, stop_when_waiting=True)
    question = {"question": f"Which? {'why ' * 200}", "choices": ["red", "blue"]}
    answer = {"status": "granted", "tool": "ask_human", "arguments": question, "said": "blue"}
    await harness.store.write(lambda tx: _answer(tx, answer))
    await engine.signal(run.id, "approval:apr_1", by="ann")
    await engine.finish(run.id)
    messages = agent.turns[1].prompt.splitlines()[1]
    assert messages.startswith("- A person answered your question (Which? why why")
    assert messages.endswith("why…): blue")
    assert len(messages) < 400


def _answer(tx: Transaction, answer: dict[str, Any]) -> None:
    approval = tx.approval("apr_1")
    assert approval is not None
    tx.save_approval(Approval.model_validate({**approval.model_dump(), **answer}))
