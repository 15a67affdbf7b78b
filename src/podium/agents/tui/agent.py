"""An agent that is a live program on a terminal: asked like any other, in one conversation for as long as its pair is up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.agents.outcome import accounted, plain_line, unkept_limits
from podium.agents.private_files import write_private
from podium.agents.tui.activity import Activity
from podium.agents.tui.adapter import TuiDeps
from podium.agents.tui.control import Control
from podium.agents.tui.errors import PaneGone, ProgramEnded, ServerGone
from podium.agents.tui.exchange import Exchange
from podium.agents.tui.reply_reader import Answer
from podium.agents.tui.side import Side
from podium.core.decisions import Usage
from podium.core.errors import AgentLost
from podium.core.turns import Reply, Turn
from podium.ports import ANY_USE, HookDoor

_LIVES = 2
"""A program that dies is started again once in a turn."""

_LAST_OUTPUT = 400
"""Characters of the end of what a dead program wrote."""

BeUp = Callable[[Side], Awaitable[None]]
"""Has a side's program up, started again where it died, and told its part."""


class TuiAgent:
    """One side of a pair behind the port of all agents. Made by `TerminalPair.side`.

    A turn that was under way when Podium was killed is gone on with: its message is not sent again, and an answer that came
    meanwhile is found.
    """

    def __init__(
        self, deps: TuiDeps, side: Side, control: Control, activity: Activity, be_up: BeUp
    ) -> None:
        self._deps = deps
        self.side = side
        self._control = control
        self._activity = activity
        self._be_up = be_up
        self._turns = asyncio.Lock()

    @property
    def name(self) -> str:
        return self.side.spec.options.name

    @property
    def reads_screen(self) -> bool:
        """Its words are read off its screen, where only a block can be told from the rest."""
        return self.side.written is None

    async def ask(self, turn: Turn) -> Reply:
        """Put one turn to the program, once.

        Raises `NeedsHuman` when it asks something in its terminal, `TimedOut` when the turn's time is over, `AgentLost`
        when its program died twice, or its turn came to no good end. Cancelling interrupts it by its own keys; the
        program goes on living.
        """
        began = self._deps.clock.monotonic()
        exchanges: list[Exchange] = []

        def used() -> Usage:
            if not any(exchange.asked for exchange in exchanges):
                return Usage()
            seconds = self._deps.clock.monotonic() - began
            return Usage(turns=1, seconds=seconds, complete=False)

        with accounted(self.name, used):
            async with self._turns:
                return await self._ask(turn, exchanges, used)

    async def _ask(self, turn: Turn, exchanges: list[Exchange], used: Callable[[], Usage]) -> Reply:
        deps, side = self._deps, self.side
        side.folders.lay_out()
        translate = side.adapter.translate
        with deps.transcripts.open(turn, self.name) as transcript:
            async with deps.doors.open(turn, agent=self.name, translate=translate) as door:
                door.expect(ANY_USE)
                exchange = Exchange(
                    deps, side, self._control, self._activity, turn, door, transcript
                )
                exchanges.append(exchange)
                with _door_file(side.folders.door_file, door):
                    answer, warnings = await self._answer(exchange)
        usage = used()
        return Reply(
            text=answer.text,
            usage=usage,
            agent=self.name,
            model=side.spec.options.model,
            session=self._session(),
            seconds=usage.seconds,
            transcript=transcript.path,
            read_from=answer.read_from,
            warnings=(*unkept_limits(self.name, turn.limits, "tokens", "usd"), *warnings),
            waiting_approvals=door.waiting_approvals,
        )

    async def _answer(self, exchange: Exchange) -> tuple[Answer, tuple[str, ...]]:
        """The answer, and what a person should know of how it came about."""
        warnings: list[str] = []
        for life in range(_LIVES):
            try:
                await self._up(exchange)
                return await exchange.hold(), tuple(warnings)
            except (ProgramEnded, PaneGone, ServerGone) as lost:
                last_output = _last_output(lost)
                if life + 1 == _LIVES:
                    await exchange.give_up()
                    raise AgentLost(
                        f"{self.side.who} died again after it was started anew: {lost}{last_output}"
                    ) from lost
                warnings.append(f"{self.side.who} died and was started again{last_output}")
        raise AssertionError("lives are counted")

    async def _up(self, exchange: Exchange) -> None:
        try:
            await self.side.by_ourselves(lambda: self._be_up(self.side), exchange.lapsed)
        except ProgramEnded as lost:
            raise AgentLost(
                f"{self.side.who} does not stay up: {lost}{_last_output(lost)}"
            ) from lost

    def _session(self) -> str | None:
        """The conversation, kept so that a program that is started again goes on with it."""
        record, written = self.side.record(), self.side.written
        session = (written.session if written is not None else "") or record.session
        if session != record.session:
            self.side.keep(record.model_copy(update={"session": session}))
        return session or None


@contextmanager
def _door_file(file: Path, door: HookDoor) -> Iterator[None]:
    """Write the file by which the program's hook finds this turn's door. Without it every use of a tool is denied."""
    content = json.dumps(dict(door.hook_env)).encode()
    write_private(file, content, survives=False)
    try:
        yield
    finally:
        if file.exists() and file.read_bytes() == content:
            file.unlink(missing_ok=True)


def _last_output(lost: AgentLost) -> str:
    text = plain_line(getattr(lost, "last_output", "")[-_LAST_OUTPUT:])
    return f"; its last words: {text}" if text else ""
