"""Errors of codex as errors of the tree."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from podium.agents.outcome import (
    after_seconds,
    error_of_status,
    is_overflow,
    plain_line,
    reset_time,
)
from podium.core.errors import AgentLost, AgentRefused, ContextOverflow, PodiumError

LOGIN_HINT = "log in with `codex login`, or give the agent a key in its `env`"

_STATUS = {
    "unauthorized": 401,
    "badRequest": 400,
    "modelNotFound": 404,
    "usageLimitExceeded": 429,
    "rateLimitExceeded": 429,
    "sessionBudgetExceeded": 429,
    "internalServerError": 500,
    "serverOverloaded": 503,
    "flexUnavailable": 503,
    "policyCapacityUnavailable": 503,
}
_OF_HTTP = (
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
)
_REFUSALS = ("cyberPolicy", "misalignmentPolicyViolation")
_REFUSED = re.compile(r"reason: content_filter|content policy", re.IGNORECASE)
_LIMITED = re.compile(r"^rate limit (exceeded|reached)|quota exceeded", re.IGNORECASE)
_UNREACHED = re.compile(
    r"stream disconnected|connection failed|error sending request|idle timeout|reconnecting",
    re.IGNORECASE,
)
_NOT_TAKEN = re.compile(
    r"^\s*\{.*\"error\"|invalid_request_error|reason: max_output_tokens", re.DOTALL
)
_KEY_MISSING = re.compile(r"missing environment variable", re.IGNORECASE)
LOGS_ANSWERS = "codex_http_client::client"
"""The part of codex that logs how its provider answered. The headers of requests are not in it."""
_RETRY_AFTER = re.compile(rb'status=429[^\n]*"retry-after": "(\d{1,7}(?:\.\d{1,9})?)"')
_AGAIN_AT = re.compile(
    r"try again at (?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2})\w\w, (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) (?P<half>AM|PM)"
)


def turn_error(agent: str, error: Any, now: datetime, log: bytes = b"") -> PodiumError:
    """The error for a turn that codex calls failed. `error` is what it says of it, `log` its stderr."""
    details = error if isinstance(error, dict) else {}
    message = str(details.get("message") or "no reason given")
    kind, status = _kind(details.get("codexErrorInfo"))
    reason = plain_line(message)
    if kind == "contextWindowExceeded" or is_overflow(message):
        return ContextOverflow(f"the conversation is too long for agent {agent!r}: {reason}")
    if kind in _REFUSALS or _REFUSED.search(message):
        return AgentRefused(f"agent {agent!r} refused: {reason}")
    if kind not in _STATUS and (kind not in _OF_HTTP or status is None):
        kind, status = _kind_of_message(message, kind if kind in _OF_HTTP else "")
    if kind == "":
        return AgentLost(f"agent {agent!r} gave up: {reason}")
    return error_of_status(
        agent,
        _STATUS.get(kind, status),
        message,
        login_hint=LOGIN_HINT,
        now=now,
        retry_at=again_at(message, now) or reset_time(message, now) or retry_after(log, now),
    )


def is_worth_a_retry(error: Any) -> bool:
    """Return whether it may pass by itself within seconds. Codex waits for the end of a limit too, however far."""
    return isinstance(turn_error("", error, datetime.fromtimestamp(0, UTC)), AgentLost)


def again_at(message: str, now: datetime) -> datetime | None:
    """Read the end of a limit as codex tells it: a time of the day, with the date when it is not today.

    It speaks in its own time zone, which is UTC for us.
    """
    match = _AGAIN_AT.search(message)
    if match is None:
        return None
    date = f"{match['month']} {match['day']} {match['year']}"
    day = date if match["month"] else now.strftime("%b %d %Y")
    clock = f"{match['hour']}:{match['minute']} {match['half']}"
    try:
        reset = datetime.strptime(f"{day} {clock}", "%b %d %Y %I:%M %p").replace(tzinfo=UTC)
    except ValueError:
        return None
    # It leaves out the seconds, so this minute is still ahead.
    if not match["month"] and reset + timedelta(minutes=1) < now:
        reset += timedelta(days=1)
    return max(reset, now)


def retry_after(log: bytes, now: datetime) -> datetime | None:
    """Return when the provider wants to be asked again. Codex logs its answer, but does not report it."""
    delays = _RETRY_AFTER.findall(log)
    return after_seconds(float(delays[-1]), now) if delays else None


def without_answers(log: bytes) -> bytes:
    """The log without the provider's answers, which say nothing of why codex ended."""
    lines = log.splitlines(keepends=True)
    return b"".join(line for line in lines if LOGS_ANSWERS.encode() not in line)


def _kind(info: Any) -> tuple[str, int | None]:
    """Codex's name for the fault, and the HTTP status where it knows one."""
    if isinstance(info, str):
        return info, None
    if isinstance(info, dict) and info:
        name, detail = next(iter(info.items()))
        status = detail.get("httpStatusCode") if isinstance(detail, dict) else None
        return str(name), status if isinstance(status, int) else None
    return "other", None


def _kind_of_message(message: str, else_kind: str) -> tuple[str, int | None]:
    """The same for what codex has no name for, or only a vague one."""
    if _KEY_MISSING.search(message):
        return "unauthorized", None
    if _LIMITED.search(message):
        return "rateLimitExceeded", None
    if _UNREACHED.search(message):
        return _OF_HTTP[0], None
    if _NOT_TAKEN.search(message):
        return "badRequest", None
    return else_kind, None
