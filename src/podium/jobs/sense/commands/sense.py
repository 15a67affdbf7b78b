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
from podium.cli.context import CliContext, root_option, take_root
from podium.cli.progress import Progress
from podium.cli.screen import error_record
from podium.core.decisions import Tier
from podium.core.errors import BadInput, PodiumError
from podium.core.model import Json
from podium.core.work import MODES, Mode
from podium.jobs.sense import SenseOptions, TickDeps, loop, status_of, tick
from podium.jobs.sense.candidate_report import ReportContext, render_tick, report_context
from podium.jobs.sense.candidates import load_candidates
from podium.jobs.sense.commands.sense_setup import PLANNERS, add_set_up
from podium.jobs.sense.commands.sense_trust import trust_app
from podium.jobs.sense.composition import (
    current_trust,
    sense_options,
    tick_deps,
    trust_of,
)
from podium.jobs.sense.idle_tick import idle_conditions, is_scheduled, note_if_idle
from podium.jobs.sense.io import last_tick
from podium.jobs.sense.io.tick_files import MODE_VARIABLE
from podium.jobs.sense.models import CandidateStatus, PlannerStatus, TickOutcome
from podium.jobs.sense.trust import EarnedTrust, earned_trust
from podium.ports import StoreView
from podium.render.text import counted, escaped_line, local_time

NOTHING = EarnedTrust(target="", zone="")


class TrustNews:
    """Changes of earned trust since it was made or last asked."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium
        self._needed = sense_options(podium).promote_after
        tick = last_tick(podium.folders.project)
        entries = trust_of(podium).entries()
        before = earned_trust(
            entry for entry in entries if tick is not None and entry.at <= tick.at
        )
        self._before = {(trust.target, trust.zone): trust for trust in before}

    def lines(self) -> list[str]:
        """A sentence for each demotion, and for each promotion that has been earned."""
        now = current_trust(self._podium)
        lines = [line for trust in now for line in self._news_of(trust)]
        self._before = {(trust.target, trust.zone): trust for trust in now}
        return lines

    def _news_of(self, trust: EarnedTrust) -> Iterator[str]:
        before = self._before.get((trust.target, trust.zone), NOTHING)
        where = f"{trust.target} in {trust.zone}"
        if before.granted is not None and trust.granted is None:
            yield f"{where} lost its autonomy; its orders need approval again: {trust.why}"
        if trust.proposes(self._needed) and not before.proposes(self._needed):
            tier = max(trust.highest_agreed, Tier.T1)
            arguments = f"{shlex.quote(trust.target)} --zone {shlex.quote(trust.zone)}"
            project = root_option(self._podium.folders.project)
            yield f"{where} has earned autonomy up to {tier}; grant it with `podium sense trust promote {arguments}{project}`"


def tick_once(cli: CliContext, *, manual: bool) -> None:
    """Tick, tell what came of it, and leave with its exit code."""
    cli.options.ending_note = "stopping; the next tick resumes this one"
    cli.options.parting_note = "the next tick resumes this one"

    async def work(podium: Podium) -> tuple[TickOutcome, ReportContext, list[str]]:
        options, news = sense_options(podium), TrustNews(podium)
        conditions = None if manual or cli.options.mode else idle_conditions(podium)
        with Progress(sys.stderr) as progress:
            progress.doing("reading sources")
            async with AsyncExitStack() as stack:
                deps = await tick_deps(
                    podium, stack, opening=lambda: _show_planning(progress, podium, options)
                )
                outcome = await tick(deps, manual=manual)
        if conditions is not None:
            note_if_idle(podium, deps, outcome, conditions)
        for problem in deps.record.problems:
            cli.screen.stderr_line(f"podium: {problem}")
        return outcome, await report_context(podium, outcome.candidates), news.lines()

    outcome, around, news = cli.run(work)
    cli.screen.answer(tick_record(outcome), lambda: render_tick(cli.screen, outcome, around, news))
    raise typer.Exit(1 if outcome.status is PlannerStatus.ERROR else 0)


def tick_record(outcome: TickOutcome) -> dict[str, Json]:
    """A tick as programs read it."""
    return {**outcome.model_dump(mode="json"), "summary": outcome.summary()}


def _show_planning(progress: Progress, podium: Podium, options: SenseOptions) -> None:
    if options.planner in ("rules", "none") or _is_absent(podium, options.planner):
        progress.doing("planning")
        return
    activity = f"waiting for planner {options.planner}"
    progress.doing(activity)
    if not progress.width:
        profile = options.profiles.get(options.profile)
        most = f", at most {profile.timeout_seconds:g} s" if profile else ""
        progress.line(f"{activity}{most}")


def _is_absent(podium: Podium, planner: str) -> bool:
    """True if the planner's program is not installed here. False for kinds of agents that cannot be checked."""
    settings = podium.settings.agents.get(planner)
    kind = settings.kind if settings else planner
    if kind not in PLANNERS:
        return False
    program = settings.command[0] if settings and settings.command else kind
    return shutil.which(program, path=podium.environ.get("PATH")) is None


