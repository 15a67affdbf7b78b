"""How the queues stand: what waits in each, how fast it goes, and who serves it."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta

from podium.domain.model import Json, Moment, Noun
from podium.domain.work import QueueSpec, QueueTally, WorkerBeat
from podium.ports import Engine, Store, View

LATELY = timedelta(minutes=1)
"""The time over which ends are counted."""


class QueueSeen(Noun):
    """A queue that is configured, or that has runs."""

    spec: QueueSpec
    configured: bool
    """Whether the settings name it. If not, `spec` holds the defaults."""
    tally: QueueTally
    ended_lately: int = 0
    """Runs that ended within the last minute."""
    served_by: tuple[str, ...] = ()
    """Ids of the workers alive that serve it and offer what it wants."""
    trouble: str = ""
    """Why nothing goes on in it, and what to do."""

    @property
    def name(self) -> str:
        return self.spec.name

    def record(self) -> dict[str, Json]:
        """Flat, as JSON answers have it."""
        tally = self.tally.model_dump(mode="json", exclude={"queue"})
        others = {"configured", "ended_lately", "served_by", "trouble"}
        return {
            **self.spec.model_dump(mode="json"),
            **tally,
            **self.model_dump(mode="json", include=others),
        }


class QueuesSeen(Noun):
    """All of them at one moment."""

    at: Moment
    queues: tuple[QueueSeen, ...] = ()


async def see_queues(
    store: Store, engine: Callable[[], Awaitable[Engine]], specs: Sequence[QueueSpec]
) -> QueuesSeen:
    """Every queue of the settings, in their order, and then every other that has runs."""
    alive = await (await engine()).alive()

    def look(view: View) -> QueuesSeen:
        beats = [beat for beat in view.workers() if beat.id in alive]
        return QueuesSeen(at=view.now(), queues=tuple(queues_in(view, beats, specs)))

    return await store.read(look)


def queues_in(
    view: View, living: Sequence[WorkerBeat], specs: Sequence[QueueSpec]
) -> list[QueueSeen]:
    """The queues as one view has them, with those alive who serve them."""
    tallies = {tally.queue: tally for tally in view.tallies()}
    ended = view.ended_since(view.now() - LATELY)
    configured = {spec.name: spec for spec in specs}
    others = sorted((tallies.keys() | ended.keys()) - configured.keys())
    return [
        _seen(
            configured.get(name) or QueueSpec(name=name),
            tallies.get(name) or QueueTally(queue=name),
            ended.get(name, 0),
            living,
            configured=name in configured,
        )
        for name in (*configured, *others)
    ]


def _seen(
    spec: QueueSpec,
    tally: QueueTally,
    ended: int,
    living: Sequence[WorkerBeat],
    *,
    configured: bool,
) -> QueueSeen:
    serving = tuple(beat.id for beat in living if _serves(beat, spec))
    needs_somebody = tally.queued + tally.delayed + tally.running + tally.waiting > 0
    return QueueSeen(
        spec=spec,
        configured=configured,
        tally=tally,
        ended_lately=ended,
        served_by=serving,
        trouble=_nobody(spec, configured) if needs_somebody and not serving else "",
    )


def _serves(beat: WorkerBeat, spec: QueueSpec) -> bool:
    return spec.name in beat.queues and _offers(beat.labels, spec.labels)


def _offers(offered: Collection[str], wanted: Collection[str]) -> bool:
    return set(wanted) <= set(offered)


def _nobody(spec: QueueSpec, configured: bool) -> str:
    labels = f" --label {shlex.quote(','.join(spec.labels))}" if spec.labels else ""
    start = f"start `podium worker --queue {shlex.quote(spec.name)}{labels}`"
    if not configured:
        start = f"add it under `queues:` in podium.yaml and {start}"
    return f"nobody serves `{spec.name}`: {start}"
