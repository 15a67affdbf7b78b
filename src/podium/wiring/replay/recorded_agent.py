"""The agent of a replay: it wishes for what it wished for then, and says what it said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from podium.domain.asking import Reply, Turn
from podium.domain.errors import AgentLost
from podium.domain.events import (
    AgentProgressed,
    AgentReplied,
    AgentSwitched,
    AnyEvent,
    ModelAnswered,
    RunRetried,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
)
from podium.domain.gating import DoorAnswer
from podium.domain.model import Json
from podium.ports import HookDoors, Journal, TurnDoor
from podium.wiring.replay.outcomes import Outcomes
from podium.wiring.replay.part import Part, is_call_of, part_of
from podium.wiring.replay.tape import Tape

_ENDS = (ToolCompleted, ToolFailed, ToolAbandoned, ToolRefused)

CONVERSATION = "recorded"
"""Stands for the conversation of the turn that was recorded: agents that follow playbooks keep theirs."""

Calls = dict[str, "asyncio.Task[DoorAnswer]"]
"""Those that were begun in this turn, by their keys."""


class RecordedAgent:
    """Plays its part through the turn's own door, so that every call is judged again."""

    def __init__(
        self,
        name: str,
        tape: Tape,
        outcomes: Outcomes,
        doors: HookDoors,
        journal: Journal,
        wishes: Mapping[str, dict[str, Json]],
    ) -> None:
        """`wishes` are the whole arguments of calls, by their keys."""
        self._name = name
        self._tape = tape
        self._outcomes = outcomes
        self._doors = doors
        self._journal = journal
        self._wishes = wishes

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, turn: Turn) -> Reply:
        part = part_of(self._tape, turn, self._name)
        calls: Calls = {}
        try:
            async with self._doors.open(turn, agent=part.agent) as door:
                await self._play(door, turn, part, calls)
                waiting = door.waiting_approvals
        except asyncio.CancelledError as cancelled:
            cancelled.usage = part.usage  # type: ignore[attr-defined]  # where agents leave it
            raise
        finally:
            await _end(calls)
        if part.replied is None:
            raise part.error or AgentLost("the recorded turn brought no answer")
        return _reply(part, part.replied, waiting)

    async def _play(self, door: TurnDoor, turn: Turn, part: Part, calls: Calls) -> None:
        await self._make_again(door, turn, part)
        for at, body in part.acts:
            await self._tape.reached(at)
            await self._act(door, turn, body, calls)
        await self._tape.reached(part.end)
        if part.replied is None and part.error is None:
            # From here on it was stopped from outside.
            await asyncio.get_running_loop().create_future()

    async def _act(self, door: TurnDoor, turn: Turn, body: AnyEvent, calls: Calls) -> None:
        match body:
            case AgentProgressed() | AgentSwitched():
                self._journal.note(turn.run_id, body)
            case ModelAnswered(answer=answer):
                await door.record_answer(answer)
            case ToolRequested():
                self._begin(door, body, calls)
            case ToolRefused():
                await self._ask_again(door, turn, body)
            case ToolCompleted(call=key) | ToolFailed(call=key):
                if key not in calls:  # asked for before a crash: its permit is given back
                    self._begin(door, self._request(key), calls)
                self._outcomes.release(key)
                await calls[key]

    def _begin(self, door: TurnDoor, body: ToolRequested, calls: Calls) -> None:
        """Others may be asked for before this one ends."""
        self._outcomes.hold(body.call)
        performing = door.perform(body.tool, self._wishes[body.call])
        calls[body.call] = asyncio.create_task(performing)

    async def _ask_again(self, door: TurnDoor, turn: Turn, body: ToolRefused) -> None:
        if body.call in self._wishes:
            await door.perform(body.tool, self._wishes[body.call])
        else:
            # What was refused held a secret, which the trace does not: it cannot be judged again.
            await self._journal.append(turn.run_id, body)

    async def _make_again(self, door: TurnDoor, turn: Turn, part: Part) -> None:
        """Wish again for what was wished for before a crash: limits count it, and nothing is done twice."""
        later = {body.call for _, body in part.acts if isinstance(body, ToolRequested)}
        for body in self._made_before(turn):
            if body.call not in later and body.call in self._wishes:
                await door.perform(body.tool, self._wishes[body.call])

    def _made_before(self, turn: Turn) -> Iterator[ToolRequested | ToolRefused]:
        made: dict[str, ToolRequested | ToolRefused] = {}
        ended: set[str] = set()
        for event in self._tape.events[: self._tape.place]:
            body = event.body
            if isinstance(body, RunRetried) and turn.step_key in body.discarded_steps:
                made.clear()
            if isinstance(body, ToolRequested | ToolRefused) and is_call_of(body.call, turn):
                made.setdefault(body.call, body)
            if isinstance(body, _ENDS):
                ended.add(body.call)
        return (body for key, body in made.items() if key in ended)

    def _request(self, key: str) -> ToolRequested:
        bodies = (event.body for event in self._tape.events)
        return next(each for each in bodies if isinstance(each, ToolRequested) and each.call == key)


async def _end(calls: Calls) -> None:
    for call in calls.values():
        call.cancel()
    await asyncio.gather(*calls.values(), return_exceptions=True)


def _reply(part: Part, replied: AgentReplied, waiting: tuple[str, ...]) -> Reply:
    return Reply(
        text=replied.text,
        found=replied.found,
        usage=replied.usage,
        agent=replied.agent,
        model=replied.model,
        version=replied.agent_version,
        session=CONVERSATION,
        seconds=replied.seconds,
        transcript=replied.transcript,
        warnings=replied.warnings,
        stopped=part.stop,
        waiting_approvals=waiting,
        # Only agents whose conversation Podium holds have their model's answers recorded.
        keeps_calls=bool(waiting) and any(isinstance(body, ModelAnswered) for _, body in part.acts),
    )
