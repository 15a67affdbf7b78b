"""A program on the bus as an agent."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError

from podium.agents.bus.bus import Bus
from podium.agents.bus.wire import Asked, Failed
from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.outcome import accounted, unkept_limits
from podium.agents.program import printed_line
from podium.core.decisions import Usage
from podium.core.errors import AgentLost, BadInput, TimedOut
from podium.core.model import FrozenModel, digest_of
from podium.core.turns import PairName, Reply, Side, Turn
from podium.ports import HookDoor


class BusAgentOptions(FrozenModel):
    """The options of an agent on the bus."""

    pair: PairName = "main"
    side: Side
    """The side of the pair that joins for it."""

    @classmethod
    def of(cls, options: AgentOptions) -> BusAgentOptions:
        try:
            return cls.model_validate(options.options)
        except ValidationError as error:
            issue = error.errors()[0]
            raise BadInput(
                f"agent {options.name!r}: its options cannot be used: {'.'.join(map(str, issue['loc']))}: {issue['msg']}; "
                "say `options: {side: PLANNER}` or EXECUTER, and `pair` unless it is main"
            ) from None


class BusAgent:
    """The program that has joined as this side of this pair.

    It is a program of the person's own, started by somebody else: Podium holds neither its processes nor its tools. What
    it wants of Podium it asks for at the turn's door, whose variables come with each turn.
    """

    def __init__(self, options: AgentOptions, deps: AgentDeps, bus: Bus) -> None:
        """Raises `BadInput` for options that cannot be meant."""
        own = BusAgentOptions.of(options)
        self._options = options
        self._deps = deps
        self._bus = bus
        self._pair = own.pair
        self._side: Side = own.side

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        began = self._deps.clock.monotonic()

        def used() -> Usage:
            seconds = self._deps.clock.monotonic() - began
            return Usage(turns=1, seconds=seconds, complete=False)

        with (
            accounted(self.name, used),
            self._deps.transcripts.open(turn, self.name) as transcript,
        ):
            async with self._deps.doors.open(turn, agent=self.name) as door:
                text = await self._answer(turn, door)
                waiting = door.waiting_approvals
            transcript.write(printed_line(text))
        return Reply(
            text=text,
            usage=used(),
            agent=self.name,
            session=turn.session or f"{self._pair}/{self._side}",
            seconds=used().seconds,
            transcript=transcript.path,
            warnings=unkept_limits(self.name, turn.limits, "tokens", "usd", "turns"),
            waiting_approvals=waiting,
        )

    async def _answer(self, turn: Turn, door: HookDoor) -> str:
        asked = Asked(
            id=self._id_of(turn),
            prompt=turn.prompt,
            workspace=turn.workspace,
            seconds=turn.limits.seconds,
            variables=dict(door.env),
        )
        try:
            async with asyncio.timeout(turn.limits.seconds):
                ended = await self._bus.ask(
                    self._pair, self._side, asked, lambda text: door.report_progress("note", text)
                )
        except TimeoutError:
            raise TimedOut(
                f"agent {self.name!r} gave no answer within {turn.limits.seconds:g} s; it is {self._side} of pair "
                f"{self._pair!r} on the bus: see what it is at, or give it more time"
            ) from None
        if isinstance(ended, Failed):
            raise AgentLost(f"agent {self.name!r} could not answer: {ended.why}")
        return ended.text

    def _id_of(self, turn: Turn) -> str:
        """The same turn has the same id in every Podium, so that its answer is heard after a crash too."""
        parts = [self._pair, self._side, turn.run_id, turn.step_key, turn.asking]
        return digest_of([*parts, turn.prompt])
