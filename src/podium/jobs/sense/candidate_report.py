"""Ticks and candidates as text, with answers, grants, and the next command that works here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podium.app.app import Podium
from podium.app.workload import see_queues
from podium.cli.context import from_here, is_elsewhere, root_option
from podium.cli.screen import Screen
from podium.config.configuration import load_configuration
from podium.config.folders import PROJECT_FILE
from podium.core.events import ToolFailed, ToolRefused
from podium.core.work import MODES, Mode, Run, RunStatus
from podium.jobs.sense import SenseOptions
from podium.jobs.sense.candidate_lookup import wo_id_of
from podium.jobs.sense.candidate_status import PUT_OFF
from podium.jobs.sense.candidates import AckReader, answer_to
from podium.jobs.sense.composition import (
    candidate_mode,
    current_trust,
    sense_options,
    sense_queue,
)
from podium.jobs.sense.deps import TEXT_ZONE
from podium.jobs.sense.job import WORK_ORDER
from podium.jobs.sense.models import (
    CandidateStatus,
    PlannerStatus,
    SkippedItem,
    TickOutcome,
    no_operations,
    no_plan,
)
from podium.jobs.sense.options import sense_mode
from podium.jobs.sense.orders.work_order import Ack
from podium.jobs.sense.tick_report import (
    INDENT,
    NOTHING_CHANGED,
    show_part,
    show_sensed,
    show_totals,
    show_value,
)
from podium.jobs.sense.trust import EarnedTrust
from podium.ports import EventQuery, RunQuery, StoreView
from podium.render.text import escaped_line

MAX_RUNS = 500


@dataclass(frozen=True)
class ReportContext:
    """Everything a report on candidates needs besides their status."""

    options: SenseOptions
    root: Path
    acks: Mapping[str, Ack] = field(default_factory=dict)
    """Work order → what the worker said of it."""
    trust: Sequence[EarnedTrust] = ()
    hindrances: Mapping[str, str] = field(default_factory=dict)
    """Work order → what keeps it from being delivered or performed just now, in words."""
    agents: tuple[str, ...] = ()
    """Agents in the settings, any of which could plan."""
    mode_option: str = ""
    """` --mode MODE` for a command that delivers candidates; empty where the configured mode is enough."""

    def state_of(self, status: CandidateStatus) -> str:
        """Return its state; a worker's answer takes precedence over "delivered"."""
        ack = self.acks.get(status.wo_id)
        return ack.status if ack else status.state

    def grantors(self, status: CandidateStatus) -> tuple[str, ...]:
        """Return the people whose granted autonomy let it be delivered; empty where somebody was asked."""
        if status.state != "delivered" or status.approval_id:
            return ()
        names = (
            trust.granted_by
            for trust in self.trust
            if trust.target == status.target and trust.zone in status.zones and trust.granted_by
        )
        return tuple(dict.fromkeys(names))

    def ack_file(self, wo_id: str) -> str:
        return self.path(f"{self.options.layout.acks}/{wo_id}.ack.json")

    def command(self, arguments: str) -> str:
        """A command of podium's, which names the root where it would not be found from here."""
        return f"podium {arguments}{root_option(self.root)}"

    def deploy(self, wo_id: str) -> str:
        """The command that says yes to a candidate and delivers it."""
        return self.command(f"deploy {wo_id}{self.mode_option}")

    def move(self, wo_id: str) -> str:
        """Return the command that hands over an order filed by a dry run."""
        layout = self.options.layout
        source = self.path(f"{layout.candidates}/{wo_id}.yaml")
        return f"mv {shlex.quote(source)} {shlex.quote(self.path(layout.inbox) + '/')}"

    def path(self, path: str) -> str:
        """A path that works from here."""
        return str(Path(from_here(self.root)) / path) if is_elsewhere(self.root) else path


async def report_context(podium: Podium, statuses: Sequence[CandidateStatus] = ()) -> ReportContext:
    """Gather the context of a report on these candidates. Without any, the database is not opened."""
    options = sense_options(podium)
    acks = dict(_answers(podium, statuses))
    left = [status for status in statuses if status.wo_id not in acks]
    hindrances = {}
    if left:
        hindrances = await (await podium.store()).read(lambda view: _hindrances(view, left))
    return ReportContext(
        options=options,
        root=podium.folders.project,
        acks=acks,
        trust=current_trust(podium),
        hindrances=hindrances,
        agents=tuple(sorted(podium.settings.agents)),
        mode_option=_mode_option(podium),
    )


