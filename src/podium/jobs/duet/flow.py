"""Flow of a duet: reserve a pair, then route plans and results between planner and executer until the planner reports."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.conversation import ask_until_answered
from podium.agents.turn_step import RoleAgent
from podium.core.errors import LockHeld, ReplyInvalid, StepFailed, TimedOut
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.turns import (
    ADDRESSEES,
    TAG,
    AwaitedMessage,
    MessageBlock,
    MessageType,
    ParsedBlocks,
    Reply,
    Side,
    TurnLimits,
)
from podium.jobs.duet.events import BlockIgnored, LegOpened, MessageHeard, PairSeated, SideNudged
from podium.jobs.duet.models import DUET, DuetJob, DuetLimits, DuetResult, Hop, Pair
from podium.jobs.duet.prompts import (
    answer_prompt,
    continue_prompt,
    first_prompt,
    nudge_prompt,
    plan_prompt,
    result_prompt,
    task_prompt,
)
from podium.ports import (
    Clock,
    FlowBody,
    FlowContext,
    RunQuery,
    StepContext,
    Store,
    StoreView,
    Transaction,
)


@dataclass(frozen=True)
class DuetSide:
    """One side of a pair, ready to be asked."""

    role_agent: RoleAgent
    workspace: str
    on_screen: bool = False
    """Its output is read off a screen, where only a block is distinguishable from the rest."""
    keeps_conversation: bool = False
    """It got its primer at startup, and remembers earlier tasks."""


@dataclass(frozen=True)
class DuetSides:
    """Both sides."""

    planner: DuetSide
    executer: DuetSide

    def get(self, side: Side) -> DuetSide:
        return self.planner if side == "PLANNER" else self.executer


@dataclass(frozen=True)
class DuetDeps:
    """Dependencies of the flow."""

    store: Store
    clock: Clock
    budget_tracker: BudgetTracker
    prepare_sides: Callable[[Pair], Awaitable[DuetSides]]
    """Prepares a pair. Raises the reason when it cannot: no tmux, an unknown agent, a folder without a grant."""
    read: Callable[[str], ParsedBlocks]
    """Parses the blocks in an agent's output."""
    new_nonce: Callable[[], str]
    """Returns eight or more unguessable characters."""


HOP_STEP = "leg"

_OPENING = re.compile(rf"\[\[{TAG}([^\n]{{0,400}})")
_BLOCK = re.compile(rf"\[\[{TAG}[\s\S]*?\[\[/{TAG}\]\]")

PromptBuilder = Callable[[AwaitedMessage, bool], str]
"""Builds the prompt of a hop from the awaited message and `on_screen`."""


