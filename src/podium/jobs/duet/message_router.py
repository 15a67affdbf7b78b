"""Router of one task: asks a side for a message, validates the reply, records it and reminds the side when it is missing."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_step import RoleAgent, ask_until_answered
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
from podium.jobs.duet.prompts import answer_words, first_words, go_on_words, nudge_words
from podium.ports import Clock, FlowContext, StepContext, Store, Transaction


@dataclass(frozen=True)
class DuetSide:
    """One side of a pair, ready to be asked."""

    player: RoleAgent
    workspace: str
    on_screen: bool = False
    """Its words are read off a screen, where only a block can be told from the rest."""
    keeps_conversation: bool = False
    """It was told its part when it came up, and remembers earlier tasks."""


@dataclass(frozen=True)
class DuetSides:
    """Both sides."""

    planner: DuetSide
    executer: DuetSide

    def chair(self, side: Side) -> DuetSide:
        return self.planner if side == "PLANNER" else self.executer


@dataclass(frozen=True)
class DuetDeps:
    """What the story needs."""

    store: Store
    clock: Clock
    purse: BudgetTracker
    stage: Callable[[Pair], Awaitable[DuetSides]]
    """Puts a pair on stage. Raises what keeps it from that: no tmux, an unknown agent, a folder nobody granted."""
    read: Callable[[str], ParsedBlocks]
    """The blocks in what an agent said."""
    new_nonce: Callable[[], str]
    """Eight characters or more that nobody can guess."""


LEG = "leg"

_OPENING = re.compile(rf"\[\[{TAG}([^\n]{{0,400}})")
_BLOCK = re.compile(rf"\[\[{TAG}[\s\S]*?\[\[/{TAG}\]\]")

Words = Callable[[AwaitedMessage, bool], str]
"""The prompt of a leg, given what it awaits and whether its words are read off a screen."""


@dataclass
class MessageRouter:
    """Asks either side, leg after leg, of one task."""

    ctx: FlowContext
    kit: DuetDeps
    stage: DuetSides
    limits: DuetLimits
    task: str
    _legs: int = 0
    _earlier: dict[Side, Reply] = field(default_factory=dict)
    _past: set[str] = field(default_factory=set)
    """Ids of the legs that are over: a block with one of them is a quotation."""

    async def hear(
        self,
        side: Side,
        round_number: int,
        types: tuple[MessageType, ...],
        words: Words,
        *,
        or_words: bool = False,
    ) -> MessageBlock:
        """The message of a side. What blocks it is put before a person, whose answer it goes on with.

        With `or_words` plain words are a report. Raises `ReplyInvalid` when no message came in spite of
        all nudges, and `TimedOut`.
        """
        while True:
            message = await self._leg(side, round_number, types, words, or_words)
            if message.type != "blocker":
                return message
            said = await self._blocked(side, message)
            words = _answering(said)

    async def _leg(
        self,
        side: Side,
        round_number: int,
        types: tuple[MessageType, ...],
        words: Words,
        or_words: bool,
    ) -> MessageBlock:
        number, self._legs = self._legs, self._legs + 1
        chair = self.stage.chair(side)
        leg = await self._opened(number, round_number, side, types)
        awaited = AwaitedMessage(
            sender=side,
            types=types,
            task=leg.task,
            nonce=leg.nonce,
            or_words=or_words and not chair.on_screen,
            longest_seconds=self.limits.longest_seconds,
        )
        prompt = words(awaited, chair.on_screen)
        why = ""
        for nudge in range(self.limits.nudges + 1):
            if nudge:
                self.ctx.note(SideNudged(leg=number, side=side, why=why))
                prompt = nudge_words(why, awaited, on_screen=chair.on_screen)
            reply = await self._asked(chair, awaited, prompt, f"turn-{number}-{nudge}")
            found = self._read(number, awaited, reply)
            if isinstance(found, MessageBlock):
                self._past.add(awaited.id)
                return found
            why = found
        raise ReplyInvalid(
            f"{side} ended its turn without the {_listed(types)} block of task {self.task}: {why}; look at what it said "
            "with `podium duet log`, then `podium duet retry`"
        )

    async def _opened(
        self, number: int, round_number: int, side: Side, types: tuple[MessageType, ...]
    ) -> Hop:
        """A row of the state table, with the nonce of this leg: asked anew, it gets another one."""

        async def open_leg(step: StepContext) -> Hop:
            leg = Hop(
                number=number,
                round=round_number,
                expected_from=side,
                expected=types,
                task=self.task,
                nonce=self.kit.new_nonce(),
            )

            def record(tx: Transaction) -> None:
                tx.append(step.run_id, LegOpened(leg=leg))
                step.checkpoint(tx, leg)

            await self.kit.store.write(record)
            return leg

        return await self.ctx.step(LEG, open_leg, index=number, returns=Hop)

    async def _asked(
        self, chair: DuetSide, awaited: AwaitedMessage, prompt: str, name: str
    ) -> Reply:
        side, earlier = awaited.sender, self._earlier.get(awaited.sender)
        if earlier is None and not chair.keeps_conversation:
            prompt = first_words(side, prompt, has_tools=chair.player.allowed_tools != ())
        seconds = self._seconds(side)
        # A program that died was started again once already, with its conversation.
        limits = _within(chair.player.limits, seconds)
        player = replace(chair.player, limits=limits, max_losses=0)
        try:
            reply = await ask_until_answered(
                self.ctx,
                player,
                prompt,
                budget=self.kit.purse,
                name=name,
                workspace=chair.workspace,
                earlier=earlier,
                go_on=go_on_words(awaited, on_screen=chair.on_screen),
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
        """The message in a reply, or why there is none. Everything that was found is put down."""
        heard = self.kit.read(reply.text)
        found = awaited.found_in(heard) or _as_report(awaited, heard, reply, self._past)
        for body in _told(number, awaited, heard, found):
            self.ctx.note(body)
        return found or _missing(awaited, heard)

    async def _blocked(self, side: Side, message: MessageBlock) -> str:
        reason = f"{side} cannot go on with task {self.task}: {message.body.strip()[:2000]}"
        signal = await self.ctx.ask_person(
            f"{LEG}:blocked",
            f"{reason}\nAnswer with `podium resume {self.ctx.run.id} --note TEXT`",
            index=self._legs,
        )
        return signal.payload.strip() if isinstance(signal.payload, str) else ""

    def _seconds(self, side: Side) -> float:
        return self.limits.plan_seconds if side == "PLANNER" else self.limits.result_seconds


def _answering(said: str) -> Words:
    return lambda awaited, on_screen: answer_words(said, awaited, on_screen=on_screen)


def _within(limits: TurnLimits, seconds: float) -> TurnLimits:
    known = limits.seconds
    return limits.model_copy(update={"seconds": seconds if known is None else min(known, seconds)})


def _as_report(
    awaited: AwaitedMessage, heard: ParsedBlocks, reply: Reply, past: Collection[str]
) -> MessageBlock | None:
    """Plain words, where they are enough: unless a block among them was meant to be handed on.

    Only blocks with ids of earlier legs are not: those are quoted. What is a report must say something beside them.
    """
    words = _BLOCK.sub("", reply.text).strip()
    meant = any(
        not any(f'"{each}"' in opening for each in past) and '"status"' not in opening
        for opening in _OPENING.findall(reply.text)
    )
    if not awaited.or_words or meant or heard.ignored or not words:
        return None
    return MessageBlock(to="USER", type="report", id=awaited.id, body=reply.text.strip())


def _told(
    number: int, awaited: AwaitedMessage, heard: ParsedBlocks, found: MessageBlock | None
) -> list[MessageHeard | BlockIgnored]:
    told: list[MessageHeard | BlockIgnored] = []
    side = awaited.sender
    for message in heard.messages:
        if message is not found:
            why = awaited.fault_of(message) or _unused(awaited, message)
            told.append(MessageHeard(leg=number, sender=side, message=message, why=why))
    told += [
        BlockIgnored(leg=number, sender=side, why=each.why, shown=each.shown)
        for each in heard.ignored
    ]
    if found is not None:
        to = "USER" if found.type == "blocker" else ADDRESSEES[found.type][0]
        told.append(MessageHeard(leg=number, sender=side, message=found, routed_to=to))
    return told


def _unused(awaited: AwaitedMessage, message: MessageBlock) -> str:
    if message.type == "status":
        return "it tells of progress"
    if awaited.is_met_by(message):
        return "a later one counts"
    return f"{_listed(awaited.types)} is awaited"


def _missing(awaited: AwaitedMessage, heard: ParsedBlocks) -> str:
    """Why there is no message, in words for the agent that owes it."""
    if heard.ignored:
        return f"a block could not be read ({heard.ignored[-1].why})"
    faults = [
        awaited.fault_of(message) or _unused(awaited, message)
        for message in heard.messages
        if message.type != "status"
    ]
    return f"of your last block {faults[-1]}" if faults else "there was no tagged block in it"


def _listed(types: tuple[MessageType, ...]) -> str:
    return " or ".join(f"`{type_}`" for type_ in types)
