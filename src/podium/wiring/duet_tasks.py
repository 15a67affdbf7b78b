"""A person steers a task of a duet: reminds who owes a message, ends it, or has its last leg asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podium.domain.duets import Pair
from podium.domain.errors import NotPossibleNow
from podium.domain.messages import Side
from podium.domain.work import Run
from podium.usecases import DuetTask, cancel, find_duet, retry, see_through
from podium.wiring.duet_pairs import PairWishes, all_pairs, kept_pair, pair_named

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


async def nudge_task(podium: Podium, named: str, words: str = "") -> tuple[DuetTask, Side]:
    """Remind the side that owes a message of it. Raises `NotPossibleNow` for one that is busy."""
    from podium.flows.duet.prompting import NUDGE
    from podium.wiring.duet_terminals import nudge_side

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
    return kept_pair(podium, name) or pair_named(podium, name, PairWishes(), podium.environ)


def pairs_in_use(podium: Podium, variables: Mapping[str, str]) -> list[Pair]:
    """Every pair of the project, as it was brought up, or as it would be."""
    return [kept_pair(podium, each.name) or each for each in all_pairs(podium, variables)]


async def _interrupt(podium: Podium, task: DuetTask) -> None:
    if not task.pair or task.leg is None:
        return
    pair = pair_of(podium, task.pair)
    if pair.transport == "tui":
        from podium.wiring.duet_terminals import interrupt_side

        await interrupt_side(podium, pair, task.leg.expected_from)
