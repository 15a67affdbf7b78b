"""Text of a pipeline's events, one line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from podium.core import events as e
from podium.core.decisions import Usage
from podium.core.forge import check_ending, check_passed
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import AGENT_LOST, RATE_LIMIT
from podium.jobs.pipeline.events import StageBegan, StageEnded
from podium.render.approval import arguments_line
from podium.render.event import MAX_ARGUMENTS, about, describe, shorten
from podium.render.text import escaped_line, safe_line

SUPERVISOR = "PODIUM"
SENT_BACK, RED = "SENT_BACK", "RED"
"""The supervisor's own verdicts, beside those of the roles."""
_MAX_CHARACTERS = 400
_MAX_LISTED = 10


@dataclass(frozen=True)
class Doing:
    """Current activity of the run, and until when it pauses."""

    what: str
    until: datetime | None = None


class PipelineLines:
    """Turns the events of one run into lines, in the order in which they came."""

    def __init__(self) -> None:
        self._role = ""
        self._head = ""
        self._ended: set[StageEnded] = set()
        self._began: dict[tuple[str, int], datetime] = {}
        self.doing = Doing("setting up")

    def know(self, stages: Iterable[StageEnded]) -> None:
        """Remember what an earlier process printed: a resumed run may record its last stage again."""
        for stage in stages:
            self._ended.add(stage)
            self._head, self._role = stage.commit, stage.role

    def lines(self, event: e.Event) -> list[str]:
        """The lines that an event is worth; most are worth none."""
        at = event.at.astimezone().strftime("%H:%M:%S")
        self._follow(event)
        return [
            f"[{at}] {who}: {safe_line(text, _MAX_CHARACTERS)}"
            for who, text in self._entries(event)
        ]

    def _follow(self, event: e.Event) -> None:
        match event.body:
            case StageBegan() as began:
                self._role = began.role
                self._began[began.stage, began.round] = event.at
                self.doing = Doing(f"{in_capitals(began.role)}{_where(began)}")
            case e.RunWaiting(signal=signal, deadline=until) if signal.startswith(RATE_LIMIT):
                self.doing = Doing("rate limited", until)
            case e.RunWaiting(signal=signal, deadline=until) if signal.startswith(AGENT_LOST):
                self.doing = Doing("asked again soon", until)
            case e.RunWaiting():
                self.doing = Doing("waiting for a person")
            case StageEnded() | e.ChecksRan():
                self.doing = Doing("supervising")
            case e.WaitExpired() | e.SignalReceived() | e.RunStarted() if self._role:
                self.doing = Doing(in_capitals(self._role))

    def _entries(self, event: e.Event) -> Iterator[tuple[str, str]]:
        body = event.body
        match body:
            case StageBegan():
                yield from _stage_began(body)
            case StageEnded() if body not in self._ended:
                self._ended.add(body)
                began = self._began.get((body.stage, body.round))
                elapsed = (event.at - began).total_seconds() if began else body.seconds
                yield from _stage_ended(body, elapsed, moved=body.commit != self._head)
                self._head = body.commit
            case e.ChecksRan():
                yield from _checks(body)
            case e.ToolRefused(effect="deny"):
                yield SUPERVISOR, f"Denied {in_capitals(self._role)}: {_call(body)}"
            case e.WorkspaceChecked() if body.violations or body.moved_away:
                yield SUPERVISOR, f"Tampered with by {in_capitals(self._role)}: {describe(body)}"
            case _:
                if text := _of_the_run(body, event.run_id):
                    yield SUPERVISOR, text


def _of_the_run(body: e.EventBody, run_id: str) -> str:
    """Text of an event about the run as a whole; empty for events that nobody has to read."""
    match body:
        case e.RunQueued():
            return f"Task received. Run {short_id(run_id)}."
        case e.RunStarted() if body.fence > 1:
            return "Going on from the checkpoint."
        case e.NoteTaken():
            return body.text
        case e.AgentSwitched():
            who = in_capitals(body.role)
            return f"{who} is played by {body.next_agent} now, not by {body.agent}: {body.reason}"
        case e.ApprovalRequested():
            name = short_id(body.approval_id)
            what = escaped_line(" ".join(body.summary.split()), MAX_ARGUMENTS)
            return f"A person is asked [{body.tier}]: {what}; `podium approve {name}` says yes"
        case e.BranchCollision():
            paths = escaped_line(", ".join(body.paths[:5]))
            return f"{body.other_branch!r} of run {short_id(body.other_run)} changes the same lines of {paths}"
        case e.RunWaiting():
            return f"Waiting {describe(body)}".replace("Waiting rate", "Rate")
        case e.StepBroke() if not body.final:
            return f"Trying again: {describe(body)}"
        case e.RunParked():
            return f"Let go of at its checkpoint: {body.reason}"
        case e.RunUnpinned():
            return f"Going on on another host: {escaped_line(body.reason)}"
        case e.RunNeededHuman():
            return f"A person has to look: {body.reason.splitlines()[0] if body.reason else ''}"
        case e.RunCancelRequested():
            return f"Cancelling, as {body.by} wished. {body.why}".rstrip()
    return _of_the_end(body)


