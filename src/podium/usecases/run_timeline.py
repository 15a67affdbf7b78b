"""The passage of a run as bars in lanes: who was at it when, how each piece came out, and what it waited for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from podium.domain import events as e
from podium.domain.check_results import check_passed
from podium.domain.model import Moment, Noun
from podium.domain.work import TIMER
from podium.ports import Store, View
from podium.usecases.look_at_run import newest_in

MOST_BARS = 150
"""The last ones are shown."""
PODIUM, CHECKS, PERSON, TIME = "podium", "checks", "a person", "time"
"""Lanes that are no role's."""

Outcome = Literal["good", "bad", "wait", "live", "plain"]

_SENT_BACK = frozenset({"REJECT", "FAIL", "SENT_BACK", "RED", "ESCALATE", "ERROR"})
_APPROVED = frozenset({"APPROVE", "PASS", "DONE", "GREEN"})
_WORK = ("stage:", "step:", "legs:")
"""How that is called which a process is at; waits need none."""
_STAGES = ("stage_began", "stage_ended")
_LEGS = ("leg_opened", "message_heard")
_STEPS = ("agent_asked", "step_started", "step_completed", "step_broke")
_OF_ALL = (
    "branch_delivered",
    "checks_ran",
    "child_started",
    "run_cancelled",
    "run_failed",
    "run_needed_human",
    "run_parked",
    "run_retried",
    "run_started",
    "run_succeeded",
    "run_waiting",
    "signal_received",
    "wait_expired",
)


class Bar(Noun):
    """A piece of work or a wait."""

    lane: str
    label: str
    round: int = 1
    began_at: Moment
    ended_at: Moment | None = None
    """None: it goes on, or nobody knows how it ended."""
    outcome: Outcome = "live"
    said: str = ""
    """The verdict, or what went wrong."""
    agent: str = ""
    comes_back: bool = False
    """Whether it does again what was sent back."""


class Turning(Noun):
    """Something that concerns the run as a whole: it was taken up again, let go of, or ended."""

    before: int
    """It stands before the bar of this number."""
    label: str
    outcome: Outcome
    at: Moment


class Timeline(Noun):
    """Bars in the order in which they began."""

    lanes: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    turnings: tuple[Turning, ...] = ()
    cut: bool = False
    """Whether earlier bars are left out."""


async def run_timeline(store: Store, run_id: str) -> Timeline:
    """What the journal tells of a run's passage, the last of it when it is long."""
    return await store.read(lambda view: _timeline(view, run_id))


def _timeline(view: View, run_id: str) -> Timeline:
    most = 3 * MOST_BARS
    events = newest_in(view, run_id, (*_STAGES, *_LEGS, *_OF_ALL), most)
    if not any(event.body.type in (*_STAGES, *_LEGS) for event in events):
        events = newest_in(view, run_id, (*_STEPS, *_OF_ALL), most)
    return drawn(events, cut=len(events) == most)


def drawn(events: Iterable[e.Event], *, cut: bool = False) -> Timeline:
    """The bars of these events."""
    drawing = _Drawing()
    for event in events:
        drawing.hear(event)
    left_out = max(0, len(drawing.bars) - MOST_BARS)
    bars = tuple(drawing.bars[left_out:])
    return Timeline(
        lanes=_lanes(bars),
        bars=bars,
        turnings=tuple(
            each.model_copy(update={"before": each.before - left_out})
            for each in drawing.turnings
            if each.before >= left_out
        ),
        cut=cut or left_out > 0,
    )


def _lanes(bars: Sequence[Bar]) -> tuple[str, ...]:
    """Roles in the order in which they came in; what is no role's stands below."""
    found = dict.fromkeys(bar.lane for bar in bars)
    others = (PODIUM, CHECKS, PERSON, TIME)
    return (*(lane for lane in found if lane not in others), *(x for x in others if x in found))


