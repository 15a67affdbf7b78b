"""`podium sense`: one tick, or the loop in the foreground with a line for each tick."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import Door, root_option, take_root
from podium.cli.progress import Progress
from podium.cli.screen import error_record
from podium.core.decisions import Tier
from podium.core.errors import BadInput, PodiumError
from podium.core.model import Json
from podium.core.work import MODES, Mode
from podium.jobs.sense import SenseOptions, TickKit, loop, standing_of, tick
from podium.jobs.sense.candidate_report import Surroundings, look_around, tell_tick
from podium.jobs.sense.candidates import candidates_seen
from podium.jobs.sense.commands.sense_setup import PLANNERS, add_set_up
from podium.jobs.sense.commands.sense_trust import trust_app
from podium.jobs.sense.composition import (
    idle_conditions,
    known_standings,
    note_if_idle,
    sense_options,
    tick_kit,
    trust_of,
)
from podium.jobs.sense.idle_tick import MODE_VARIABLE, is_scheduled
from podium.jobs.sense.io import last_tick
from podium.jobs.sense.models import CandidateStanding, PlannerStatus, TickOutcome
from podium.jobs.sense.trust import Standing, standings
from podium.ports import StoreView
from podium.render.text import counted, moment, shown_line

NOTHING = Standing(target="", zone="")


class TrustNews:
    """Made before a tick, asked after it; asked again, it tells what happened since."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium
        self._needed = sense_options(podium).promote_after
        tick = last_tick(podium.folders.project)
        entries = trust_of(podium).entries()
        before = standings(each for each in entries if tick is not None and each.at <= tick.at)
        self._known = {(each.target, each.zone): each for each in before}

    def lines(self) -> list[str]:
        """A sentence for each demotion, and for each promotion that has been earned."""
        now = known_standings(self._podium)
        lines = [line for each in now for line in self._news_of(each)]
        self._known = {(each.target, each.zone): each for each in now}
        return lines

    def _news_of(self, standing: Standing) -> Iterator[str]:
        before = self._known.get((standing.target, standing.zone), NOTHING)
        place = f"{standing.target} in {standing.zone}"
        if before.granted is not None and standing.granted is None:
            yield f"{place} lost its autonomy, its orders are asked about again: {standing.why}"
        if standing.proposes(self._needed) and not before.proposes(self._needed):
            tier = max(standing.highest_agreed, Tier.T1)
            words = f"{shlex.quote(standing.target)} --zone {shlex.quote(standing.zone)}"
            project = root_option(self._podium.folders.project)
            yield f"{place} has earned autonomy up to {tier}: podium sense trust promote {words}{project}"


def tick_once(door: Door, *, manual: bool) -> None:
    """Tick, tell what came of it, and leave with its exit code."""
    door.options.ending_note = "ending the tick; the next one goes on with what this one began"
    door.options.parting_note = "the next tick goes on with what this one began"

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
            door.screen.stderr_line(f"podium: {fault}")
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
        (screen.stderr_line if screen.json else screen.line)(line)


def _ended(view: StoreView, pending: Mapping[str, str]) -> list[CandidateStanding]:
    runs = [view.run(run_id) for run_id in pending.values()]
    found = [standing_of(view, run) for run in runs if run is not None and run.status.ended]
    return [each for each in found if each is not None]


def keep_ticking(door: Door) -> None:
    """Tick until Ctrl-C."""
    door.options.ending_note = "ending the tick; every run stays at its checkpoint"
    door.options.parting_note = "every run stays at its checkpoint, for the next loop or worker"

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
                    door.screen.stderr_line(f"podium: {shown_line(line)}")
                told.clear()
                told.update(kit.record.faults)
                between.watch()

            async def begun() -> None:
                every = f"every {kit.options.every_seconds:g} s"
                door.screen.stderr_line(
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
        command = f"podium candidates{root_option(podium.folders.project)}"
        door.screen.stderr_line(f"waiting: {', '.join(waiting)}; `{command}` tells more")


def _tell(door: Door, outcome: TickOutcome | PodiumError, told: set[str]) -> None:
    screen = door.screen
    if isinstance(outcome, PodiumError):
        message = f"{outcome} (the next tick comes all the same)"
        screen.stderr_line(f"podium: {message}")
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


app = command_app()
add_set_up(app)
app.add_typer(trust_app, name="trust")


@app.callback(invoke_without_command=True)
def sense(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="One tick, which always plans.")] = False,
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="How far it may go, instead of what is set.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="The root; else the project's folder."),
    ] = None,
    if_changed: Annotated[
        bool, typer.Option("--if-changed", help="With --once: plan only if something changed.")
    ] = False,
) -> None:
    """Read the system's state, plan, and let work orders go as far as the mode lets them.

    A tick looks at the sources, asks the planner if anything changed, and makes candidates of its
    plan. Without --once that happens now and again and again until Ctrl-C; one loop has a root, a
    second one exits with 7. GMX_ORCH_MODE lowers the mode and never raises it.

    sensing only tells; dry-run writes candidates to review; supervised delivers what somebody
    approved; autonomous also delivers unasked what `podium sense trust` grants.

    One tick exits with 0 when there is a plan, an empty one in place of an absent planner, or
    nothing to plan for, and with 1 when the planner failed.

    \b
    Example:
      podium sense scaffold && podium sense --once
      podium sense --once --mode dry-run --json
      podium sense --mode supervised
    """
    options = context.obj
    take_root(context, root)
    if context.invoked_subcommand is not None:
        if once or if_changed or mode:
            raise BadInput(
                f"--once, --if-changed and --mode are for a tick; say them behind "
                f"`{context.invoked_subcommand}` if that takes them"
            )
        return
    if if_changed and not once:
        raise BadInput("the loop plans only if something changed anyway; add --once")
    options.mode = mode or ""
    door = Door(options)
    _tell_odd_mode(door)
    if once:
        tick_once(door, manual=not (if_changed or is_scheduled(os.environ)))
    else:
        keep_ticking(door)


def _tell_odd_mode(door: Door) -> None:
    given = os.environ.get(MODE_VARIABLE, "").strip()
    if given and given not in MODES:
        door.screen.stderr_line(
            f"podium: {MODE_VARIABLE}={given!r} is no mode, so the mode is {MODES[0]}; modes: {', '.join(MODES)}"
        )