@dataclass
class MessageRouter:
    """Asks the sides of one task for messages, hop by hop."""

    ctx: FlowContext
    deps: DuetDeps
    sides: DuetSides
    limits: DuetLimits
    task: str
    _hop_count: int = 0
    _earlier: dict[Side, Reply] = field(default_factory=dict)
    _past: set[str] = field(default_factory=set)
    """Ids of finished hops: a block with one of them is a quotation."""

    async def request_message(
        self,
        side: Side,
        round_number: int,
        types: tuple[MessageType, ...],
        build_prompt: PromptBuilder,
        *,
        or_plain_text: bool = False,
    ) -> MessageBlock:
        """Ask a side for a message. A blocker is put to a person, and the side continues with the answer.

        With `or_plain_text` plain text is a report. Raises `ReplyInvalid` when no message came in spite of
        all nudges, and `TimedOut`.
        """
        while True:
            message = await self._run_hop(side, round_number, types, build_prompt, or_plain_text)
            if message.type != "blocker":
                return message
            answer = await self._blocked(side, message)
            build_prompt = _answer_prompt(answer)

    async def _run_hop(
        self,
        side: Side,
        round_number: int,
        types: tuple[MessageType, ...],
        build_prompt: PromptBuilder,
        or_plain_text: bool,
    ) -> MessageBlock:
        number, self._hop_count = self._hop_count, self._hop_count + 1
        duet_side = self.sides.get(side)
        hop = await self._opened(number, round_number, side, types)
        awaited = AwaitedMessage(
            sender=side,
            types=types,
            task=hop.task,
            nonce=hop.nonce,
            or_words=or_plain_text and not duet_side.on_screen,
            longest_seconds=self.limits.longest_seconds,
        )
        prompt = build_prompt(awaited, duet_side.on_screen)
        why = ""
        for nudge in range(self.limits.nudges + 1):
            if nudge:
                self.ctx.note(SideNudged(leg=number, side=side, why=why))
                prompt = nudge_prompt(why, awaited, on_screen=duet_side.on_screen)
            reply = await self._asked(duet_side, awaited, prompt, f"turn-{number}-{nudge}")
            outcome = self._read(number, awaited, reply)
            if isinstance(outcome, MessageBlock):
                self._past.add(awaited.id)
                return outcome
            why = outcome
        raise ReplyInvalid(
            f"{side} ended its turn without the {_listed(types)} block for task {self.task}: {why}; read its messages with "
            "`podium duet log`, then run `podium duet retry`"
        )

    async def _opened(
        self, number: int, round_number: int, side: Side, types: tuple[MessageType, ...]
    ) -> Hop:
        """Record the hop as a row of the state table, with a new nonce each time it is asked."""

        async def open_hop(step: StepContext) -> Hop:
            hop = Hop(
                number=number,
                round=round_number,
                expected_from=side,
                expected=types,
                task=self.task,
                nonce=self.deps.new_nonce(),
            )

            def record(tx: Transaction) -> None:
                tx.append(step.run_id, LegOpened(leg=hop))
                step.checkpoint(tx, hop)

            await self.deps.store.write(record)
            return hop

        return await self.ctx.step(HOP_STEP, open_hop, index=number, returns=Hop)

    async def _asked(
        self, duet_side: DuetSide, awaited: AwaitedMessage, prompt: str, name: str
    ) -> Reply:
        side, earlier = awaited.sender, self._earlier.get(awaited.sender)
        if earlier is None and not duet_side.keeps_conversation:
            prompt = first_prompt(side, prompt, has_tools=duet_side.role_agent.allowed_tools != ())
        seconds = self._seconds(side)
        # A program that died was started again once already, with its conversation.
        limits = _within(duet_side.role_agent.limits, seconds)
        role_agent = replace(duet_side.role_agent, limits=limits, max_losses=0)
        try:
            reply = await ask_until_answered(
                self.ctx,
                role_agent,
                prompt,
                budget=self.deps.budget_tracker,
                name=name,
                workspace=duet_side.workspace,
                earlier=earlier,
                go_on=continue_prompt(awaited, on_screen=duet_side.on_screen),
                awaits=awaited,
            )
        except StepFailed as error:
            if error.kind != TimedOut.__name__:
                raise
            raise TimedOut(
                f"{side} sent no {_listed(awaited.types)} block for task {self.task} within {seconds:g} s: {error.message}; "
                "look at its terminal with `podium duet attach`, then run `podium duet retry`"
            ) from error
        self._earlier[side] = reply
        return reply

    def _read(self, number: int, awaited: AwaitedMessage, reply: Reply) -> MessageBlock | str:
        """Return the message in a reply, or the reason why there is none. Records every block."""
        blocks = self.deps.read(reply.text)
        message = awaited.find_in(blocks) or _as_report(awaited, blocks, reply, self._past)
        for body in _block_events(number, awaited, blocks, message):
            self.ctx.note(body)
        return message or _missing(awaited, blocks)

    async def _blocked(self, side: Side, message: MessageBlock) -> str:
        reason = f"{side} cannot continue task {self.task}: {message.body.strip()[:2000]}"
        signal = await self.ctx.ask_person(
            f"{HOP_STEP}:blocked",
            f"{reason}\nAnswer with `podium resume {self.ctx.run.id} --note TEXT`",
            index=self._hop_count,
        )
        return signal.payload.strip() if isinstance(signal.payload, str) else ""

    def _seconds(self, side: Side) -> float:
        return self.limits.plan_seconds if side == "PLANNER" else self.limits.result_seconds