def _mode_option(podium: Podium) -> str:
    """`--mode` as it was given to this command, or the one that deploys, where the settings alone would refuse."""
    plain = load_configuration(podium.environ, project=podium.folders.project)
    set_mode = sense_mode(plain, podium.environ)
    mode = sense_mode(podium.configuration, podium.environ)
    target_mode: Mode = mode if mode != "sensing" else "supervised"
    return f" --mode {target_mode}" if MODES.index(set_mode) < MODES.index(target_mode) else ""


def _answers(podium: Podium, statuses: Iterable[CandidateStatus]) -> Iterator[tuple[str, Ack]]:
    answered = AckReader(podium)
    for status in statuses:
        if (ack := answer_to(status, answered)) is not None:
            yield status.wo_id, ack


def _hindrances(view: StoreView, statuses: Sequence[CandidateStatus]) -> dict[str, str]:
    """Find reasons why deferred candidates and orders that need a person cannot go on."""
    query = RunQuery(flow=WORK_ORDER, statuses=(RunStatus.NEEDS_HUMAN,), limit=MAX_RUNS)
    stopped = {run.input["file"].removesuffix(".yaml"): run for run in view.runs(query)}
    reasons = {}
    for status in statuses:
        run = stopped.get(status.wo_id)
        if status.state == "delivered" and run is not None and run.failure:
            reasons[status.wo_id] = run.failure.message
        elif status.why == PUT_OFF:
            reasons[status.wo_id] = _put_off_by(view, status.run_id)
    return {wo_id: why for wo_id, why in reasons.items() if why}


def _put_off_by(view: StoreView, run_id: str) -> str:
    tries = view.events(EventQuery(run_id=run_id, types=("tool_refused", "tool_failed")))
    for body in (event.body for event in reversed(tries)):
        if isinstance(body, ToolRefused):
            return f"deferred, retried every five minutes: {body.reason}"
        if isinstance(body, ToolFailed):
            return f"deferred, retried every five minutes: {body.error}"
    return ""


def render_tick(
    screen: Screen, outcome: TickOutcome, around: ReportContext, news: Sequence[str] = ()
) -> None:
    """Print the readings, the plan, its outcome and the next commands.

    `news` are lines about what was earned and lost since the last tick.
    """
    show_sensed(screen, outcome.tick, outcome.mode, outcome.seconds, outcome.counts)
    show_part(screen, "missing", outcome.missing)
    show_part(screen, "planner", _planner(outcome, around))
    show_part(screen, "changed", outcome.plan_changes)
    show_part(screen, "notices", outcome.notices)
    show_part(
        screen,
        "skipped",
        [
            f"item {item.index}: {item.reason}"
            for item in outcome.skipped_items
            if not _is_in_notices(item)
        ],
    )
    show_part(screen, "trust", news)
    show_totals(screen, outcome.tick, outcome.idle_ticks, outcome.tokens)
    for candidate in outcome.candidates:
        screen.line()
        render_candidate(screen, candidate, around)
    screen.line()
    screen.line(outcome.summary())


def render_candidate(screen: Screen, status: CandidateStatus, around: ReportContext) -> None:
    """Print a candidate's status and the next commands."""
    screen.line(f"{around.state_of(status):<{INDENT}}{status.wo_id}")
    about = f"{status.target}: {status.title}" if status.target else status.title
    for line in (about, weight_text(status), reason_text(status, around)):
        if line:
            show_value(screen, "", line)
    for command in next_commands(status, around):
        screen.line(f"{'':{INDENT}}{escaped_line(command)}")


def weight_text(status: CandidateStatus) -> str:
    """Tier and zones, as the gate weighed them."""
    if not status.tier:
        return ""
    if status.zones == (TEXT_ZONE,):
        cannot = f"; {no_operations(status)}" if status.cannot else ""
        return f"{status.tier}, text only: no operations have been planned yet{cannot}"
    return f"{status.tier} in {', '.join(status.zones) or 'no zone'}"


