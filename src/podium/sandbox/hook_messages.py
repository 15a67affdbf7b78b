"""Messages of the hook socket, one JSON object a line, and the problems of a turn's socket for people."""

from __future__ import annotations

import hmac
import json
from collections import Counter, deque
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from podium.core.decisions import CallOutcome, Permit, Receipt, Refusal, ToolSpec, canonical_json
from podium.core.errors import AgentMustAct, BadInput
from podium.core.model import FrozenModel, Json, NonEmpty

Answer = dict[str, Json]
"""A reply. `decision` is always there: allow, deny or ask; with the last two, `say` has the words."""


class RequestMessage(FrozenModel):
    """May the asking program do this itself?"""

    op: Literal["request"]
    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)
    ref: str = ""
    """The program's own name for this use of the tool, to settle by later."""


class SettleMessage(FrozenModel):
    """The outcome of a permitted call. Named by `call`, by `ref`, or by the same tool and arguments."""

    op: Literal["settle"]
    call: str = ""
    ref: str = ""
    tool: str = ""
    arguments: dict[str, Json] = Field(default_factory=dict)
    ok: bool
    result: Json = None
    error: str = ""


class PerformMessage(FrozenModel):
    """Podium shall do this."""

    op: Literal["perform"]
    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)


class ToolsMessage(FrozenModel):
    """A question for the tools there are."""

    op: Literal["tools"]


AnyMessage = Annotated[
    RequestMessage | SettleMessage | PerformMessage | ToolsMessage, Field(discriminator="op")
]
_ANY_MESSAGE: TypeAdapter[AnyMessage] = TypeAdapter(AnyMessage)


def read_message(line: bytes, token: str, hook_token: str) -> tuple[AnyMessage, bool]:
    """The message of a line, and whether it came with no more than a hook's token.

    Raises `BadInput` for anything but exactly one with a token, and for a hook that does not ask.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the message is not JSON ({error}); send one object on one line") from None
    if not isinstance(data, dict):
        raise BadInput(f"the message is a {type(data).__name__}; send one JSON object on one line")
    token_sent = str(data.pop("token", "")).encode(errors="replace")
    is_hook = hmac.compare_digest(token_sent, hook_token.encode())
    if not is_hook and not hmac.compare_digest(token_sent, token.encode()):
        raise BadInput("the token is not this turn's; use PODIUM_DOOR_TOKEN as it was given")
    message = checked_message(data)
    if is_hook and not isinstance(message, RequestMessage):
        raise BadInput(f"a hook may only send requests; {message.op!r} is refused")
    return message, is_hook


def checked_message(data: dict[str, Json]) -> AnyMessage:
    """The message that the data makes. Raises `BadInput` for anything else."""
    _check_digestible(data)
    try:
        return _ANY_MESSAGE.validate_python(data)
    except ValidationError as error:
        raise BadInput(f"the message is not valid: {_issue_text(error)}") from None


def _check_digestible(data: dict[str, Json]) -> None:
    """Refuse what Python reads and no digest can be made of: NaN, halves of surrogate pairs."""
    try:
        canonical_json(data).encode()
    except ValueError as error:
        raise BadInput(
            f"the message contains a value that is not JSON ({error}); remove it"
        ) from None


def _issue_text(error: ValidationError) -> str:
    # The input is left out: it may hold what an agent should not have said.
    issues = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, issue['loc']))} {issue['msg']}" for issue in issues[:5])


def denial(say: str) -> Answer:
    return {"decision": "deny", "say": say}


def mistake(say: str) -> Answer:
    """For what is no call, such as one whose arguments do not fit. Whoever asked may write it rightly."""
    return {**denial(say), "mistake": True}


def permit_answer(permit: Permit) -> Answer:
    """Leave to act, unless this very call was settled before."""
    if permit.settled is not None:
        return denial(f"call {permit.call.key} was already made; do not repeat it")
    decision = permit.decision
    return {
        "decision": "allow",
        "call": permit.call.key,
        "rule": decision.rule,
        "reason": decision.reason,
        "tier": str(decision.tier),
    }


def refusal_answer(refusal: Refusal) -> Answer:
    return {
        "decision": "ask" if refusal.approval_id else "deny",
        "say": refusal.say,
        "rule": refusal.decision.rule,
        "tier": str(refusal.decision.tier),
        "approval_id": refusal.approval_id,
        "deadline": refusal.deadline.isoformat() if refusal.deadline else None,
    }


def outcome_answer(call_key: str, outcome: CallOutcome) -> Answer:
    return {"decision": "allow", "call": call_key, "outcome": outcome.model_dump(mode="json")}


def receipt_answer(receipt: Receipt) -> Answer:
    return {"decision": "allow", "call": receipt.call_key, "receipt": receipt.number}


def tools_answer(specs: list[ToolSpec]) -> Answer:
    fields = {"name", "description", "input_schema", "tier"}
    return {
        "decision": "allow",
        "tools": [spec.model_dump(mode="json", include=fields) for spec in specs],
    }


_MAX_PROBLEMS = 100
_MAX_LISTED = 5
_MAX_LINE_CHARACTERS = 300


class TurnProblems:
    """The newest faults of a turn, up to a hundred."""

    def __init__(self) -> None:
        self._problems: deque[Exception] = deque(maxlen=_MAX_PROBLEMS)

    def __iter__(self) -> Iterator[Exception]:
        return iter(self._problems)

    def add(self, problem: Exception) -> None:
        self._problems.append(problem)

    def as_text(self) -> str:
        """The newest of them on one line, plain and cut; nothing when there are none to tell.

        What an agent did wrong and was told about stands in the journal as a refused call, so it
        is left out. Words of programs may be among the others: escapes and control characters go.
        """
        counts = Counter(
            _plain(problem) for problem in self if not isinstance(problem, AgentMustAct)
        )
        if not counts:
            return ""
        older = sum(list(counts.values())[:-_MAX_LISTED])
        parts = [f"older problems: {older}"] if older else []
        for text, times in list(counts.items())[-_MAX_LISTED:]:
            parts.append(text if times == 1 else f"{text} ({times} times)")
        return "in the hook server: " + "; ".join(parts)


def _plain(problem: Exception) -> str:
    text = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
    line = " ".join(text.split())
    plain = "".join(char for char in line if char.isprintable())
    return plain if len(plain) <= _MAX_LINE_CHARACTERS else plain[: _MAX_LINE_CHARACTERS - 1] + "…"
