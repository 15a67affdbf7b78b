"""Errors between Podium and a provider as errors of the tree, and when the provider wants to be asked again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic_ai import exceptions as exceptions
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelResponse

from podium.agents.api.settings import Choice, Key
from podium.agents.outcome import after_seconds, error_of_status, plain_line, reset_time
from podium.core.errors import (
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
)
from podium.core.model import Json

_RESET_HEADERS = (
    "x-ratelimit-reset",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-reset",
    "anthropic-ratelimit-input-tokens-reset",
    "anthropic-ratelimit-output-tokens-reset",
)
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
_FIRST_EPOCH_SECONDS = 1_000_000_000
_FIRST_EPOCH_MILLISECONDS = 1_000_000_000_000


def time_to_ask_again(error: ModelAPIError, message: str, now: datetime) -> datetime | None:
    """The moment by the most exact thing it said: a header, a detail of the body, its words."""
    if error.retry_after is not None:
        return after_seconds(error.retry_after, now)
    headers = (error.headers if isinstance(error, ModelHTTPError) else None) or {}
    return _of_details(error.body, now) or _of_headers(headers, now) or reset_time(message, now)


def _of_headers(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """The latest reset: one limit that is lifted does not help while another holds."""
    resets = [_of_header(headers[name].strip(), now) for name in _RESET_HEADERS if name in headers]
    return max((reset for reset in resets if reset is not None), default=None)


def _of_header(value: str, now: datetime) -> datetime | None:
    if not _NUMBER.fullmatch(value):
        return reset_time(f"reset {value}", now)
    number = float(value)
    if number >= _FIRST_EPOCH_MILLISECONDS:
        number /= 1000
    if number < _FIRST_EPOCH_SECONDS:
        return after_seconds(number, now)
    return after_seconds(number - now.astimezone(UTC).timestamp(), now)


def _of_details(body: Json, now: datetime) -> datetime | None:
    """Gemini's RetryInfo."""
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and _NUMBER.fullmatch(delay.removesuffix("s")):
            return after_seconds(float(delay.removesuffix("s")), now)
    return None


OVERLOADED = 529
SERVER_ERRORS = frozenset({500, 502, 503, 504, OVERLOADED})


@dataclass(frozen=True)
class RequestFailure:
    """A request that brought no answer."""

    error: PodiumError
    passing: bool = False
    """Worth sending again: it never arrived, or the provider itself broke or was full."""
    retry_at: datetime | None = None
    """The time from which the provider accepts requests again."""
    wants_wait: bool = False
    """True: without a time to wait for it is not sent again."""
    rejected: bool = False
    """The provider finds the request itself wrong."""
    billed: bool = False
    """Tokens may have been used that nobody told of."""


def failure_of(error: Exception, choice: Choice, key: Key, now: datetime) -> RequestFailure:
    """Read what the library raised. The key is taken out of the words."""
    message = key.scrub(_message_of(error))
    match error:
        case exceptions.ModelContextWindowExceededError():
            what = f"the conversation is too long for agent {choice.agent!r}"
            return RequestFailure(ContextOverflow(_with(what, message)))
        case exceptions.ContentFilterError():
            return RequestFailure(AgentRefused(_with(f"agent {choice.agent!r} refused", message)))
        case exceptions.ModelAPIError():
            return _of_api(error, message, choice, key, now)
        case exceptions.UserError():
            return RequestFailure(
                AgentRejected(
                    _with(f"the request to agent {choice.agent!r} is not valid", message)
                ),
                rejected=True,
            )
        case exceptions.UnexpectedModelBehavior():
            what = f"agent {choice.agent!r} cannot interpret its model's answer"
            return RequestFailure(AgentUnavailable(_with(what, message)), billed=True)
    # Whatever a library trips over in what it was sent is the sender's fault.
    what = f"agent {choice.agent!r} cannot read its model's answer ({type(error).__name__})"
    return RequestFailure(AgentUnavailable(_with(what, message)), billed=True)


def _of_api(
    error: exceptions.ModelAPIError, message: str, choice: Choice, key: Key, now: datetime
) -> RequestFailure:
    status = _status(error)
    retry_at = time_to_ask_again(error, message, now)
    tree = error_of_status(
        choice.agent,
        status,
        message,
        login_hint=key.hint or choice.login_hint,
        now=now,
        retry_at=retry_at,
        address=choice.base_url,
    )
    limited = status == 429
    unreached = isinstance(error, exceptions.ModelConnectionError) and error.phase in (
        "connect",
        "pool",
    )
    return RequestFailure(
        tree,
        passing=not isinstance(error, exceptions.ModelQuotaExceededError)
        and (limited or unreached or status in SERVER_ERRORS),
        retry_at=retry_at,
        wants_wait=limited,
        rejected=isinstance(tree, AgentRejected),
        billed=error.in_stream or (status is None and not unreached),
    )


def _status(error: exceptions.ModelAPIError) -> int | None:
    """The status that says who must act, which is not always the one on the wire."""
    if isinstance(error, exceptions.ModelQuotaExceededError | exceptions.ModelRateLimitError):
        return 429
    if isinstance(error, exceptions.ModelAuthenticationError):
        return 401  # Gemini calls a key it does not know an invalid argument
    return error.status_code if isinstance(error, exceptions.ModelHTTPError) else None


def _message_of(error: BaseException) -> str:
    """Return the provider's message; where there is none, that of the connection error."""
    if isinstance(error, exceptions.ModelHTTPError):
        return _message(error.body) or f"HTTP {error.status_code}"
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _message(body: Json) -> str:
    """The message in an error's body, which every provider wraps in its own way."""
    for _ in range(3):
        if isinstance(body, list) and body:
            body = body[0]
        if not isinstance(body, dict):
            break
        message = body.get("message")
        if isinstance(message, str) and message:
            return message
        body = body.get("error")
    return body if isinstance(body, str) else ""


def _with(what: str, detail: str) -> str:
    plain = plain_line(detail)
    return f"{what}: {plain}" if plain else what


def error_in(response: ModelResponse, choice: Choice, key: Key) -> PodiumError | None:
    """Return the error in an answer that came without one. None: it is complete."""
    details = response.provider_details or {}
    spoken = response.text or details.get("refusal") or details.get("block_reason") or ""
    detail = key.scrub(str(spoken))
    if response.finish_reason == "content_filter":
        return AgentRefused(_with(f"agent {choice.agent!r} refused", detail))
    if response.finish_reason == "error":
        return AgentUnavailable(
            _with(f"agent {choice.agent!r} stopped in the middle of its answer", detail)
        )
    # The library takes a chat that was cut for one that is over; only the provider's own word counts.
    if response.state != "complete" or "finish_reason" not in details:
        return AgentUnavailable(f"agent {choice.agent!r} was cut off before the end of its answer")
    return None
