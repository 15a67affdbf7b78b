"""What becomes of candidates between two ticks of the loop, told when it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress

from podium.cli.door import Door
from podium.cli.sense_next import look_around
from podium.domain.sensing import CandidateStanding
from podium.flows.sense import TickKit, standing_of
from podium.ports import View
from podium.telling.untrusted import shown_line
from podium.telling.wording import moment
from podium.wiring import Podium


class Between:
    """Watches what waited when the last tick ended."""

    def __init__(self, door: Door, podium: Podium, kit: TickKit) -> None:
        self._door = door
        self._podium = podium
        self._kit = kit
        self._watching: asyncio.Task[None] | None = None
        self.told: set[str] = set()
        """Orders whose end was told, so that the next tick need not."""

    def watch(self) -> None:
        """From the end of a tick on. Where nothing waits, nothing is watched."""
        if self._watching is not None:
            self._watching.cancel()
        pending = self._kit.record.memory().pending
        self.told &= set(pending)
        if left := {wo_id: run for wo_id, run in pending.items() if wo_id not in self.told}:
            self._watching = asyncio.create_task(self._watch(left), name="podium sense: between")

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self, pending: dict[str, str]) -> None:
        store = await self._podium.store()
        changes = store.changes()
        async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
            async for _ in changes:
                for standing in await store.read(lambda view: _ended(view, pending)):
                    pending.pop(standing.wo_id)
                    await self._tell(standing)
                if not pending:
                    return

    async def _tell(self, standing: CandidateStanding) -> None:
        self.told.add(standing.wo_id)
        what = standing.why
        if standing.state == "delivered":
            around = await look_around(self._podium)
            what = f"in {around.place(standing.file)}; {around.command('worker')} performs it"
        now = moment(self._podium.clock.now())
        line = f"{now}  {standing.state}: {standing.wo_id}  {shown_line(what, 160)}".rstrip()
        screen = self._door.screen
        (screen.aside if screen.json else screen.line)(line)


def _ended(view: View, pending: Mapping[str, str]) -> list[CandidateStanding]:
    runs = [view.run(run_id) for run_id in pending.values()]
    found = [standing_of(view, run) for run in runs if run is not None and run.status.ended]
    return [each for each in found if each is not None]
