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
from podium.core.events import ToolFailed, ToolRefused
from podium.core.work import MODES, Mode, Run, RunStatus
from podium.jobs.sense import SenseOptions
from podium.jobs.sense.candidate_lookup import wo_id_of
from podium.jobs.sense.candidate_status import PUT_OFF
from podium.jobs.sense.candidates import Answers, answer_to
from podium.jobs.sense.composition import (
    candidate_mode,
    known_standings,
    sense_options,
    sense_queue,
)
from podium.jobs.sense.deps import WORK_ORDER
from podium.jobs.sense.effective_options import sense_mode
from podium.jobs.sense.models import (
    CandidateStanding,
    PlannerStatus,
    SkippedItem,
    TickOutcome,
    no_operations,
    no_plan,
)
from podium.jobs.sense.orders.work_order import Ack
from podium.jobs.sense.tick_report import (
    INDENT,
    NOTHING_CHANGED,
    show_part,
    show_sensed,
    show_totals,
    show_value,
)
from podium.jobs.sense.trust import Standing
from podium.ports import EventQuery, RunQuery, StoreView
from podium.render.text import shown_line

MAX_RUNS = 500


@dataclass(frozen=True)
class Surroundings:
    """What the words about candidates need besides where they stand."""

    options: SenseOptions
    root: Path
    acks: Mapping[str, Ack] = field(default_factory=dict)
    """Work order → what the worker said of it."""
    trust: Sequence[Standing] = ()
    hindrances: Mapping[str, str] = field(default_factory=dict)
    """Work order → what keeps it from being delivered or performed just now, in words."""
    mode_words: str = ""
    """What a command needs behind it to have a mode that moves candidates; empty where it has one anyway."""

    def state_of(self, standing: CandidateStanding) -> str:
        """Where it stands, with its end: what a worker answered counts more than that it was delivered."""
        ack = self.acks.get(standing.wo_id)
        return ack.status if ack else standing.state

    def grantors(self, standing: CandidateStanding) -> tuple[str, ...]:
        """Who let it be delivered unasked; nobody where somebody was asked."""
        if standing.state != "delivered" or standing.approval_id:
            return ()
        names = (
            each.granted_by
            for each in self.trust
            if each.target == standing.target and each.zone in standing.zones and each.granted_by
        )
        return tuple(dict.fromkeys(names))

    def ack_file(self, wo_id: str) -> str:
        return self.place(f"{self.options.layout.acks}/{wo_id}.ack.json")

    def command(self, words: str) -> str:
        """A command of podium's, which names the root where it would not be found from here."""
        return f"podium {words}{root_option(self.root)}"

    def deploy(self, wo_id: str) -> str:
        """The command that says yes to a candidate and delivers it."""
        return self.command(f"deploy {wo_id}{self.mode_words}")

    def move(self, wo_id: str) -> str:
        """How a person hands over an order that a dry run filed."""
        layout = self.options.layout
        source = self.place(f"{layout.candidates}/{wo_id}.yaml")
        return f"mv {shlex.quote(source)} {shlex.quote(self.place(layout.inbox) + '/')}"

    def place(self, path: str) -> str:
        """A path that works from here."""
        return str(Path(from_here(self.root)) / path) if is_elsewhere(self.root) else path


async def look_around(podium: Podium, standings: Sequence[CandidateStanding] = ()) -> Surroundings:
    """For these candidates, as things are now. Without any, the database is left alone."""
    options = sense_options(podium)
    acks = dict(_answers(podium, standings))
    left = [each for each in standings if each.wo_id not in acks]
    hindrances = {}
    if left:
        hindrances = await (await podium.store()).read(lambda view: _hindrances(view, left))
    return Surroundings(
        options=options,
        root=podium.folders.project,
        acks=acks,
        trust=known_standings(podium),
        hindrances=hindrances,
        mode_words=_mode_words(podium),
    )


def _mode_words(podium: Podium) -> str:
    """`--mode` as it was given to this command, or the one that deploys, where the settings alone would refuse."""
    plain = load_configuration(podium.environ, project=podium.folders.project)
    set_mode = sense_mode(plain, podium.environ)
    mode = sense_mode(podium.configuration, podium.environ)
    wanted: Mode = mode if mode != "sensing" else "supervised"
    return f" --mode {wanted}" if MODES.index(set_mode) < MODES.index(wanted) else ""


def _answers(podium: Podium, standings: Iterable[CandidateStanding]) -> Iterator[tuple[str, Ack]]:
    answered = Answers(podium)
    for each in standings:
        if (ack := answer_to(each, answered)) is not None:
            yield each.wo_id, ack


def _hindrances(view: StoreView, standings: Sequence[CandidateStanding]) -> dict[str, str]:
    """What the record knows of those that were put off, and of orders that a worker cannot go on with."""
    query = RunQuery(flow=WORK_ORDER, statuses=(RunStatus.NEEDS_HUMAN,), limit=MAX_RUNS)
    stopped = {run.input["file"].removesuffix(".yaml"): run for run in view.runs(query)}
    found = {}
    for each in standings:
        run = stopped.get(each.wo_id)
        if each.state == "delivered" and run is not None and run.failure:
            found[each.wo_id] = run.failure.message
        elif each.why == PUT_OFF:
            found[each.wo_id] = _put_off_by(view, each.run_id)
    return {wo_id: why for wo_id, why in found.items() if why}


def _put_off_by(view: StoreView, run_id: str) -> str:
    tries = view.events(EventQuery(run_id=run_id, types=("tool_refused", "tool_failed")))
    for body in (event.body for event in reversed(tries)):
        if isinstance(body, ToolRefused):
            return f"put off, and tried again every five minutes: {body.reason}"
        if isinstance(body, ToolFailed):
            return f"put off, and tried again every five minutes: {body.error}"
    return ""


