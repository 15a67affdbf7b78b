"""Runs in words and tones for pages: how they stand, and what speaks for it."""

from __future__ import annotations

from collections.abc import Mapping

from podium.domain import events as e
from podium.domain.check_results import check_passed
from podium.domain.model import Json
from podium.domain.work import Run, RunStatus
from podium.telling.event_words import describe, shorten
from podium.telling.untrusted import safe_line
from podium.telling.wording import counted
from podium.usecases.see_runs import RunRow

LONGEST_WORDS = 240
_TONES = {
    "succeeded": "good",
    "failed": "bad",
    "cancelled": "bad",
    "interrupted": "bad",
    "waiting": "wait",
    "needs_human": "wait",
    "running": "live",
}
_GOOD_EVENTS = ("run_succeeded", "branch_delivered", "approval_granted")
_BAD_EVENTS = ("run_failed", "run_cancelled", "step_broke", "tool_failed", "tool_in_doubt")
_WAIT_EVENTS = ("run_waiting", "run_needed_human", "approval_requested", "run_parked")


def tone(shown_status: str) -> str:
    """The class of a status' tag; empty for what is merely there."""
    return _TONES.get(shown_status, "")


def status_words(shown_status: str) -> str:
    return shown_status.replace("_", " ")


def event_tone(body: e.EventBody) -> str:
    """How a line of the log stands out; empty for most."""
    match body:
        case e.ChecksRan(passed=passed):
            return "good" if passed else "bad"
        case e.ToolRefused(effect=effect):
            return "bad" if effect == "deny" else "wait"
    kinds = {"good": _GOOD_EVENTS, "bad": _BAD_EVENTS, "wait": _WAIT_EVENTS}
    return next((tone for tone, types in kinds.items() if body.type in types), "")


def event_words(body: e.EventBody) -> str:
    """What matters of an event, on one line."""
    return safe_line(describe(body), 2 * LONGEST_WORDS)


def evidence(row: RunRow) -> str:
    """Why a run stands as it does, in a line."""
    return safe_line(_evidence(row), LONGEST_WORDS)


def _evidence(row: RunRow) -> str:
    run = row.stands.run
    if row.stands.interrupted:
        return "the process that hosted it is gone; it can be resumed"
    match run.status:
        case RunStatus.QUEUED:
            return f"waits in queue {run.queue}" if run.queue else "not begun"
        case RunStatus.WAITING:
            return waits_words(run)
        case RunStatus.SUCCEEDED:
            return _proof(run)
        case RunStatus.FAILED | RunStatus.NEEDS_HUMAN:
            return failure_words(run)
        case RunStatus.RUNNING:
            return _lately(row)
    return ""


def failure_words(run: Run) -> str:
    """What went wrong, or what a person has to look at."""
    if run.failure is None:
        return ""
    if run.status is RunStatus.NEEDS_HUMAN:
        return run.failure.message
    return f"{run.failure.kind}: {run.failure.message}"


def waits_words(run: Run) -> str:
    """What a run waits for, and until when."""
    until = f" until {run.wake_at.astimezone():%Y-%m-%d %H:%M}" if run.wake_at else ""
    return f"waits for {shorten(run.waiting_for or 'something')}{until}"


def _lately(row: RunRow) -> str:
    """What happened to it last: checks, a verdict, or something that broke."""
    if row.checks is not None:
        return f"checks {describe(row.checks)}"
    if row.stage is not None:
        return f"{row.stage.role}: {row.stage.verdict}, round {row.stage.round}"
    return describe(row.broke) if row.broke is not None else ""


def _proof(run: Run) -> str:
    result: Mapping[str, Json] = run.result if isinstance(run.result, Mapping) else {}
    checks = result.get("checks")
    words = []
    if isinstance(checks, list) and checks:
        passed = sum(1 for each in checks if isinstance(each, dict) and check_passed(each))
        words.append(f"{passed} of {counted(len(checks), 'check')} passed")
    elif checks == []:
        words.append("nothing was tested")
    if branch := result.get("branch"):
        words.append(f"branch {branch}")
    return "; ".join(words)