class CandidateWatcher:
    """Watches what waited when the last tick ended."""

    def __init__(self, cli: CliContext, podium: Podium, deps: TickDeps) -> None:
        self._cli = cli
        self._podium = podium
        self._deps = deps
        self._watching: asyncio.Task[None] | None = None
        self.reported: set[str] = set()
        """Orders whose end was told, so that the next tick need not."""

    def watch(self) -> None:
        """Start watching the candidates that wait when a tick ends."""
        if self._watching is not None:
            self._watching.cancel()
        pending = self._deps.record.memory().pending
        self.reported &= set(pending)
        if left := {wo_id: run for wo_id, run in pending.items() if wo_id not in self.reported}:
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
                for status in await store.read(lambda view: _ended(view, pending)):
                    pending.pop(status.wo_id)
                    await self._print_end(status)
                if not pending:
                    return

    async def _print_end(self, status: CandidateStatus) -> None:
        self.reported.add(status.wo_id)
        what = status.why
        if status.state == "delivered":
            around = await report_context(self._podium)
            what = f"to {around.path(status.file)}; execute it with `{around.command('worker')}`"
        now = local_time(self._podium.clock.now())
        line = f"{now}  {status.state}: {status.wo_id}  {escaped_line(what, 160)}".rstrip()
        screen = self._cli.screen
        (screen.stderr_line if screen.json else screen.line)(line)


def _ended(view: StoreView, pending: Mapping[str, str]) -> list[CandidateStatus]:
    runs = [view.run(run_id) for run_id in pending.values()]
    statuses = [status_of(view, run) for run in runs if run is not None and run.status.ended]
    return [status for status in statuses if status is not None]


def keep_ticking(cli: CliContext) -> None:
    """Tick until Ctrl-C."""
    cli.options.ending_note = "stopping; every run stays at its checkpoint"
    cli.options.parting_note = (
        "every run stays at its checkpoint; the next loop or worker resumes it"
    )

    async def work(podium: Podium) -> None:
        async with AsyncExitStack() as stack:
            deps = await tick_deps(podium, stack)
            between = CandidateWatcher(cli, podium, deps)
            stack.push_async_callback(between.stop)
            news, reported = TrustNews(podium), set[str]()

            def ended(outcome: TickOutcome | PodiumError) -> None:
                _print_tick(cli, outcome, between.reported)
                for line in (
                    *news.lines(),
                    *(problem for problem in deps.record.problems if problem not in reported),
                ):
                    cli.screen.stderr_line(f"podium: {escaped_line(line)}")
                reported.clear()
                reported.update(deps.record.problems)
                between.watch()

            async def begun() -> None:
                every = f"every {deps.options.every_seconds:g} s"
                cli.screen.stderr_line(
                    f"sensing {deps.root} in mode {deps.mode}, now and {every}; press Ctrl-C to stop"
                )
                # What people answered while no loop ran waits in the record, where there is one.
                if podium.has_record:
                    await deps.services()
                    await _print_waiting(cli, podium)

            await loop(deps, ended, asyncio.Event(), begun=begun)

    cli.run(work)


