"""Router of one task: asks a side for a message, validates the reply, records it and reminds the side when it is missing."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.conversation import ask_until_answered
from podium.agents.turn_step import RoleAgent
from podium.core.errors import ReplyInvalid, StepFailed, TimedOut
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
from podium.jobs.duet.events import BlockIgnored, LegOpened, MessageHeard, SideNudged
from podium.jobs.duet.models import DuetLimits, Hop, Pair
from podium.jobs.duet.prompts import answer_prompt, continue_prompt, first_prompt, nudge_prompt
from podium.ports import Clock, FlowContext, StepContext, Store, Transaction


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
            f"{side} ended its turn without the {_listed(types)} block of task {self.task}: {why}; look at what it said "
            "with `podium duet log`, then `podium duet retry`"
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
                f"{side} brought no {_listed(awaited.types)} block for task {self.task} within {seconds:g} s: {error.message}. "
                "Look at it with `podium duet attach`, then `podium duet retry`"
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
        reason = f"{side} cannot go on with task {self.task}: {message.body.strip()[:2000]}"
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
        return "it tells of progress"
    if awaited.is_met_by(message):
        return "a later one counts"
    return f"{_listed(awaited.types)} is awaited"


def _missing(awaited: AwaitedMessage, blocks: ParsedBlocks) -> str:
    """Explain to the agent why no message was accepted."""
    if blocks.ignored:
        return f"a block could not be read ({blocks.ignored[-1].why})"
    problems = [
        awaited.problem_of(message) or _unused(awaited, message)
        for message in blocks.messages
        if message.type != "status"
    ]
    return f"of your last block {problems[-1]}" if problems else "there was no tagged block in it"


def _listed(types: tuple[MessageType, ...]) -> str:
    return " or ".join(f"`{type_}`" for type_ in types)
