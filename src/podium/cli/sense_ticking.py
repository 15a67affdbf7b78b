"""One tick of the sense loop, seen through and told."""

from __future__ import annotations

import shutil
import sys
from contextlib import AsyncExitStack

import typer

from podium.cli.door import Door
from podium.cli.progress import Progress
from podium.cli.sense_next import Surroundings, look_around
from podium.cli.sense_set_up import PLANNERS
from podium.cli.sense_trust_news import TrustNews
from podium.cli.sense_words import tell_tick
from podium.domain.model import Json
from podium.domain.sensing import PlannerStatus, TickOutcome
from podium.flows.sense import SenseOptions, tick
from podium.wiring import Podium
from podium.wiring.sensing import idle_conditions, note_if_idle, sense_options, tick_kit


def tick_once(door: Door, *, manual: bool) -> None:
    """Tick, tell what came of it, and leave with its exit code."""
    door.options.ending_words = "ending the tick; the next one goes on with what this one began"
    door.options.parting_words = "the next tick goes on with what this one began"

    async def work(podium: Podium) -> tuple[TickOutcome, Surroundings, list[str]]:
        options, news = sense_options(podium), TrustNews(podium)
        conditions = None if manual or door.options.mode else idle_conditions(podium)
        with Progress(sys.stderr) as progress:
            progress.doing("looking")
            async with AsyncExitStack() as stack:
                kit = await tick_kit(
                    podium, stack, opening=lambda: _tell_planning(progress, podium, options)
                )
                outcome = await tick(kit, manual=manual)
        if conditions is not None:
            note_if_idle(podium, kit, outcome, conditions)
        for fault in kit.record.faults:
            door.screen.aside(f"podium: {fault}")
        return outcome, await look_around(podium, outcome.candidates), news.lines()

    outcome, around, news = door.run(work)
    door.screen.answer(tick_record(outcome), lambda: tell_tick(door.screen, outcome, around, news))
    raise typer.Exit(1 if outcome.status is PlannerStatus.ERROR else 0)


def tick_record(outcome: TickOutcome) -> dict[str, Json]:
    """A tick as programs read it."""
    return {**outcome.model_dump(mode="json"), "summary": outcome.summary()}


def _tell_planning(progress: Progress, podium: Podium, options: SenseOptions) -> None:
    if options.planner in ("rules", "none") or _is_absent(podium, options.planner):
        progress.doing("planning")
        return
    words = f"planner {options.planner} thinks"
    progress.doing(words)
    if not progress.width:
        profile = options.profiles.get(options.profile)
        most = f", for at most {profile.timeout_seconds:g} s" if profile else ""
        progress.line(f"{words}{most}")


def _is_absent(podium: Podium, planner: str) -> bool:
    """Whether its program is none of this machine's. Of other kinds of agents that is not known beforehand."""
    known = podium.settings.agents.get(planner)
    kind = known.kind if known else planner
    if kind not in PLANNERS:
        return False
    program = known.command[0] if known and known.command else kind
    return shutil.which(program, path=podium.environ.get("PATH")) is None
