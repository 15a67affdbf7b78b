"""A task for the queue of duets, as every door puts it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podium.domain.duets import DUET, DuetJob, Pair
from podium.domain.errors import BadInput
from podium.wiring.duet_grants import refuse_ungranted
from podium.wiring.duet_pairs import all_pairs, duet_limits, kept_pair

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

LARGEST_TASK_BYTES = 1_000_000


def checked_task(text: str) -> str:
    """The task's words. Raises `BadInput` for none, or too many."""
    if not text.strip():
        raise BadInput("the task has no words; say what is to be done")
    if len(text.encode(errors="replace")) > LARGEST_TASK_BYTES:
        raise BadInput(
            f"the task has more than {LARGEST_TASK_BYTES} bytes; put it into a file and name that"
        )
    return text


def queued_duet(
    podium: Podium, text: str, names: Sequence[str], variables: Mapping[str, str]
) -> DuetJob:
    """A task that waits until one of these pairs is free; without names any of the project's.

    From here on the project has the queue of duets. Raises `BadInput` for a pair that there is not, and
    `CallRefused` where nobody granted the folders of one.
    """
    chosen = _chosen(podium, names, all_pairs(podium, variables))
    for pair in chosen:
        refuse_ungranted(podium, pair)
    limits = duet_limits(podium, variables)
    (podium.folders.make_state() / DUET).mkdir(mode=0o700, exist_ok=True)
    return DuetJob(text=checked_task(text), pairs=chosen, limits=limits, patient=True)


def _chosen(podium: Podium, wanted: Sequence[str], known: tuple[Pair, ...]) -> tuple[Pair, ...]:
    by_name = {pair.name: kept_pair(podium, pair.name) or pair for pair in known}
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise BadInput(f"there is no pair {unknown[0]!r}; pairs: {', '.join(by_name)}")
    return tuple(by_name[name] for name in wanted or by_name)
