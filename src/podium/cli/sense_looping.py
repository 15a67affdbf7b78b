"""The sense loop in the foreground: a line for each tick, and approvals acted on in between."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from contextlib import AsyncExitStack

from podium.cli.door import Door
from podium.cli.rooting import root_words
from podium.cli.screen import error_record
from podium.cli.sense_between import Between
from podium.cli.sense_ticking import tick_record
from podium.cli.sense_trust_news import TrustNews
from podium.domain.errors import PodiumError
from podium.domain.sensing import TickOutcome
from podium.flows.sense import loop
from podium.telling.untrusted import shown_line
from podium.telling.wording import counted, moment
from podium.wiring import Podium
from podium.wiring.candidates import candidates_seen
from podium.wiring.sensing import tick_kit


def keep_ticking(door: Door) -> None:
    """Tick until Ctrl-C."""
    door.options.ending_words = "ending the tick; every run stays at its checkpoint"
    door.options.parting_words = "every run stays at its checkpoint, for the next loop or worker"

    async def work(podium: Podium) -> None:
        async with AsyncExitStack() as stack:
            kit = await tick_kit(podium, stack)
            between = Between(door, podium, kit)
            stack.push_async_callback(between.stop)
            news, told = TrustNews(podium), set[str]()

            def ended(outcome: TickOutcome | PodiumError) -> None:
                _tell(door, outcome, between.told)
                for line in (
                    *news.lines(),
                    *(each for each in kit.record.faults if each not in told),
                ):
                    door.screen.aside(f"podium: {shown_line(line)}")
                told.clear()
                told.update(kit.record.faults)
                between.watch()

            async def begun() -> None:
                every = f"every {kit.options.every_seconds:g} s"
                door.screen.aside(
                    f"sensing {kit.root} in mode {kit.mode}, now and {every}; Ctrl-C ends it"
                )
                # What people answered while no loop ran waits in the record, where there is one.
                if podium.has_record:
                    await kit.house()
                    await _tell_waiting(door, podium)

            await loop(kit, ended, asyncio.Event(), begun=begun)

    door.run(work)


async def _tell_waiting(door: Door, podium: Podium) -> None:
    found = await candidates_seen(podium)
    waiting = [each.standing.wo_id for each in found if each.state == "waiting"]
    if waiting:
        command = f"podium candidates{root_words(podium.folders.project)}"
        door.screen.aside(f"waiting: {', '.join(waiting)}; `{command}` tells more")


def _tell(door: Door, outcome: TickOutcome | PodiumError, told: set[str]) -> None:
    screen = door.screen
    if isinstance(outcome, PodiumError):
        message = f"{outcome} (the next tick comes all the same)"
        screen.aside(f"podium: {message}")
        if screen.json:
            screen.record({"error": error_record(outcome, str(outcome), outcome.exit_code)})
        return
    screen.answer(tick_record(outcome), lambda: screen.line(tick_line(outcome, told)))


def tick_line(outcome: TickOutcome, told: Container[str] = ()) -> str:
    """A tick on one line, without the candidates whose end was `told` when it came."""
    candidates = [each for each in outcome.candidates if each.wo_id not in told]
    parts = [f"{moment(outcome.at)}  tick {outcome.tick}", outcome.status.value]
    if outcome.why:
        parts.append(shown_line(outcome.why, 160))
    elif outcome.status == "SKIPPED":
        parts.append(f"nothing changed ({outcome.idle_ticks} idle)")
    for state in dict.fromkeys(each.state for each in candidates):
        found = [each.wo_id for each in candidates if each.state == state]
        parts.append(f"{state}: {', '.join(found)}")
    if outcome.notices:
        parts.append(
            f"{counted(len(outcome.notices), 'notice')}: {shown_line(outcome.notices[0], 120)}"
        )
    if outcome.status != "SKIPPED" and not candidates and not outcome.why:
        parts.append("nothing to do")
    return "  ".join(parts)
