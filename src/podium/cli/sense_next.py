"""What is around candidates when they are told of: their answers, what was granted, and commands that work here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podium.cli.rooting import from_here, is_elsewhere, root_words
from podium.domain.events import ToolFailed, ToolRefused
from podium.domain.orders import Ack
from podium.domain.sensing import CandidateStanding
from podium.domain.terms import MODES, Mode
from podium.domain.trust import Standing
from podium.domain.work import RunStatus
from podium.flows.sense import SenseOptions
from podium.flows.sense.kit import WORK_ORDER
from podium.flows.sense.standings import PUT_OFF
from podium.ports import EventQuery, RunQuery, View
from podium.usecases import answer_to
from podium.wiring import Podium
from podium.wiring.candidates import Answers
from podium.wiring.configuration import load_configuration
from podium.wiring.sense_settings import sense_mode
from podium.wiring.sensing import known_standings, sense_options

MOST_RUNS = 500


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
        return f"podium {words}{root_words(self.root)}"

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


def _hindrances(view: View, standings: Sequence[CandidateStanding]) -> dict[str, str]:
    """What the record knows of those that were put off, and of orders that a worker cannot go on with."""
    query = RunQuery(flow=WORK_ORDER, statuses=(RunStatus.NEEDS_HUMAN,), limit=MOST_RUNS)
    stopped = {run.input["file"].removesuffix(".yaml"): run for run in view.runs(query)}
    found = {}
    for each in standings:
        run = stopped.get(each.wo_id)
        if each.state == "delivered" and run is not None and run.failure:
            found[each.wo_id] = run.failure.message
        elif each.why == PUT_OFF:
            found[each.wo_id] = _put_off_by(view, each.run_id)
    return {wo_id: why for wo_id, why in found.items() if why}


def _put_off_by(view: View, run_id: str) -> str:
    tries = view.events(EventQuery(run_id=run_id, types=("tool_refused", "tool_failed")))
    for body in (event.body for event in reversed(tries)):
        if isinstance(body, ToolRefused):
            return f"put off, and tried again every five minutes: {body.reason}"
        if isinstance(body, ToolFailed):
            return f"put off, and tried again every five minutes: {body.error}"
    return ""
