"""One turn of an API agent, from the open line to the reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx2

from podium.agents.api.answers import Answers
from podium.agents.api.choosing import Choice, Key
from podium.agents.api.conversation import Conversation, Conversations
from podium.agents.api.exchange import Exchange, Pace
from podium.agents.api.line import Line
from podium.agents.api.offering import Offer
from podium.agents.api.providers import model_for
from podium.agents.api.spending import Spending
from podium.agents.api.system_prompt import system_prompt
from podium.agents.api.talk import Said, Talk
from podium.agents.finishing import finished
from podium.agents.kit import AgentKit
from podium.domain.asking import Reply, Turn
from podium.domain.errors import PodiumError, TimedOut

__all__ = ["Pace", "take_turn"]


async def take_turn(turn: Turn, choice: Choice, key: Key, kit: AgentKit, pace: Pace) -> Reply:
    """The reply, kept as a conversation that can go on. What was used is told with every error."""
    spending = Spending(choice.agent, choice.model, turn.limits, kit.clock)
    conversations = Conversations(kit.homes, turn.run_id, choice.agent, _cleaner(key, kit))
    conversation = conversations.load(turn.session)
    line = Line(choice.base_url, key.headers, choice.settings.silence_seconds)
    held = _Held(turn, choice, key, kit, pace, spending, conversation, line)
    try:
        async with asyncio.timeout(turn.limits.seconds) as limit:
            await held.hold()
    except TimeoutError:
        if not limit.expired():
            raise
        error = TimedOut(f"agent {choice.agent!r} gave no answer within {turn.limits.seconds:g} s")
        error.usage = spending.usage.model_copy(update={"complete": False})
        raise error from None
    except asyncio.CancelledError as error:
        # What an answer that was under way has used, nobody will learn.
        vars(error)["usage"] = spending.usage.model_copy(update={"complete": False})
        raise
    except PodiumError as error:
        # A turn that a call in doubt kept from beginning has used nothing.
        error.usage = spending.usage if held.begun else None
        raise
    session = conversations.save(conversation)
    return held.reply(session)


class _Held:
    """A turn while it is held, and what came of it."""

    def __init__(
        self,
        turn: Turn,
        choice: Choice,
        key: Key,
        kit: AgentKit,
        pace: Pace,
        spending: Spending,
        conversation: Conversation,
        line: Line,
    ) -> None:
        self._turn = turn
        self._choice = choice
        self._key = key
        self._kit = kit
        self._pace = pace
        self._spending = spending
        self._conversation = conversation
        self._line = line
        self._said = Said()
        self.begun = False
        self._waiting: tuple[str, ...] = ()
        self._transcript = ""

    async def hold(self) -> None:
        kit, turn = self._kit, self._turn
        async with httpx2.AsyncClient(transport=self._line, trust_env=False) as client:
            model = model_for(self._choice, client)
            with kit.transcripts.open(turn, self._choice.agent) as transcript:
                self._transcript = transcript.path
                async with kit.doors.open(turn, agent=self._choice.agent) as door:
                    self.begun = True
                    exchange = Exchange(
                        model,
                        self._choice,
                        self._key,
                        self._spending,
                        door,
                        transcript,
                        kit.clock,
                        self._pace,
                    )
                    offer = Offer(door.specs())
                    if turn.contract is not None:
                        offer.ask_natively(turn.contract, model, self._choice)
                    clean = _cleaner(self._key, kit)
                    answers = Answers(self._choice, offer, exchange, self._spending, door, clean)
                    talk = Talk(
                        turn,
                        self._choice,
                        self._conversation,
                        offer,
                        answers,
                        exchange,
                        door,
                        await system_prompt(turn, kit, tools=offer.tools),
                    )
                    self._said = await talk.hold()
                    self._waiting = door.waiting_approvals

    def reply(self, session: str) -> Reply:
        said = self._said
        warnings = [*said.warnings, *self._spending.warnings]
        if self._line.mended:
            warnings.append("the answer held bytes that are no text; they stand as �")
        reply = Reply(
            text=said.text,
            payload=said.payload,
            found="none" if said.payload is None else "native",
            usage=self._spending.usage,
            agent=self._choice.agent,
            model=said.model,
            session=session,
            seconds=self._spending.seconds,
            transcript=self._transcript,
            warnings=tuple(warnings),
            stopped=said.stopped,
            waiting_approvals=self._waiting,
            keeps_calls=bool(self._waiting),
        )
        return finished(reply, self._turn, said.done)


def _cleaner(key: Key, kit: AgentKit) -> Callable[[str], str]:
    """Takes the key and other secrets out of serialised JSON."""
    return lambda content: key.scrub(kit.redact_json(content))
