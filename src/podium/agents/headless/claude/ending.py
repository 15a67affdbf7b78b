"""How a turn of Claude Code ended: well, or by which error of the tree."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from podium.agents.headless.claude.records import Heard
from podium.agents.headless.ending import (
    last_words,
    lost,
    may_end_with,
    out_of_time,
    plain_words,
    reset_time,
    trouble_of_status,
)
from podium.domain.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    ContextOverflow,
    PodiumError,
    RateLimited,
    ReplyInvalid,
)
from podium.domain.launching import Ended
from podium.domain.model import Json

LOGIN_HINT = (
    "set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN (`claude setup-token` makes one) in the "
    "agent's `env`, or log in by running `claude` and typing /login"
)

_NOT_LOGGED_IN = re.compile(
    r"not logged in|/login|invalid api key|token has expired", re.IGNORECASE
)
_BAD_START = re.compile(
    r"error: (unknown option|option |missing required)|session id", re.IGNORECASE
)
_NO_CREDIT = re.compile(r"credit balance|usage limit|hit your .{0,40}limit", re.IGNORECASE)
_CUT_SHORT = re.compile(r"output token (maximum|limit)", re.IGNORECASE)
_RESETS = re.compile(
    r"resets\s+(?:at\s+)?(1[0-2]|[1-9])(?::([0-5]\d))?\s*(am|pm)\s*\(([\w/+-]{1,60})\)",
    re.IGNORECASE,
)


def trouble_at_end(
    agent: str, heard: Heard, ended: Ended, now: datetime, waiting: tuple[str, ...] = ()
) -> PodiumError | None:
    """The error this end stands for; None for a success: a result that says something, and exit 0.

    `waiting` are the approvals that the turn was told to end and wait for.
    """
    if ended.timed_out:
        return out_of_time(agent, ended)
    if heard.trouble is not None:
        status, words, retry_at = heard.trouble
        return _of_status(agent, status, words, now, heard.limit_ends or retry_at)
    if heard.is_overspent:
        return BudgetSpent(
            f"agent {agent!r} used more than the {heard.most_tokens} tokens its turn may use",
            scope="step",
            measure="tokens",
            used=heard.counted.input_tokens + heard.counted.output_tokens,
            limit=heard.most_tokens or 0,
        )
    if heard.result is None:
        return _without_result(agent, ended)
    # Failures of the provider come as `subtype: success`; only `is_error` tells.
    if heard.result.get("is_error") is not False or heard.result.get("subtype") != "success":
        return _of_result(agent, heard.result, heard.limit_ends, now)
    if heard.refused or heard.result.get("stop_reason") == "refusal":
        return _refusal(agent, heard.result)
    if heard.result.get("num_turns") == 0:
        return AgentRejected(
            f"agent {agent!r} took the prompt for a command of its own and asked no model"
            f"{_said(words_of(heard.result))}; begin the prompt with other words"
        )
    if ended.exit_code != 0:
        return lost(agent, ended)
    has_payload = heard.result.get("structured_output") is not None
    if not has_payload and not may_end_with(words_of(heard.result), waiting):
        return AgentLost(f"agent {agent!r} ended its turn and said nothing")
    return None


def words_of(result: dict[str, Json]) -> str:
    """What a result says: the answer, or what went wrong."""
    said = result.get("result")
    if isinstance(said, str):
        return said
    errors = result.get("errors")
    return "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""


def _without_result(agent: str, ended: Ended) -> PodiumError:
    if ended.exit_code and _BAD_START.search(last_words(ended)):
        return AgentRejected(
            f"agent {agent!r} could not be started as asked{last_words(ended)}; "
            "an older Claude Code may not know a switch: update it"
        )
    return lost(agent, ended)


def _of_result(
    agent: str, result: dict[str, Json], limit_ends: datetime | None, now: datetime
) -> PodiumError:
    words = words_of(result)
    reason = result.get("terminal_reason")
    status = result.get("api_error_status")
    if reason in ("max_turns", "budget_exhausted"):
        return _spent(agent, str(reason), words)
    if reason == "structured_output_retry_exhausted":
        return ReplyInvalid(f"agent {agent!r} gave no answer that fits its contract{_said(words)}")
    if reason == "prompt_too_long" or status == 413:
        return ContextOverflow(f"the conversation is too long for agent {agent!r}{_said(words)}")
    if result.get("stop_reason") == "refusal":
        return _refusal(agent, result)
    if isinstance(status, int):
        return _of_status(agent, status, words, now, limit_ends)
    return _without_status(agent, result, words, limit_ends or _reset_in(words, now))


def _of_status(
    agent: str, status: int | None, words: str, now: datetime, retry_at: datetime | None
) -> PodiumError:
    # An account without credit is answered like a wrong request.
    counted_as = 429 if status == 400 and _NO_CREDIT.search(words[:1_000]) else status
    return trouble_of_status(
        agent,
        counted_as,
        words,
        login_hint=LOGIN_HINT,
        now=now,
        retry_at=retry_at or _reset_in(words, now),
    )


def _without_status(
    agent: str, result: dict[str, Json], words: str, retry_at: datetime | None
) -> PodiumError:
    """The provider gave no status: it was not reached, or the CLI itself gave up."""
    if _NOT_LOGGED_IN.search(words[:1_000]):
        return AgentNotLoggedIn(f"agent {agent!r} is not logged in{_said(words)}; {LOGIN_HINT}")
    if _NO_CREDIT.search(words[:1_000]):
        return RateLimited(f"agent {agent!r} has used up its limit{_said(words)}", retry_at)
    if _CUT_SHORT.search(words[:1_000]):
        return AgentRejected(
            f"the answer of agent {agent!r} is longer than its model may write{_said(words)}"
        )
    if result.get("terminal_reason") == "api_error":
        return AgentUnavailable(f"agent {agent!r} cannot reach its model{_said(words)}")
    if "No conversation found" in words:
        return AgentRejected(
            f"agent {agent!r} does not know the conversation it was to go on with{_said(words)}; "
            "ask without a session"
        )
    return AgentLost(f"agent {agent!r} gave up without an answer{_said(words)}")


def _spent(agent: str, reason: str, words: str) -> BudgetSpent:
    measure = "turns" if reason == "max_turns" else "usd"
    return BudgetSpent(
        f"agent {agent!r} stopped at the turn's limit{_said(words)}", scope="step", measure=measure
    )


def _refusal(agent: str, result: dict[str, Json]) -> AgentRefused:
    return AgentRefused(f"the model of agent {agent!r} will not do this{_said(words_of(result))}")


def _said(words: str) -> str:
    plain = plain_words(words)
    return f": {plain}" if plain else ""


def _reset_in(words: str, now: datetime) -> datetime | None:
    """When a limit ends, as "resets 3am (Europe/Berlin)" or in the words that others use too."""
    found = _RESETS.search(words[:1_000])
    if found is None:
        return reset_time(words, now)
    hour = int(found[1]) % 12 + (12 if found[3].lower() == "pm" else 0)
    try:
        there = now.astimezone(ZoneInfo(found[4]))
        then = there.replace(hour=hour, minute=int(found[2] or 0), second=0, microsecond=0)
    except (LookupError, ValueError, OSError):  # no such zone, or no such minute
        return None
    later = then if then > there else then + timedelta(days=1)
    return later.astimezone(now.tzinfo)
