"""When a provider wants to be asked again, in the many ways they say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError

from podium.agents.headless.ending import after_seconds, reset_time
from podium.domain.model import Json

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


def time_to_ask_again(error: ModelAPIError, words: str, now: datetime) -> datetime | None:
    """The moment by the most exact thing it said: a header, a detail of the body, its words."""
    if error.retry_after is not None:
        return after_seconds(error.retry_after, now)
    headers = (error.headers if isinstance(error, ModelHTTPError) else None) or {}
    return _of_details(error.body, now) or _of_headers(headers, now) or reset_time(words, now)


def _of_headers(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """The latest reset: one limit that is lifted does not help while another holds."""
    found = [_of_header(headers[name].strip(), now) for name in _RESET_HEADERS if name in headers]
    return max((each for each in found if each is not None), default=None)


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