async def _print_waiting(cli: CliContext, podium: Podium) -> None:
    views = await load_candidates(podium)
    waiting = [view.standing.wo_id for view in views if view.state == "waiting"]
    if waiting:
        command = f"podium candidates{root_option(podium.folders.project)}"
        cli.screen.stderr_line(f"waiting: {', '.join(waiting)}; list them with `{command}`")


def _print_tick(cli: CliContext, outcome: TickOutcome | PodiumError, reported: set[str]) -> None:
    screen = cli.screen
    if isinstance(outcome, PodiumError):
        message = f"{outcome} (the loop continues with the next tick)"
        screen.stderr_line(f"podium: {message}")
        if screen.json:
            screen.record({"error": error_record(outcome, str(outcome), outcome.exit_code)})
        return
    screen.answer(tick_record(outcome), lambda: screen.line(tick_line(outcome, reported)))


def tick_line(outcome: TickOutcome, reported: Container[str] = ()) -> str:
    """A tick on one line, without the candidates whose end was `told` when it came."""
    candidates = [candidate for candidate in outcome.candidates if candidate.wo_id not in reported]
    parts = [f"{local_time(outcome.at)}  tick {outcome.tick}", outcome.status.value]
    if outcome.why:
        parts.append(escaped_line(outcome.why, 160))
    elif outcome.status == "SKIPPED":
        parts.append(f"nothing changed ({counted(outcome.idle_ticks, 'idle tick')})")
    for state in dict.fromkeys(candidate.state for candidate in candidates):
        ids = [candidate.wo_id for candidate in candidates if candidate.state == state]
        parts.append(f"{state}: {', '.join(ids)}")
    if outcome.notices:
        parts.append(
            f"{counted(len(outcome.notices), 'notice')}: {escaped_line(outcome.notices[0], 120)}"
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
    once: Annotated[bool, typer.Option("--once", help="Run one tick, and always plan.")] = False,
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="Mode to use instead of the configured one.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Root folder (default: the project folder)."),
    ] = None,
    if_changed: Annotated[
        bool, typer.Option("--if-changed", help="With --once, plan only if something changed.")
    ] = False,
) -> None:
    """Read the state of a system, plan, and deliver work orders as far as the mode allows.

    A tick reads the sources, asks the planner if anything changed, and turns its plan into
    candidates. Without --once, ticks repeat until Ctrl-C. Only one loop can run per root; a second
    one exits with 7. GMX_ORCH_MODE can lower the mode, but never raise it.

    sensing only reports; dry-run writes candidates for review; supervised delivers what a person
    approved; autonomous also delivers, without approval, what `podium sense trust` grants.

    A single tick exits with 0 if there is a plan (an empty one if the planner is absent) or
    nothing to plan for, and with 1 if the planner failed.

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
                f"--once, --if-changed and --mode do not apply to `{context.invoked_subcommand}`; put its own options after its name"
            )
        return
    if if_changed and not once:
        raise BadInput("--if-changed requires --once; add it")
    options.mode = mode or ""
    cli = CliContext(options)
    _warn_unknown_mode(cli)
    if once:
        tick_once(cli, manual=not (if_changed or is_scheduled(os.environ)))
    else:
        keep_ticking(cli)


def _warn_unknown_mode(cli: CliContext) -> None:
    configured = os.environ.get(MODE_VARIABLE, "").strip()
    if configured and configured not in MODES:
        cli.screen.stderr_line(
            f"podium: {MODE_VARIABLE}={configured!r} is not a mode; using {MODES[0]}. Modes: {', '.join(MODES)}"
        )