def _answer_prompt(answer: str) -> PromptBuilder:
    return lambda awaited, on_screen: answer_prompt(answer, awaited, on_screen=on_screen)


def _within(limits: TurnLimits, seconds: float) -> TurnLimits:
    configured = limits.seconds
    return limits.model_copy(
        update={"seconds": seconds if configured is None else min(configured, seconds)}
    )


def _as_report(
    awaited: AwaitedMessage, blocks: ParsedBlocks, reply: Reply, past: Collection[str]
) -> MessageBlock | None:
    """Take plain text as a report where allowed, unless a block in it was meant to be handed on.

    Blocks with ids of earlier hops are quotations; a report must have text besides them.
    """
    text = _BLOCK.sub("", reply.text).strip()
    meant = any(
        not any(f'"{hop_id}"' in opening for hop_id in past) and '"status"' not in opening
        for opening in _OPENING.findall(reply.text)
    )
    if not awaited.or_words or meant or blocks.ignored or not text:
        return None
    return MessageBlock(to="USER", type="report", id=awaited.id, body=reply.text.strip())


def _block_events(
    number: int, awaited: AwaitedMessage, blocks: ParsedBlocks, accepted: MessageBlock | None
) -> list[MessageHeard | BlockIgnored]:
    events: list[MessageHeard | BlockIgnored] = []
    side = awaited.sender
    for message in blocks.messages:
        if message is not accepted:
            why = awaited.problem_of(message) or _unused(awaited, message)
            events.append(MessageHeard(leg=number, sender=side, message=message, why=why))
    events += [
        BlockIgnored(leg=number, sender=side, why=ignored.why, shown=ignored.shown)
        for ignored in blocks.ignored
    ]
    if accepted is not None:
        to = "USER" if accepted.type == "blocker" else ADDRESSEES[accepted.type][0]
        events.append(MessageHeard(leg=number, sender=side, message=accepted, routed_to=to))
    return events


def _unused(awaited: AwaitedMessage, message: MessageBlock) -> str:
    if message.type == "status":
        return "it only reports progress"
    if awaited.is_met_by(message):
        return "a later block replaces it"
    return f"{_listed(awaited.types)} is expected"


def _missing(awaited: AwaitedMessage, blocks: ParsedBlocks) -> str:
    """Explain to the agent why no message was accepted."""
    if blocks.ignored:
        return f"a block could not be read ({blocks.ignored[-1].why})"
    problems = [
        awaited.problem_of(message) or _unused(awaited, message)
        for message in blocks.messages
        if message.type != "status"
    ]
    return (
        f"your last block does not count: {problems[-1]}"
        if problems
        else "it contained no tagged block"
    )


def _listed(types: tuple[MessageType, ...]) -> str:
    return " or ".join(f"`{type_}`" for type_ in types)


PAIR_STEP = "seat"
MAX_RUNS = 10_000


async def reserve_pair(ctx: FlowContext, deps: DuetDeps, job: DuetJob) -> Pair:
    """Reserve a pair for this task until its run has ended. Raises `LockHeld` when none is free."""

    async def take(step: StepContext) -> Pair:
        changes = deps.store.changes()
        while (pair := await deps.store.write(lambda tx: _taken(tx, step, job))) is None:
            if not job.patient:
                raise await deps.store.read(lambda view: _held(view, step.run_id))
            await anext(changes)
        return pair

    pair = await ctx.step(PAIR_STEP, take, returns=Pair)
    # Not a step: a task that had ended and goes on may find another one there.
    changes = deps.store.changes()
    while held := await deps.store.read(lambda view: _held_by_other(view, ctx.run.id, pair)):
        if not job.patient:
            raise held
        await anext(changes)
    return pair


