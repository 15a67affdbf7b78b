"""What agents and people are told at the door."""

from __future__ import annotations

import json
from datetime import datetime

from podium.domain.gating import Approval, Call, Decision
from podium.domain.model import Json
from podium.tools.bounding import plain_text

_LONGEST_VALUE = 400


def denied(decision: Decision) -> str:
    return (
        f"Permission denied: {decision.reason} (rule {decision.rule}). Nothing was done. "
        "Do not try to get round this; go on with what is allowed, or say in your answer "
        "what you need and why."
    )


def waiting(approval_id: str, deadline: datetime) -> str:
    return (
        f"Waiting for approval {approval_id}; end your turn. Nothing was done yet. "
        f"A person has until {deadline.isoformat(timespec='minutes')} to answer; after a yes, "
        "ask for exactly the same call again."
    )


def rejected(approval: Approval) -> str:
    why = f": {approval.why}" if approval.why else " and gave no reason"
    return f"{approval.rejected_by or 'a person'} rejected this very call{why}"


def summary_of(call: Call) -> str:
    """What a person reads before saying yes. Secrets stand as references in the arguments."""
    lines = [call.tool]
    lines += [f"  {name}: {_shown(value)}" for name, value in call.arguments.items()]
    lines += [f"  {use.access}s {plain_text(use.real)}" for use in call.paths]
    if call.provenance:
        lines.append(f"  led to by: {plain_text(', '.join(call.provenance))}")
    return "\n".join(lines)


def _shown(value: Json) -> str:
    text = plain_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if len(text) <= _LONGEST_VALUE:
        return text.replace("\n", "\n    ")
    return f"{text[:_LONGEST_VALUE]}… [{len(text)} characters in all]".replace("\n", "\n    ")