def reason_text(status: CandidateStatus, around: ReportContext) -> str:
    """Return the reason for the status, where the next commands do not say it."""
    if ack := around.acks.get(status.wo_id):
        return ack.error
    if hindrance := around.hindrances.get(status.wo_id):
        return hindrance
    if people := around.grantors(status):
        return f"delivered without approval, with autonomy granted by {' and '.join(people)}"
    stated = status.state == "approved" or _asks(status)
    return "" if stated else status.why


def _asks(status: CandidateStatus) -> bool:
    return status.state == "waiting" and status.why.startswith("waits for approval:")


def next_commands(status: CandidateStatus, around: ReportContext) -> Iterator[str]:
    """Yield the commands a person can run now, one per line. They work in the current folder."""
    wo_id = status.wo_id
    if wo_id in around.acks:
        yield f"answered in {around.ack_file(wo_id)}"
        return
    match status.state:
        case "waiting" if _asks(status):
            yield around.deploy(wo_id)
            yield around.command(f'reject {wo_id} --why "…"')
        case "waiting":
            yield around.command(f"show {status.run_id}")
        case "approved":
            yield around.move(wo_id)
        case "delivered" if wo_id in around.hindrances:
            yield around.command("runs --status needs_human")
        case "delivered":
            yield f"in {around.path(status.file)}; execute it with `{around.command('worker --once')}`"
        case "logged":
            yield around.command(f"candidates show {wo_id}")
        case _:
            return


def _is_in_notices(item: SkippedItem) -> bool:
    """True if the notices contain it already."""
    return item.reason.startswith("action alert:")


def _planner(outcome: TickOutcome, around: ReportContext) -> list[str]:
    if outcome.status is PlannerStatus.SKIPPED:
        return [f"SKIPPED: {outcome.why or NOTHING_CHANGED}"]
    why = f": {outcome.why}" if outcome.why else ""
    name = outcome.planner or around.options.planner
    absent = outcome.status is PlannerStatus.MOCK
    unplanned = [no_plan(outcome.status)] if no_plan(outcome.status) else []
    others = [_other_planners(name, around)] if absent else []
    return [f"{name} {outcome.status}{why}", *unplanned, *others]


def _other_planners(name: str, around: ReportContext) -> str:
    """Name the settings that plan without the absent planner."""
    agent = next((agent for agent in around.agents if agent != name), "")
    asked = f"`planner: {escaped_line(agent)}` or " if agent else ""
    file = escaped_line(str(around.root / PROJECT_FILE))
    return f"set {asked}`planner: rules` (no model) under `flows: sense:` in {file}"


async def next_of_candidate(podium: Podium, run: Run, *, yes: bool) -> str:
    """Name the process that continues the candidate, or the command a person must run."""
    if run.status.ended:
        return _how_it_ended(run)
    queue = sense_queue(podium.configuration)
    workload = await see_queues(await podium.store(), podium.engine, [queue])
    served = any(served.served_by for served in workload.queues if served.name == queue.name)
    around = await report_context(podium)
    if not yes:
        return "" if served else f"the next tick or `{around.command('worker')}` closes it"
    return _after_yes(around, wo_id_of(run), candidate_mode(podium, run), served)


def _how_it_ended(run: Run) -> str:
    if not isinstance(run.result, dict):
        return ""
    status = CandidateStatus.model_validate(run.result)
    return f"{status.state}: {status.file}" if status.state == "delivered" else status.why


def _after_yes(around: ReportContext, wo_id: str, mode: str, served: bool) -> str:
    if mode == "sensing":
        return f"mode sensing delivers nothing; deliver it with `{around.deploy(wo_id)}`"
    if mode == "dry-run":
        return f"a dry run moves nothing; hand it to the worker with `{around.move(wo_id)}`"
    if served:
        path = around.path(f"{around.options.layout.inbox}/{wo_id}.yaml")
        return f"a running worker delivers it to {path}"
    worker, deploy = around.command("worker"), around.deploy(wo_id)
    return f"the next tick or `{worker}` delivers it; `{deploy}` delivers it now"
