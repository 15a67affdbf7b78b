"""The queues of a project, and a run's place in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from podium.domain.errors import BadInput
from podium.domain.model import Noun
from podium.domain.work import QueueSpec
from podium.wiring.configuration import Configuration

QUEUE = "default"
MOST_PRIORITY = 1_000_000
MOST_DELAY_SECONDS = 366 * 86_400.0

Priority = Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)]
Delay = Annotated[float, Field(ge=0, le=MOST_DELAY_SECONDS, allow_inf_nan=False)]


class Place(Noun):
    """Where a run is put."""

    queue: str = QUEUE
    priority: Priority = 0
    """Higher goes first."""
    delay_seconds: float = 0.0


def queues_of(configuration: Configuration) -> tuple[QueueSpec, ...]:
    """The queues of the settings; a project that names none has one. Behind them those of work orders and duets."""
    # Late: who only puts a run into a queue needs neither orders nor terminals.
    from podium.wiring.duet_pairs import duet_queues
    from podium.wiring.ordering import order_queues

    named = _named(configuration)
    known = {spec.name for spec in named}
    own = (*order_queues(configuration), *duet_queues(configuration))
    return (*named, *(spec for spec in own if spec.name not in known))


def queue_named(configuration: Configuration, name: str) -> QueueSpec:
    """The queue that runs may be handed to by this name. Raises `BadInput`."""
    specs = {spec.name: spec for spec in _named(configuration)}
    if name not in specs:
        raise BadInput(
            f"podium.yaml has no queue {name!r}; queues: {', '.join(sorted(specs))}. Name one with --queue, "
            f"or add `{name}: {{}}` to its queues"
        )
    return specs[name]


def answered_queue(configuration: Configuration, served: Sequence[QueueSpec]) -> str:
    """The queue that answered runs of the foreground join, of those that a worker serves. Empty: none.

    Such a run asked for no labels, and queues of work orders and duets have runs of their own alone.
    """
    names = {spec.name for spec in _named(configuration) if not spec.labels}
    fitting = [spec.name for spec in served if spec.name in names]
    return QUEUE if QUEUE in fitting else next(iter(fitting), "")


def _named(configuration: Configuration) -> tuple[QueueSpec, ...]:
    return configuration.settings.queue_specs() or (QueueSpec(name=QUEUE),)
