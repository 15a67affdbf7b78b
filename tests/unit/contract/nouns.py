"""Nouns for contract tests, complete in what a test does not care about."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from podium.core.decisions import Approval, CallRecord, CallStatus, Decision, Effect, Receipt, Tier
from podium.core.events import NoteTaken
from podium.core.work import Run, Signal, StepRecord, StepStatus
from podium.testing import SteadyIds

NOON = datetime.fromisoformat("2026-01-01T12:00:00+00:00")

_IDS = SteadyIds(seed=2026)


def new_id(prefix: str) -> str:
    """An id that no other noun of this process has; later ones sort behind earlier ones."""
    return _IDS.new(prefix)


def a_note(text: str = "hello") -> NoteTaken:
    return NoteTaken(text=text)


def a_run(**changes: Any) -> Run:
    complete: dict[str, Any] = {"id": new_id("run"), "flow": "greet", "created_at": NOON}
    return Run(**complete | changes)


def a_queued_run(**changes: Any) -> Run:
    return a_run(**{"queue": "work"} | changes)


def a_step(run_id: str, key: str, **changes: Any) -> StepRecord:
    complete: dict[str, Any] = {"status": StepStatus.COMPLETED, "started_at": NOON}
    return StepRecord(run_id=run_id, key=key, **complete | changes)


def a_signal(run_id: str, name: str = "answer", payload: Any = None) -> Signal:
    return Signal(id=new_id("sig"), run_id=run_id, name=name, payload=payload, sent_at=NOON)


def a_call(run_id: str, key: str, **changes: Any) -> CallRecord:
    complete: dict[str, Any] = {
        "step_key": "edit#0",
        "tool": "write_file",
        "digest": "sha256:1",
        "status": CallStatus.REQUESTED,
        "decision": Decision(effect=Effect.ALLOW, rule="r", reason="", tier=Tier.T1),
        "requested_at": NOON,
    }
    return CallRecord(key=key, run_id=run_id, **complete | changes)


def an_approval(run_id: str, **changes: Any) -> Approval:
    complete: dict[str, Any] = {
        "id": new_id("apr"),
        "call_key": f"{run_id}:edit#0:0",
        "digest": "sha256:1",
        "tool": "write_file",
        "summary": "write a.txt",
        "tier": Tier.T2,
        "requested_at": NOON,
        "deadline": NOON + timedelta(hours=1),
    }
    return Approval(run_id=run_id, **complete | changes)


def a_receipt(run_id: str, **changes: Any) -> Receipt:
    complete: dict[str, Any] = {
        "number": 99,
        "call_key": f"{run_id}:edit#0:0",
        "tool": "write_file",
        "digest": "sha256:1",
        "status": "completed",
        "tier": Tier.T1,
        "rule": "r",
        "previous": "made up",
        "seal": "made up",
        "requested_at": NOON,
        "settled_at": NOON,
    }
    return Receipt(run_id=run_id, **complete | changes)
