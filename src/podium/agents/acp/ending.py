"""How a turn of an ACP agent ended: well, or by which error of the tree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from podium.agents.acp.gatekeeper import Gatekeeper
from podium.agents.acp.records import Heard
from podium.agents.acp.talk import words_of
from podium.agents.headless.ending import lost, may_end_with, out_of_time, trouble_of_status
from podium.agents.rpc import LineClosed, RpcError
from podium.domain.asking import Turn
from podium.domain.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    ContextOverflow,
    PodiumError,
)
from podium.domain.launching import Ended

AUTH_REQUIRED = -32000
_OUR_FAULT = (-32600, -32601, -32602)
"""Invalid request, unknown method, invalid parameters."""

ReadTrouble = Callable[[str, int | None, str, datetime], PodiumError]
"""Finds the error for an HTTP status and words: agent, status, words, now."""


def trouble_at_end(
    agent: str,
    turn: Turn,
    heard: Heard,
    gatekeeper: Gatekeeper,
    ended: Ended,
    waiting: tuple[str, ...] = (),
) -> PodiumError | None:
    """The error this end stands for; None for a success, which takes an answer to the prompt.

    `waiting` are the approvals it was told to wait for, with nothing left to say.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if heard.result is None:
        return lost(agent, ended)
    reason = heard.result.get("stopReason")
    if reason == "max_turn_requests":
        return _out_of_turns(agent, turn)
    if heard.silent and may_end_with("", waiting):
        return None
    if reason == "refusal":
        return AgentRefused(f"the model of agent {agent!r} will not do what it was asked")
    if reason == "cancelled" and not gatekeeper.refused:
        return AgentLost(f"agent {agent!r} broke off its turn by itself")
    if reason == "max_tokens" and not heard.text:
        return ContextOverflow(f"the model of agent {agent!r} came to its limit before any word")
    if reason not in ("end_turn", "cancelled", "max_tokens"):
        return AgentLost(f"agent {agent!r} ended its turn for a reason unknown here: {reason!r}")
    if reason == "end_turn" and not may_end_with(heard.text, waiting):
        return AgentUnavailable(f"the model of agent {agent!r} gave no answer")
    return None


def warnings_at_end(heard: Heard) -> tuple[str, ...]:
    """What a person should know of an answer that counts."""
    reason = (heard.result or {}).get("stopReason")
    cut = ("the answer was cut off at the model's limit",) if reason == "max_tokens" else ()
    broken = ("the agent broke off after a refusal",) if reason == "cancelled" else ()
    return (*heard.warnings, *cut, *broken)


def trouble_of_error(
    agent: str, error: Exception, ended: Ended, now: datetime, read: ReadTrouble
) -> Exception:
    """The error for what ended the conversation early."""
    if ended.timed_out:
        return out_of_time(agent, ended)
    if isinstance(error, LineClosed):
        return lost(agent, ended)
    if not isinstance(error, RpcError):
        return error
    words = words_of(error)
    if error.code == AUTH_REQUIRED:
        return AgentNotLoggedIn(f"agent {agent!r} is not logged in: {words}; {login_hint(agent)}")
    if error.code in _OUR_FAULT:
        return AgentRejected(f"agent {agent!r} does not take what it was asked: {words}")
    status = error.code if 400 <= error.code <= 599 else None
    return read(agent, status, words, now)


def trouble_of_words(agent: str, status: int | None, words: str, now: datetime) -> PodiumError:
    """The error for an agent nothing more is known of."""
    return trouble_of_status(agent, status, words, login_hint=login_hint(agent), now=now)


def login_hint(agent: str) -> str:
    return (
        f"give agent {agent!r} its key in `env`, or name its login file under `options: copy_files`"
    )


def _out_of_turns(agent: str, turn: Turn) -> BudgetSpent:
    limit = turn.limits.turns or 0
    return BudgetSpent(
        f"agent {agent!r} has asked its model as often as it may and is not done",
        scope="step",
        measure="turns",
        used=limit,
        limit=limit,
    )