def holders(view: StoreView, but_not: str = "") -> dict[str, str]:
    """Map the names of busy pairs to the runs that hold them."""
    run_ids: dict[str, str] = {}
    for run in view.runs(RunQuery(flow=DUET, limit=MAX_RUNS)):
        step = None if run.status.ended or run.id == but_not else view.step(run.id, PAIR_STEP)
        output = step.output if step is not None else None
        if isinstance(output, dict):
            run_ids[str(output.get("name"))] = run.id
    return run_ids


def _taken(tx: Transaction, step: StepContext, job: DuetJob) -> Pair | None:
    """Find and take a free pair in one transaction, so that only one of two tasks gets it."""
    busy = holders(tx)
    pair = next((pair for pair in job.pairs if pair.name not in busy), None)
    if pair is None:
        return None
    tx.append(
        step.run_id,
        PairSeated(
            pair=pair.name,
            planner=pair.planner.agent,
            executer=pair.executer.agent,
            transport=pair.transport,
        ),
    )
    step.checkpoint(tx, pair)
    return pair


def _held_by_other(view: StoreView, run_id: str, pair: Pair) -> LockHeld | None:
    return _held(view, run_id) if pair.name in holders(view, but_not=run_id) else None


def _held(view: StoreView, run_id: str) -> LockHeld:
    listing = ", ".join(
        f"{name!r} is working on task {short_id(holder)}"
        for name, holder in holders(view, but_not=run_id).items()
    )
    return LockHeld(
        f"no pair is free: {listing}; wait, queue your task with `podium duet queue add`, end the other one with "
        "`podium duet abort TASK`, or, if it was interrupted, continue it with `podium resume TASK`"
    )


def play_duet(deps: DuetDeps) -> FlowBody:
    """Build the flow."""

    async def play(ctx: FlowContext, job: DuetJob) -> Json:
        # The terminals of a pair are on this host.
        await ctx.pin()
        pair = await reserve_pair(ctx, deps, job)
        router = MessageRouter(
            ctx, deps, await deps.prepare_sides(pair), job.limits, task=short_id(ctx.run.id)
        )
        plan = await router.request_message("PLANNER", 1, ("plan", "report"), _task(job.text))
        rounds = 1
        while plan.type == "plan":
            result = await router.request_message("EXECUTER", rounds, ("result",), _plan(plan))
            is_last = rounds == job.limits.rounds
            plan = await router.request_message(
                "PLANNER",
                rounds,
                ("report",) if is_last else ("report", "plan"),
                _result(result, may_go_on=not is_last),
                or_plain_text=True,
            )
            rounds += plan.type == "plan"
        return _result_of(plan, router.task, pair.name, rounds).model_dump(mode="json")

    return play


def _task(text: str) -> PromptBuilder:
    return lambda awaited, on_screen: task_prompt(text, awaited, on_screen=on_screen)


def _plan(plan: MessageBlock) -> PromptBuilder:
    return lambda awaited, on_screen: plan_prompt(plan, awaited, on_screen=on_screen)


def _result(result: MessageBlock, *, may_go_on: bool) -> PromptBuilder:
    return lambda awaited, on_screen: result_prompt(
        result, awaited, on_screen=on_screen, may_go_on=may_go_on
    )


def _result_of(report: MessageBlock, task: str, pair: str, rounds: int) -> DuetResult:
    if not report.body.strip():
        raise ReplyInvalid(
            f"PLANNER's report on task {task} is empty; ask again with `podium duet retry`"
        )
    return DuetResult(done=True, report=report.body, rounds=rounds, task_id=task, pair=pair)
