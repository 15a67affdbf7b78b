"""What is to be replayed: a run of this project or a trace, with all that is known of it beside the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from podium.domain.events import Event
from podium.domain.model import Json
from podium.domain.playbook_runs import PlaybookJob
from podium.domain.work import Run, StepRecord
from podium.ports import EventQuery, View
from podium.wiring.podium import Podium
from podium.wiring.replay.comparing import Difference, difference
from podium.wiring.replay.reading import Recording
from podium.wiring.replay.texts import with_texts_of_today

PAGE = 1_000


@dataclass(frozen=True)
class Found:
    """A trace, and how to replay it."""

    recording: Recording
    job: PlaybookJob
    roots: tuple[str, ...] = ()
    """Folders that the run may have worked in, likeliest first."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """The terms that it was started under."""
    is_own: bool = False
    """Whether it is the trace that this project's journal keeps, rather than one that came from elsewhere."""


async def found_run(podium: Podium, recording: Recording, run: Run) -> Found:
    """A run of this project: its folder and its terms are in the record."""
    store = await podium.store()
    prepared = await store.read(lambda view: view.step(run.id, "prepare"))
    given = run.input if isinstance(run.input, dict) else {}
    root = str(given.get("root", podium.folders.project))
    job = with_texts_of_today(recording, [Path(root), podium.folders.project])
    return Found(recording, job, (_ground(prepared), root), run.settings, is_own=True)


def found_file(podium: Podium, recording: Recording, file: Path | None) -> Found:
    """A trace alone. It may lie in a project's state, beside its playbook, or anywhere."""
    project = podium.folders.project.resolve()
    above = file.resolve().parents if file else ()
    own = [each.parent for each in above if each.name == podium.folders.state.name][:1]
    beside = [above[0]] if above else []
    job = with_texts_of_today(recording, [*own, *beside])
    roots = tuple(str(each) for each in (*own, project))
    is_own = podium.folders.state.resolve() in above
    return Found(recording, job, roots, podium.configuration.terms(), is_own)


async def journal_difference(podium: Podium, recording: Recording) -> Difference | None:
    """The first event of a trace that the journal has otherwise. None: there is none, or no such run here.

    What tools gave back is believed in a replay. Where the record is at hand, nobody has to believe it.
    """
    if not podium.has_record:
        return None
    store = await podium.store()
    after = 0
    while after < len(recording.events):
        query = EventQuery(run_id=recording.run_id, after_seq=after, limit=PAGE)
        page = await store.read(partial(_page, query))
        if not page:
            return None
        for event, recorded in zip(page, recording.events[after:], strict=False):
            if (found := difference(event.line(), recorded.data)) is not None:
                return replace(found, why="the trace was changed: the journal says otherwise")
        after += len(page)
    return None


def _page(query: EventQuery, view: View) -> list[Event]:
    return view.events(query)


def _ground(prepared: StepRecord | None) -> str:
    """Where its tools worked: a dry run's in a copy."""
    output = prepared.output if prepared else None
    return str(output["root"]) if isinstance(output, dict) else ""
