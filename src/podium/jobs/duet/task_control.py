"""Control of tasks: queue, nudge, abort and retry, for every interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podium.app.run_control import cancel, retry, see_through
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.turns import Side
from podium.core.work import Run
from podium.jobs.duet.claims import refuse_ungranted
from podium.jobs.duet.models import DUET, DuetJob, Pair
from podium.jobs.duet.pairs import PairRequest, all_pairs, duet_limits, kept_pair, pair_named
from podium.jobs.duet.task_table import DuetTask, find_duet

if TYPE_CHECKING:
    from podium.app.app import Podium


async def nudge_task(podium: Podium, named: str, words: str = "") -> tuple[DuetTask, Side]:
    """Remind the side that owes a message of it. Raises `NotPossibleNow` for one that is busy."""
    from podium.jobs.duet.prompts import NUDGE
    from podium.jobs.duet.terminals import nudge_side

    found = await find_duet(await podium.store(), named)
    pair = pair_of(podium, found.pair)
    if pair.transport == "headless":
        raise NotPossibleNow(f"pair {found.pair!r} has no terminals: its agents cannot be reminded")
    if found.leg is None:
        raise NotPossibleNow(f"task {found.task_id} has not asked anybody yet")
    await nudge_side(podium, pair, found.leg.expected_from, words or NUDGE)
    return found, found.leg.expected_from


async def abort_task(
    podium: Podium, named: str, *, by: str, why: str = "", wait: bool = True
) -> DuetTask:
    """End a task: whoever works on it is interrupted by its own keys, and stays up. With `wait` it has ended on return."""
    store, engine = await podium.store(), await podium.engine()
    found = await find_duet(store, named)
    ended = await cancel(store, engine, found.run_id, by=by, why=why)
    if ended.status.ended:
        await _interrupt(podium, found)
    elif wait:
        # Whoever hosts it interrupts its program, too. Doing it here might catch the next task.
        await see_through(engine, ended, wait=True)
    return await find_duet(store, found.run_id)


async def retry_task(podium: Podium, named: str, *, by: str) -> Run:
    """Ask the last leg of a task again, under a new id, hosted here. Without a name it is the last that did not succeed."""
    store, engine = await podium.store(), await podium.hosting_engine()
    found = await find_duet(store, named, ended=True)
    return await retry(store, engine, found.run_id, from_step=found.leg_step, by=by)


def pair_of(podium: Podium, name: str) -> Pair:
    """The pair as it was brought up, or as it would be."""
    return kept_pair(podium, name) or pair_named(podium, name, PairRequest(), podium.environ)


def pairs_in_use(podium: Podium, variables: Mapping[str, str]) -> list[Pair]:
    """Every pair of the project, as it was brought up, or as it would be."""
    return [kept_pair(podium, pair.name) or pair for pair in all_pairs(podium, variables)]


async def _interrupt(podium: Podium, task: DuetTask) -> None:
    if not task.pair or task.leg is None:
        return
    pair = pair_of(podium, task.pair)
    if pair.transport == "tui":
        from podium.jobs.duet.terminals import interrupt_side

        await interrupt_side(podium, pair, task.leg.expected_from)


MAX_TASK_BYTES = 1_000_000


def checked_task(text: str) -> str:
    """The task's words. Raises `BadInput` for none, or too many."""
    if not text.strip():
        raise BadInput("the task has no words; say what is to be done")
    if len(text.encode(errors="replace")) > MAX_TASK_BYTES:
        raise BadInput(
            f"the task has more than {MAX_TASK_BYTES} bytes; put it into a file and name that"
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
