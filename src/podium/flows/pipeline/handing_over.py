"""Handing the branch over: a call that a policy may hold up, to a forge that may be out of reach for a while."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

from podium.domain.errors import ForgeUnavailable, Passing, RateLimited
from podium.domain.events import NoteTaken
from podium.domain.forging import PullRequest, PullRequestWish
from podium.domain.gating import Refusal
from podium.domain.model import Json, Moment, Noun
from podium.domain.work import TIMER
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.people import ask_a_person
from podium.ports import Step

FIRST_PAUSE = timedelta(seconds=20)
LONGEST_PAUSE = timedelta(minutes=15)
PATIENCE = timedelta(hours=6)
"""How long a forge may be out of reach before a person is asked."""
_MOST_DOUBLINGS = 16
_STEPS_OF_A_DELIVERY = 10_000
"""Tries of a later delivery are counted from there on: steps are known by their numbers."""


class Trouble(Noun):
    """Why a forge could not be asked, which may pass by itself."""

    since: Moment
    times: int = 1
    again_at: Moment | None = None
    """None: it lasts too long, and a person has to look."""
    words: str

    @property
    def sentence(self) -> str:
        then = f"; tried again at {self.again_at:%Y-%m-%d %H:%M:%S} UTC" if self.again_at else ""
        return f"The branch is not handed over yet: {self.words}{then}"


class _Handed(Noun):
    """The pull request, or what stood in the way."""

    request: PullRequest | None = None
    approval_id: str = ""
    deadline: Moment | None = None
    words: str = ""
    trouble: Trouble | None = None


async def hand_over(desk: Desk, wish: PullRequestWish) -> PullRequest:
    """Push and open the pull request. What passes by itself is waited for, all else is for a person."""
    arguments, trouble = wish.model_dump(mode="json"), None
    for attempt in count((desk.trip.deliveries - 1) * _STEPS_OF_A_DELIVERY):
        handed = await _asked_gate(desk, arguments, attempt, trouble)
        trouble = handed.trouble
        if handed.request is not None:
            return handed.request
        if handed.approval_id:
            await desk.ctx.wait(
                f"approval:{handed.approval_id}", index=attempt, until=handed.deadline
            )
        elif trouble is not None and trouble.again_at is not None:
            desk.ctx.note(NoteTaken(text=trouble.sentence))
            await desk.ctx.wait(f"{TIMER}forge", index=attempt, until=trouble.again_at)
        else:
            await ask_a_person(desk, "hand-over", handed.words)
            trouble = None
    raise AssertionError("attempts are counted without end")


async def _asked_gate(
    desk: Desk, arguments: dict[str, Json], attempt: int, before: Trouble | None
) -> _Handed:
    root = desk.trip.workspace.record.path

    async def work(step: Step) -> _Handed:
        toolbox = await desk.kit.toolbox_in(root)
        call = toolbox.normalise(
            "hand_over", arguments,
            run_id=step.run_id, step_key=step.key, index=0, role="podium", root=root,
        )  # fmt: skip
        try:
            outcome = await toolbox.perform(call)
        except (ForgeUnavailable, RateLimited) as error:
            trouble = trouble_of(error, before, desk.kit.clock.now())
            return _Handed(trouble=trouble, words=_given_up(error, trouble))
        if isinstance(outcome, Refusal):
            return _Handed(
                approval_id=outcome.approval_id or "",
                deadline=outcome.deadline,
                words=f"the branch may not be handed over: {outcome.decision.reason}",
            )
        if not outcome.ok:
            return _Handed(words=f"the branch could not be handed over: {outcome.error}")
        fields = PullRequest.model_fields
        known = {key: outcome.result[key] for key in fields if key in outcome.result}
        return _Handed(request=PullRequest.model_validate(known))

    return await desk.ctx.step("pull-request", work, index=attempt, returns=_Handed)


def trouble_of(error: Passing, before: Trouble | None, now: datetime) -> Trouble:
    """When to try again: when the forge says so, else after pauses that grow; not at all after hours of it.

    A pause has its longest, whoever asks for it: a forge may name any day.
    """
    since = before.since if before else now
    times = before.times + 1 if before else 1
    grown = FIRST_PAUSE * 2 ** min(times - 1, _MOST_DOUBLINGS)
    # What it says may be in the past.
    pause = max(error.retry_at - now, FIRST_PAUSE) if error.retry_at else grown
    again_at = now + min(pause, LONGEST_PAUSE)
    lasts = now - since >= PATIENCE
    return Trouble(since=since, times=times, again_at=None if lasts else again_at, words=str(error))


def _given_up(error: Passing, trouble: Trouble) -> str:
    return (
        f"the branch could not be handed over in {trouble.times} tries since "
        f"{trouble.since:%Y-%m-%d %H:%M} UTC: {error}"
    )