def _of_the_end(body: e.EventBody) -> str:
    match body:
        case e.BranchDelivered():
            where = body.url or body.file
            ready = f"Pipeline success! Branch {body.branch!r} is ready for merge"
            if body.untested:
                ready = f"Branch {body.branch!r} is delivered UNTESTED ({body.untested})"
            return f"{ready}: {where}" if where else f"{ready}."
        case e.RunFailed():
            return f"Failed: {body.failure.message}"
        case e.RunCancelled():
            return "Cancelled."
        case e.RunRetried() | e.ToolInDoubt():
            return f"{body.type.replace('_', ' ').capitalize()}: {describe(body)}"
    return ""


def _stage_began(body: StageBegan) -> Iterator[tuple[str, str]]:
    yield SUPERVISOR, f"Spawning {in_capitals(body.role)}{_where(body)}..."
    for note in body.notes[:_MAX_LISTED]:
        yield SUPERVISOR, f"Your note goes to {in_capitals(body.role)}: {note}"


def _stage_ended(
    body: StageEnded, elapsed_seconds: float, *, moved: bool
) -> Iterator[tuple[str, str]]:
    role = in_capitals(body.role)
    made = [repr(body.document)] if body.document else []
    made += [f"commit {body.commit[:7]}"] if moved and body.verdict != SENT_BACK else []
    cost = f"{duration(elapsed_seconds)}, {money(body.usage)}"
    result = f"{body.verdict}. {', '.join(made)}".rstrip(". ")
    yield role, f"{result} ({cost})"
    for text in body.disputed[:_MAX_LISTED]:
        yield role, f"It disputes a check: {text}"
    yield from _sent_back(body, role)
    if body.discarded:
        listed = ", ".join(body.discarded[:_MAX_LISTED])
        yield SUPERVISOR, f"Put back what {role} was not to change: {listed}"


def _sent_back(body: StageEnded, role: str) -> Iterator[tuple[str, str]]:
    for problem in body.problems[:_MAX_LISTED]:
        yield SUPERVISOR, f"Sent back to {role}: {problem}"
    if body.verdict == RED:
        yield SUPERVISOR, f"Sent back to {role}: the checks are red"
    elif body.verdict not in ("DONE", "APPROVE", "PASS", SENT_BACK) and body.words.strip():
        yield role, f"It says: {body.words}"


def _checks(body: e.ChecksRan) -> Iterator[tuple[str, str]]:
    how = "green" if body.passed else "RED"
    ran = ", ".join(check_line(result) for result in body.results) or "none"
    yield SUPERVISOR, f"Checks on {body.commit[:7]} are {how}: {ran}"
    for result in body.results:
        if not check_passed(result):
            yield SUPERVISOR, f"Red: {check_line(result)}: {_last_line(result)}"


def _last_line(check: Mapping[str, Json]) -> str:
    lines = [line for line in str(check.get("tail") or "").splitlines() if line.strip()]
    return lines[-1] if lines else "it wrote nothing"


def check_line(check: Mapping[str, Json]) -> str:
    """A check and how it came out, as in `` `make test` exit 0 (1.2 s) ``."""
    took = duration(float(check.get("seconds") or 0.0))
    return f"`{check.get('command')}` {check_ending(check)} ({took})"


def _call(body: e.ToolRefused) -> str:
    arguments = about(body.arguments) or arguments_line(body.arguments, MAX_ARGUMENTS)
    return f"{body.tool} {escaped_line(arguments, MAX_ARGUMENTS)} ({shorten(escaped_line(body.reason))})"


def _where(body: StageBegan) -> str:
    parts = [body.phase] if body.phase else []
    parts += [f"round {body.round}"] if body.round > 1 else []
    return f" ({', '.join(parts)})" if parts else ""


def in_capitals(role: str) -> str:
    """`plan_reviewer` as it stands before what it says."""
    return role.replace("_", " ").upper() or "AN AGENT"


def duration(seconds: float) -> str:
    """`0.4 s`, `43 s`, `4 min 32 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def money(used: Usage) -> str:
    """Cost in dollars; `at least` where not all of it is known."""
    return f"${used.usd:.4f}" if used.complete else f"at least ${used.usd:.4f}"
