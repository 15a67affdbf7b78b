"""The sense loop in the foreground: a line for each tick, and approvals acted on in between."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from podium.cli.door import Door
from podium.cli.screen import counted, error_record, moment
from podium.cli.sense_ticking import tick_record
from podium.cli.untrusted import shown_line
from podium.domain.errors import PodiumError
from podium.domain.sensing import TickOutcome
from podium.flows.sense import loop
from podium.wiring import Podium
from podium.wiring.sensing import tick_kit


def keep_ticking(door: Door) -> None:
    """Tick until Ctrl-C."""
    door.options.ending_words = "ending the tick; every run stays at its checkpoint"
    door.options.parting_words = "every run stays at its checkpoint, for the next loop or worker"

    async def work(podium: Podium) -> None:
        async with AsyncExitStack() as stack:
            kit = await tick_kit(podium, stack)
            told: set[str] = set()

            def ended(outcome: TickOutcome | PodiumError) -> None:
                _tell(door, outcome)
                for fault in kit.record.faults:
                    if fault not in told:
                        door.screen.aside(f"podium: {fault}")
                told.clear()
                told.update(kit.record.faults)

            async def begun() -> None:
                # What people answered while no loop ran waits in the record, where there is one.
                if podium.has_record:
                    await kit.house()
                every = f"every {kit.options.every_seconds:g} s"
                door.screen.aside(
                    f"sensing {kit.root} in mode {kit.mode}, now and {every}; Ctrl-C ends it"
                )

            await loop(kit, ended, asyncio.Event(), begun=begun)

    door.run(work)


def _tell(door: Door, outcome: TickOutcome | PodiumError) -> None:
    screen = door.screen
    if isinstance(outcome, PodiumError):
        message = f"{outcome} (the next tick comes all the same)"
        screen.aside(f"podium: {message}")
        if screen.json:
            screen.record({"error": error_record(outcome, str(outcome), outcome.exit_code)})
        return
    screen.answer(tick_record(outcome), lambda: screen.line(tick_line(outcome)))


def tick_line(outcome: TickOutcome) -> str:
    """A tick on one line."""
    parts = [f"{moment(outcome.at)}  tick {outcome.tick}", outcome.status.value]
    if outcome.why:
        parts.append(shown_line(outcome.why, 160))
    elif outcome.status == "SKIPPED":
        parts.append(f"nothing changed ({outcome.idle_ticks} idle)")
    for state in dict.fromkeys(each.state for each in outcome.candidates):
        found = [each.wo_id for each in outcome.candidates if each.state == state]
        parts.append(f"{state}: {', '.join(found)}")
    if outcome.notices:
        parts.append(
            f"{counted(len(outcome.notices), 'notice')}: {shown_line(outcome.notices[0], 120)}"
        )
    if outcome.status != "SKIPPED" and not outcome.candidates and not outcome.why:
        parts.append("nothing to do")
    return "  ".join(parts)
