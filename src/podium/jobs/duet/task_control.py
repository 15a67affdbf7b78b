"""Control of tasks: queue, nudge, abort and retry, for every interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from podium.app.run_control import cancel, retry, see_through
from podium.app.work_request import Few, Submission
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import FrozenModel, NonEmpty
from podium.core.turns import Side
from podium.core.work import Run
from podium.jobs.duet.claims import refuse_ungranted
from podium.jobs.duet.models import DUET, DuetJob, Pair
from podium.jobs.duet.pairs import PairRequest, all_pairs, duet_limits, pair_named, saved_pair
from podium.jobs.duet.task_table import DuetTask, find_duet

if TYPE_CHECKING:
    from podium.app.app import Podium


async def nudge_task(podium: Podium, named: str, text: str = "") -> tuple[DuetTask, Side]:
    """Remind the side that owes a message. Raises `NotPossibleNow` if it is busy."""
    from podium.jobs.duet.prompts import NUDGE
    from podium.jobs.duet.terminals import nudge_side

    duet_task = await find_duet(await podium.store(), named)
    pair = pair_of(podium, duet_task.pair)
    if pair.transport == "headless":
        raise NotPossibleNow(
            f"pair {duet_task.pair!r} has no terminals: its agents cannot be reminded"
        )
    if duet_task.leg is None:
        raise NotPossibleNow(f"task {duet_task.task_id} has not asked either side yet")
    await nudge_side(podium, pair, duet_task.leg.expected_from, text or NUDGE)
    return duet_task, duet_task.leg.expected_from


async def abort_task(
    podium: Podium, named: str, *, by: str, why: str = "", wait: bool = True
) -> DuetTask:
    """End a task and interrupt its program, which stays up. With `wait` it has ended on return."""
    store, engine = await podium.store(), await podium.engine()
    duet_task = await find_duet(store, named)
    ended = await cancel(store, engine, duet_task.run_id, by=by, why=why)
    if ended.status.ended:
        await _interrupt(podium, duet_task)
    elif wait:
        # The host interrupts its program as well. Doing it here might hit the next task.
        await see_through(engine, ended, wait=True)
    return await find_duet(store, duet_task.run_id)


async def retry_task(podium: Podium, named: str, *, by: str) -> Run:
    """Repeat the last hop of a task under a new id, hosted here. Without `named` the last task that did not succeed."""
    store, engine = await podium.store(), await podium.hosting_engine()
    duet_task = await find_duet(store, named, ended=True)
    return await retry(store, engine, duet_task.run_id, from_step=duet_task.hop_step, by=by)


def pair_of(podium: Podium, name: str) -> Pair:
    """Return the pair as it was brought up, or as it would be."""
    return saved_pair(podium, name) or pair_named(podium, name, PairRequest(), podium.environ)


def pairs_in_use(podium: Podium, variables: Mapping[str, str]) -> list[Pair]:
    """List the pairs of the project, each as it was brought up, or as it would be."""
    return [saved_pair(podium, pair.name) or pair for pair in all_pairs(podium, variables)]


async def _interrupt(podium: Podium, task: DuetTask) -> None:
    if not task.pair or task.leg is None:
        return
    pair = pair_of(podium, task.pair)
    if pair.transport == "tui":
        from podium.jobs.duet.terminals import interrupt_side

        await interrupt_side(podium, pair, task.leg.expected_from)


MAX_TASK_BYTES = 1_000_000


def checked_task(text: str) -> str:
    """Check the text of a task. Raises `BadInput` if it is empty or too long."""
    if not text.strip():
        raise BadInput("the task is empty; describe what to do")
    if len(text.encode(errors="replace")) > MAX_TASK_BYTES:
        raise BadInput(
            f"the task is longer than {MAX_TASK_BYTES} bytes; put the details into a file and name that file in the task"
        )
    return text


def queued_duet(
    podium: Podium, text: str, names: Sequence[str], variables: Mapping[str, str]
) -> DuetJob:
    """Build a task that waits until one of these pairs is free; without names any pair of the project.

    From here on the project has the queue of duets. Raises `BadInput` for an unknown pair, and
    `CallRefused` for folders without a grant.
    """
    chosen = _chosen(podium, names, all_pairs(podium, variables))
    for pair in chosen:
        refuse_ungranted(podium, pair)
    limits = duet_limits(podium, variables)
    (podium.folders.make_state() / DUET).mkdir(mode=0o700, exist_ok=True)
    return DuetJob(text=checked_task(text), pairs=chosen, limits=limits, patient=True)


def _chosen(podium: Podium, names: Sequence[str], pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    by_name = {pair.name: saved_pair(podium, pair.name) or pair for pair in pairs}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise BadInput(f"there is no pair {unknown[0]!r}; pairs: {', '.join(by_name)}")
    return tuple(by_name[name] for name in names or by_name)


class DuetRequest(FrozenModel):
    """Options of a task for a pair."""

    pairs: Annotated[tuple[NonEmpty, ...], Few] = ()
    """Pairs that may do it. Empty: every pair there is."""


async def submit(submission: Submission) -> Run:
    if submission.request.queue not in ("", DUET):
        raise BadInput(f"duet tasks wait in queue {DUET!r}; leave out `queue`")
    podium = submission.podium
    job = queued_duet(podium, submission.text, submission.options.pairs, podium.environ)
    return await submission.start(job.model_dump(mode="json"), task=job.text, queue=DUET)
