"""Events of stages, and how each is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from podium.core.decisions import Usage
from podium.core.forge import check_ending
from podium.core.ids import short_id
from podium.core.model import EventBody, Json
from podium.render.event_view import BarEnd, BarStart, EventView, Outcome


class StageBegan(EventBody):
    """A flow put a role to work."""

    type: Literal["stage_began"] = "stage_began"
    stage: str
    phase: str = ""
    role: str
    round: int = 1
    remembered: tuple[str, ...] = ()
    """Entries of the project's memory in the prompt, each with the reason."""
    notes: tuple[str, ...] = ()
    """Notes of a person for the role."""
    sizes: dict[str, int] = Field(default_factory=dict)
    """Characters of its prompt by part."""


class StageEnded(EventBody):
    """A stage ended, with the supervisor's view of its result."""

    type: Literal["stage_ended"] = "stage_ended"
    stage: str
    phase: str = ""
    role: str
    round: int = 1
    verdict: str
    words: str = ""
    document: str = ""
    commit: str = ""
    problems: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    """Paths that it changed and was not to change; they were put back."""
    disputed: tuple[str, ...] = ()
    """Checks that it calls wrong, with its reasons, for a person to decide about."""
    agent: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0


class BaseChecked(EventBody):
    """The base was looked at and its checks were run, before any agent."""

    type: Literal["base_checked"] = "base_checked"
    commit: str
    results: tuple[dict[str, Json], ...] = ()
    passed: bool
    empty_submodules: tuple[str, ...] = ()
    lfs_pointers: tuple[str, ...] = ()


BatchTaskStatus = Literal[
    "queued",
    "running",
    "waiting",
    "finished",
    "sent_back",
    "stuck",
    "merged",
    "left_out",
]


class BatchTaskChanged(EventBody):
    """A task of a batch got further."""

    type: Literal["batch_task"] = "batch_task"
    number: int
    total: int
    id: str
    title: str
    status: BatchTaskStatus
    run_id: str = ""
    words: str = ""
    """The reason, or the commit of the merge."""


_SENT_BACK = frozenset({"REJECT", "FAIL", "SENT_BACK", "RED", "ESCALATE", "ERROR"})
_APPROVED = frozenset({"APPROVE", "PASS", "DONE", "GREEN"})


def view_event(body: EventBody) -> EventView:
    """Show an event of the pipeline."""
    match body:
        case StageBegan():
            return EventView(
                f"{body.stage} ({body.role}), round {body.round}",
                bar=BarStart(body.stage, body.role, body.stage, body.round),
            )
        case StageEnded():
            return EventView(
                _stage_text(body),
                brief=f"{body.role}: {body.verdict}, round {body.round}",
                bar=BarEnd(body.stage, _outcome(body.verdict), body.verdict, body.agent),
            )
        case BaseChecked():
            return EventView(_base_text(body), outcome="good" if body.passed else "plain")
        case BatchTaskChanged():
            return EventView(task_text(body))
    return EventView("")


_TASK_STATUS: Mapping[BatchTaskStatus, str] = {
    "waiting": "needs a person",
    "sent_back": "sent back to join what was merged before",
    "stuck": "could not be merged",
    "left_out": "left out",
}


def task_text(body: BatchTaskChanged) -> str:
    """A task of a batch and how far it is, on one line."""
    status = _TASK_STATUS.get(body.status, body.status)
    if body.status == "merged":
        return f"{body.id} ({body.title}): merged in {body.words[:12]}"
    run = f", run {short_id(body.run_id)}" if body.run_id else ""
    why = f": {body.words}" if body.words else ""
    return f"{body.id} ({body.title}): {status}{run}{why}"


def _stage_text(body: StageEnded) -> str:
    document = f" {body.document}" if body.document else ""
    commit = f" at {body.commit[:12]}" if body.commit else ""
    why = f": {body.words}" if body.words else ""
    why += f"; disputes {'; '.join(body.disputed)}" if body.disputed else ""
    return f"{body.stage} ({body.role}), round {body.round}: {body.verdict}{document}{commit}{why}"


def _outcome(verdict: str) -> Outcome:
    if verdict in _APPROVED:
        return "good"
    return "bad" if verdict in _SENT_BACK else "plain"


def _base_text(body: BaseChecked) -> str:
    ran = ", ".join(f"`{result.get('command')}` {check_ending(result)}" for result in body.results)
    return f"base {body.commit[:12]}, before any work: {ran or 'no checks were run'}"
