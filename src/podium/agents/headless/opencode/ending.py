"""How a turn of opencode has ended: with an answer, or with which error of the tree."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from podium.agents.headless.ending import (
    after_seconds,
    lost,
    may_end_with,
    out_of_time,
    plain_words,
    trouble_of_status,
)
from podium.agents.headless.opencode.stream import OpencodeStream
from podium.domain.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
)
from podium.domain.launching import Ended

LOGIN_HINT = (
    "log in with `opencode auth login`, or set the variable of its key in the agent's `env`"
)
GOOD_REASONS = ("stop", "length")


def trouble_at_end(
    agent: str,
    stream: OpencodeStream,
    ended: Ended,
    now: datetime,
    waiting: tuple[str, ...] = (),
) -> PodiumError | None:
    """None only when it both ended well and finished a last step: neither alone is an answer.

    `waiting` are the approvals it was told to wait for: then it has nothing left to say.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if stream.failure is not None:
        return trouble_of(agent, stream.failure, now)
    if ended.exit_code != 0:
        return _without_record(agent, ended)
    if may_end_with("", waiting):
        return None
    if stream.reason == "content-filter":
        return AgentRefused(f"agent {agent!r}: its provider has stopped the answer")
    if stream.reason not in GOOD_REASONS:
        how = f"its last step ended with {stream.reason!r}" if stream.reason else "no step ended"
        return AgentLost(f"agent {agent!r} gave no answer: {plain_words(how)}")
    return None


def trouble_of(agent: str, failure: dict[str, Any], now: datetime) -> PodiumError:
    """The error for one that opencode names."""
    name = str(failure.get("name", ""))
    found = failure.get("data")
    data: dict[str, Any] = found if isinstance(found, dict) else {}
    words = str(data.get("message") or name or json.dumps(failure)[:1_000])
    said = plain_words(words)
    match name:
        case "ContextOverflowError":
            return ContextOverflow(f"the conversation is too long for agent {agent!r}: {said}")
        case "ProviderAuthError":
            return AgentNotLoggedIn(f"agent {agent!r} is not logged in: {said}; {LOGIN_HINT}")
        case "APIError":
            return _api_trouble(agent, data, words, now)
        case "ContentFilterError":
            return AgentRefused(f"agent {agent!r}: its provider has stopped the answer: {said}")
        case "ProviderModelNotFoundError" | "ModelNotFoundError":
            return AgentRejected(f"agent {agent!r} does not know its model: {said}")
    return AgentLost(f"agent {agent!r} failed: {said}")


def _api_trouble(agent: str, data: dict[str, Any], words: str, now: datetime) -> PodiumError:
    status = data.get("statusCode")
    body = str(data.get("responseBody") or "")[:20_000]
    if not isinstance(status, int):
        return AgentUnavailable(f"agent {agent!r} cannot reach its model: {plain_words(words)}")
    return trouble_of_status(
        agent,
        status,
        words if words in body else f"{words} {body}",
        login_hint=LOGIN_HINT,
        now=now,
        retry_at=_retry_at(data.get("responseHeaders"), now),
    )


def _retry_at(headers: object, now: datetime) -> datetime | None:
    given = headers.get("retry-after") if isinstance(headers, dict) else None
    try:
        return after_seconds(float(str(given)), now)
    except ValueError:
        return None


def _without_record(agent: str, ended: Ended) -> PodiumError:
    words = ended.stderr[-4_000:].decode(errors="replace")
    if "Session not found" in words:
        return AgentRejected(
            f"agent {agent!r} has no such conversation any more; ask without a session"
        )
    if "Model not found" in words or "ProviderModelNotFoundError" in words:
        return AgentRejected(f"agent {agent!r} does not know its model{_tail(words)}")
    return lost(agent, ended)


def _tail(words: str) -> str:
    said = plain_words(words[-1_000:])
    return f": {said}" if said else ""