@dataclass
class _Drawing:
    bars: list[Bar] = field(default_factory=list)
    turnings: list[Turning] = field(default_factory=list)
    _open: dict[str, int] = field(default_factory=dict)
    """What it is called that goes on → its bar."""

    def hear(self, event: e.Event) -> None:
        match event.body:
            case e.StageBegan() as body:
                self._begin(
                    f"stage:{body.stage}", event, body.role, body.stage, body.round,
                    comes_back=body.round > 1,
                )  # fmt: skip
            case e.StageEnded() as body:
                self._stage_ended(event, body)
            case e.LegOpened() as body:
                self._end_all(event, "legs:", "plain", "")
                leg = body.leg
                label = " or ".join(leg.expected)
                self._begin(
                    "legs:", event, leg.expected_from, label, leg.round, comes_back=leg.round > 1
                )
            case e.MessageHeard() as body:
                self._end_all(
                    event, "legs:", "good" if body.routed_to else "bad", body.message.type
                )
            case e.StepStarted(step=step, attempt=attempt):
                self._begin(f"step:{step}", event, PODIUM, step, attempt)
            case e.AgentAsked(step=step) as body if f"step:{step}" in self._open:
                self._amend(f"step:{step}", lane=body.role, agent=body.agent)
            case e.StepCompleted(step=step):
                self._end(f"step:{step}", event, "good", "")
            case e.StepBroke(step=step, failure=failure):
                self._end(f"step:{step}", event, "bad", f"{failure.kind}: {failure.message}")
            case e.ChecksRan() as body:
                self._checked(event, body)
            case _:
                self._of_the_run(event)

    def _of_the_run(self, event: e.Event) -> None:
        match event.body:
            case e.RunWaiting(signal=signal):
                lane = TIME if signal.startswith(TIMER) else PERSON
                self._begin(f"wait:{signal}", event, lane, signal.removeprefix(TIMER))
                self._amend(f"wait:{signal}", outcome="wait")
            case e.SignalReceived() | e.WaitExpired() as body:
                how: Outcome = "good" if isinstance(body, e.SignalReceived) else "bad"
                self._end(f"wait:{body.name}", event, how, "" if how == "good" else "too late")
            case e.RunStarted(fence=fence) if fence > 1:
                self._end_all(event, _WORK, "bad", "left by a process that is gone")
                self._turn(event, "taken up again", "wait")
            case e.RunParked(reason=reason):
                self._turn(event, f"let go of: {reason}", "wait")
            case e.RunRetried():
                self._turn(event, "goes again", "wait")
            case e.RunNeededHuman():
                self._turn(event, "needs a person", "wait")
            case e.RunFailed(failure=failure):
                self._end_all(event, "", "bad", "")
                self._turn(event, f"failed: {failure.message}", "bad")
            case e.RunCancelled():
                self._end_all(event, "", "bad", "cancelled")
                self._turn(event, "cancelled", "bad")
            case e.RunSucceeded():
                self._end_all(event, "", "plain", "")
                self._turn(event, "succeeded", "good")

    def _stage_ended(self, event: e.Event, body: e.StageEnded) -> None:
        key = f"stage:{body.stage}"
        if key not in self._open:
            # Noted again when the run went on, or its beginning is too far back.
            return
        outcome: Outcome = "bad" if body.verdict in _SENT_BACK else "plain"
        outcome = "good" if body.verdict in _APPROVED else outcome
        self._amend(key, agent=body.agent)
        self._end(key, event, outcome, body.verdict)

    def _checked(self, event: e.Event, body: e.ChecksRan) -> None:
        self._begin("checks", event, CHECKS, "checks")
        self._end("checks", event, "good" if body.passed else "bad", _checks_words(body))

    def _begin(
        self,
        key: str,
        event: e.Event,
        lane: str,
        label: str,
        round: int = 1,
        *,
        comes_back: bool = False,
    ) -> None:
        again = self._open.pop(key, None)
        if again is not None and self.bars[again].outcome == "live":
            self.bars[again] = self.bars[again].model_copy(update={"outcome": "bad"})
        self._open[key] = len(self.bars)
        self.bars.append(
            Bar(lane=lane, label=label, round=round, began_at=event.at, comes_back=comes_back)
        )

    def _amend(self, key: str, **facts: object) -> None:
        number = self._open[key]
        self.bars[number] = self.bars[number].model_copy(update=facts)

    def _end(self, key: str, event: e.Event, outcome: Outcome, said: str) -> None:
        number = self._open.pop(key, None)
        if number is not None:
            update = {"ended_at": event.at, "outcome": outcome, "said": said}
            self.bars[number] = self.bars[number].model_copy(update=update)

    def _end_all(
        self, event: e.Event, beginning: str | tuple[str, ...], outcome: Outcome, said: str
    ) -> None:
        for key in [each for each in self._open if each.startswith(beginning)]:
            self._end(key, event, outcome, said)

    def _turn(self, event: e.Event, label: str, outcome: Outcome) -> None:
        self.turnings.append(
            Turning(before=len(self.bars), label=label, outcome=outcome, at=event.at)
        )


def _checks_words(body: e.ChecksRan) -> str:
    if not body.results:
        return "none ran"
    passed = sum(1 for each in body.results if check_passed(each))
    return f"{passed} of {len(body.results)} passed"