IN_WORDS = "words"
"""The zone of an order that nobody has made operations of."""
WITHOUT_A_MODEL = "`planner: rules` under `flows: sense:` in podium.yaml plans without a model"


def tell_tick(
    screen: Screen, outcome: TickOutcome, around: Surroundings, news: Sequence[str] = ()
) -> None:
    """What was sensed, what was planned, what became of it, and what to do next.

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
            f"item {each.index}: {each.reason}"
            for each in outcome.skipped_items
            if not _is_told(each)
        ],
    )
    show_part(screen, "trust", news)
    show_totals(screen, outcome.tick, outcome.idle_ticks, outcome.tokens)
    for each in outcome.candidates:
        screen.line()
        tell_candidate(screen, each, around)
    screen.line()
    screen.line(outcome.summary())


def tell_candidate(screen: Screen, standing: CandidateStanding, around: Surroundings) -> None:
    """Where a candidate stands, and the next commands."""
    screen.line(f"{around.state_of(standing):<{INDENT}}{standing.wo_id}")
    about = f"{standing.target}: {standing.title}" if standing.target else standing.title
    for line in (about, weight_words(standing), why_words(standing, around)):
        if line:
            show_value(screen, "", line)
    for command in next_commands(standing, around):
        screen.line(f"{'':{INDENT}}{shown_line(command)}")


def weight_words(standing: CandidateStanding) -> str:
    """Tier and zones, as the gate weighed them."""
    if not standing.tier:
        return ""
    if standing.zones == (IN_WORDS,):
        cannot = f"; {no_operations(standing)}" if standing.cannot else ""
        return f"{standing.tier}, in words: no operations have been made of it yet{cannot}"
    return f"{standing.tier} in {', '.join(standing.zones) or 'no zone'}"


def why_words(standing: CandidateStanding, around: Surroundings) -> str:
    """Why it stands there, where the next commands do not say so."""
    if ack := around.acks.get(standing.wo_id):
        return ack.error
    if hindrance := around.hindrances.get(standing.wo_id):
        return hindrance
    if people := around.grantors(standing):
        return f"unasked, by the autonomy that {' and '.join(people)} granted"
    told = standing.state == "approved" or _asks(standing)
    return "" if told else standing.why


def _asks(standing: CandidateStanding) -> bool:
    return standing.state == "waiting" and standing.why.startswith("waits for approval:")


def next_commands(standing: CandidateStanding, around: Surroundings) -> Iterator[str]:
    """What a person can do now, a line each. They work where they are shown."""
    wo_id = standing.wo_id
    if wo_id in around.acks:
        yield f"answered in {around.ack_file(wo_id)}"
        return
    match standing.state:
        case "waiting" if _asks(standing):
            yield around.deploy(wo_id)
            yield around.command(f'reject {wo_id} --why "…"')
        case "waiting":
            yield around.command(f"show {standing.run_id}")
        case "approved":
            yield around.move(wo_id)
        case "delivered" if wo_id in around.hindrances:
            yield around.command("runs --status needs_human")
        case "delivered":
            yield f"in {around.place(standing.file)}; {around.command('worker --once')} performs it"
        case "logged":
            yield around.command(f"candidates show {wo_id}")
        case _:
            return


def _is_told(item: SkippedItem) -> bool:
    """Whether the notices tell it already."""
    return item.reason.startswith("action alert:")


def _planner(outcome: TickOutcome, around: Surroundings) -> list[str]:
    if outcome.status is PlannerStatus.SKIPPED:
        return [f"SKIPPED: {outcome.why or NOTHING_CHANGED}"]
    why = f": {outcome.why}" if outcome.why else ""
    name = outcome.planner or around.options.planner
    absent = outcome.status is PlannerStatus.MOCK
    unplanned = [no_plan(outcome.status)] if no_plan(outcome.status) else []
    return [f"{name} {outcome.status}{why}", *unplanned, *([WITHOUT_A_MODEL] if absent else [])]


async def next_of_candidate(podium: Podium, run: Run, *, yes: bool) -> str:
    """Who sees it through, or what is left to a person."""
    if run.status.ended:
        return _how_it_ended(run)
    queue = sense_queue(podium.configuration)
    seen = await see_queues(await podium.store(), podium.engine, [queue])
    served = any(each.served_by for each in seen.queues if each.name == queue.name)
    around = await look_around(podium)
    if not yes:
        return "" if served else f"the next tick or `{around.command('worker')}` puts it away"
    return _after_yes(around, wo_id_of(run), candidate_mode(podium, run), served)


def _how_it_ended(run: Run) -> str:
    if not isinstance(run.result, dict):
        return ""
    stands = CandidateStanding.model_validate(run.result)
    return f"{stands.state}: {stands.file}" if stands.state == "delivered" else stands.why


def _after_yes(around: Surroundings, wo_id: str, mode: str, served: bool) -> str:
    if mode == "sensing":
        return f"the mode is sensing now, in which nothing is delivered; `{around.deploy(wo_id)}` delivers it"
    if mode == "dry-run":
        return f"a dry run moves nothing: `{around.move(wo_id)}` hands it to the worker"
    if served:
        place = around.place(f"{around.options.layout.inbox}/{wo_id}.yaml")
        return f"delivered by whoever serves the loop's queue, to {place}"
    worker, deploy = around.command("worker"), around.deploy(wo_id)
    return f"the next tick or `{worker}` delivers it; `{deploy}` does so at once"
