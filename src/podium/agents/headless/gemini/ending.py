"""How a turn of Gemini CLI ended: well, or by which error of the tree."""

from __future__ import annotations

import json
import re
from datetime import datetime

from podium.agents.headless.ending import (
    last_words,
    lost,
    may_end_with,
    out_of_time,
    plain_words,
    trouble_of_status,
)
from podium.agents.headless.gemini.records import Heard
from podium.domain.asking import Turn
from podium.domain.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    PodiumError,
)
from podium.domain.launching import Ended
from podium.domain.model import Json

LOGIN_HINT = (
    "set GEMINI_API_KEY in the agent's `env`, or log in by running `gemini` once and choosing "
    "'Login with Google'"
)

NOT_LOGGED_IN = 41
BAD_INPUT = 42
BAD_SETTINGS = 52
OUT_OF_TURNS = 53

_STATUSES = (400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504, 529)
_BY_EXIT = {status % 256: status for status in _STATUSES}
"""A failed request ends the CLI with its HTTP status, of which a process can tell eight bits."""
_CODE = re.compile(r'"code"\s*:\s*(\d{3})\b')
_NO_MODEL = re.compile(r"\bnot found\b|is not supported for", re.IGNORECASE)
_NO_KEY = re.compile(r"API[ _]key (not valid|expired|not found)|API_KEY_INVALID", re.IGNORECASE)
_QUOTA = re.compile(r"\bquota\b|RESOURCE_EXHAUSTED|rate limit", re.IGNORECASE)
_REFUSED = re.compile(
    r"(response|prompt) was blocked|PROHIBITED[_ ]CONTENT|blockReason", re.IGNORECASE
)
_LOOP = "Loop detected"


def trouble_at_end(
    agent: str,
    turn: Turn,
    heard: Heard,
    ended: Ended,
    now: datetime,
    waiting: tuple[str, ...] = (),
) -> PodiumError | None:
    """The error this end stands for; None for a success, which takes a result and an exit 0.

    `waiting` are the approvals it was told to wait for, with nothing left to say.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if ended.exit_code == OUT_OF_TURNS:
        return _out_of_turns(agent, turn)
    if heard.result is None:
        return _without_result(agent, turn, ended)
    if _said_nothing(heard) and waiting:
        return None
    if heard.result.get("status") != "success":
        return _of_result(agent, heard, ended, now)
    if ended.exit_code != 0:
        return lost(agent, ended)
    if not may_end_with(heard.text, waiting) and any(_LOOP in said for said in heard.warnings):
        return AgentLost(f"agent {agent!r} went round in a circle and was stopped by itself")
    return None


def trouble_of_words(agent: str, status: int | None, words: str, now: datetime) -> PodiumError:
    """The error for what the CLI hands on of its provider. It has a status for most, not for all."""
    if _NO_KEY.search(words):
        status = 401
    elif _QUOTA.search(words) and status in (None, 500):
        status = 429
    elif _NO_MODEL.search(words) and status in (None, 500):
        status = 404
    return trouble_of_status(agent, status, words, login_hint=LOGIN_HINT, now=now)


def refusal_in(agent: str, words: str) -> AgentRefused | None:
    """The model's own no, if the words tell of one."""
    if _REFUSED.search(words):
        return AgentRefused(f"the model of agent {agent!r} will not answer this: {words}")
    return None


def _out_of_turns(agent: str, turn: Turn) -> BudgetSpent:
    limit = turn.limits.turns or 0
    return BudgetSpent(
        f"agent {agent!r} has asked its model {limit} times and is not done; allow it more turns",
        scope="step",
        measure="turns",
        used=limit,
        limit=limit,
    )


def _without_result(agent: str, turn: Turn, ended: Ended) -> PodiumError:
    if ended.exit_code == NOT_LOGGED_IN:
        return AgentNotLoggedIn(
            f"agent {agent!r} is not logged in{last_words(ended)}; {LOGIN_HINT}"
        )
    if ended.exit_code == BAD_INPUT and turn.session is not None:
        return AgentRejected(
            f"agent {agent!r} knows no conversation {turn.session!r}; ask without a session"
        )
    if ended.exit_code in (BAD_INPUT, BAD_SETTINGS):
        return AgentRejected(f"agent {agent!r} could not start{_first_words(ended)}")
    usage = b"Unknown argument" in ended.stderr or b"Options:" in ended.stderr
    if ended.exit_code == 1 and usage:
        return AgentRejected(
            f"agent {agent!r} does not know a switch{last_words(ended)}; update Gemini CLI"
        )
    return lost(agent, ended)


def _of_result(agent: str, heard: Heard, ended: Ended, now: datetime) -> PodiumError:
    error = (heard.result or {}).get("error")
    if not isinstance(error, dict):
        return _of_stream(agent, heard.fault)
    words = provider_words(str(error.get("message") or ""))
    refusal = refusal_in(agent, plain_words(words))
    if refusal is not None:
        return refusal
    found = _CODE.search(str(error.get("message") or ""))
    status = int(found[1]) if found else _BY_EXIT.get(ended.exit_code or 0)
    return trouble_of_words(agent, status, words, now)


def _said_nothing(heard: Heard) -> bool:
    """Whether it failed by the model's answer alone. What a provider says comes with an `error`."""
    result = heard.result or {}
    return result.get("status") != "success" and not isinstance(result.get("error"), dict)


def _of_stream(agent: str, fault: str) -> PodiumError:
    """The model's answer itself was no answer: blocked, empty or cut off."""
    refusal = refusal_in(agent, fault)
    if refusal is not None:
        return refusal
    return AgentUnavailable(
        f"the model of agent {agent!r} gave no whole answer: {fault or 'no reason was given'}"
    )


def provider_words(message: str) -> str:
    """What the provider said, without the CLI's wrapping and without the braces."""
    inner = message.removeprefix("[API Error: ")
    body, _, advice = inner.rpartition("]")
    try:
        said: Json = json.loads(body or inner)
        return str(said["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return body or advice


def _first_words(ended: Ended) -> str:
    said = plain_words(ended.stderr[:4_000].decode(errors="replace"))
    return f": {said}" if said else ""
