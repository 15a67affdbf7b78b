"""Conversation of one agent in a flow: turns that follow on each other, until nothing waits for a person any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Required, TypedDict, Unpack

from pydantic import BaseModel

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_rollback import restore_turn
from podium.agents.turn_step import Prepare, RoleAgent, ask, notes_of
from podium.core.turns import AwaitedMessage, Reply
from podium.ports import FlowContext, Workspace

MAX_TURNS = 10
GO_ON = "Your assignment is unchanged: continue where you left off, and end with the answer that it asks for."


class AskOptions(TypedDict, total=False):
    """Arguments of `ask` that are the same for every turn of a conversation."""

    budget: Required[BudgetTracker]
    contract: type[BaseModel] | None
    nonce_slot: str
    awaits: AwaitedMessage | None
    provenance: tuple[str, ...]
    for_person: str


@dataclass(frozen=True)
class TurnText:
    """The text for an agent in one turn of a conversation."""

    prompt: str
    """For an agent that kept no conversation: complete in itself."""
    news: str = ""
    """For one that kept it. Empty: the prompt."""


WriteText = Callable[[int, Reply | None, str], Awaitable[TurnText]]
"""Gives the text of a turn from its number, the reply before it, and what is new since that reply."""


class Conversation:
    """Turns of one agent that follow on each other, remembered as steps `name`, `name#1`, `name#2`, …

    `go_on` is the news of a turn that follows on one that waited for people. After each `most_turns` turns that
    did, a person is asked whether to go on, and what they say is put to the agent. `prepare` is for the first
    turn: later ones start from what the last one left, of which a snapshot is recorded with its reply. The first
    turn goes on with the conversation of an `earlier` reply.
    """

    def __init__(
        self,
        ctx: FlowContext,
        role_agent: RoleAgent,
        write_text: WriteText,
        *,
        name: str,
        workspace: str | Workspace,
        go_on: str = GO_ON,
        most_turns: int = MAX_TURNS,
        earlier: Reply | None = None,
        prepare: Prepare | None = None,
        **options: Unpack[AskOptions],
    ) -> None:
        self._ctx = ctx
        self._role_agent = role_agent
        self._write_text = write_text
        self._name = name
        self._workspace = workspace
        self._go_on = go_on
        self._most_turns = most_turns
        self._last = earlier
        self._prepare = prepare
        self._options = options
        self._turns = 0
        self._waits = 0

    async def answer(self, news: str = "") -> Reply:
        """Ask until nothing of the agent's last turn waits for a person any more.

        Between two turns every approval that is waited for is answered or too late; what came too late is
        asked anew by the next turn. `news` is what the agent is told since its last answer.
        """
        notes: list[str] = []
        while True:
            reply = await self._turn(news, notes)
            if not reply.waiting_approvals:
                return reply
            for approval, deadline in reply.approval_deadlines.items():
                await self._ctx.wait(f"approval:{approval}", index=self._turns - 1, until=deadline)
            self._waits += 1
            news, notes = self._go_on, []
            if self._waits % self._most_turns == 0:
                notes = await self._ask_to_go_on()

    async def _turn(self, news: str, notes: Sequence[str]) -> Reply:
        text = await self._write_text(self._turns, self._last, news)
        reply = await ask(
            self._ctx,
            self._role_agent,
            text.prompt,
            name=self._name,
            workspace=self._workspace,
            index=self._turns,
            earlier=self._last,
            news=text.news,
            notes=notes,
            prepare=self._prepare,
            **self._options,
        )
        self._turns += 1
        self._last = reply
        if self._prepare is not None:
            self._prepare = partial(restore_turn, self._ctx, self._workspace, reply.snapshot)
        return reply

    async def _ask_to_go_on(self) -> list[str]:
        reason = (
            f"{self._name!r} has asked for approval in {self._waits} turns and is not done; check what "
            "it asks for, then resume the run for more turns or cancel it"
        )
        index = self._waits // self._most_turns - 1
        return notes_of(await self._ctx.ask_person(f"{self._name}:go-on", reason, index=index))


async def ask_until_answered(
    ctx: FlowContext,
    role_agent: RoleAgent,
    prompt: str,
    *,
    name: str,
    workspace: str | Workspace,
    go_on: str = GO_ON,
    most_turns: int = MAX_TURNS,
    earlier: Reply | None = None,
    prepare: Prepare | None = None,
    **options: Unpack[AskOptions],
) -> Reply:
    """Put a prompt to an agent in a conversation of its own, until nothing waits for a person any more."""

    async def write_text(number: int, last: Reply | None, news: str) -> TurnText:
        return TurnText(prompt, news)

    conversation = Conversation(
        ctx,
        role_agent,
        write_text,
        name=name,
        workspace=workspace,
        go_on=go_on,
        most_turns=most_turns,
        earlier=earlier,
        prepare=prepare,
        **options,
    )
    return await conversation.answer()
