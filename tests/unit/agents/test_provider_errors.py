"""Conversion of providers' responses into errors of the tree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from podium.agents.outcome import error_of_status, plain_line, reset_time, stderr_end
from podium.agents.program import newer_than, untried
from podium.core.errors import (
    AgentNotLoggedIn,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
    RateLimited,
)
from podium.core.processes import ProcessExit

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (401, "invalid x-api-key", AgentNotLoggedIn),
        (403, "permission denied", AgentNotLoggedIn),
        (429, "quota exceeded", RateLimited),
        (500, "internal", AgentUnavailable),
        (529, "overloaded", AgentUnavailable),
        (None, "connection refused", AgentUnavailable),
        (400, "unknown field", AgentRejected),
        (404, "no such model", AgentRejected),
        (400, "prompt is too long: 300000 tokens > 200000 maximum", ContextOverflow),
        (400, "This model's maximum context length is 128000 tokens", ContextOverflow),
        (400, "The input token count (1) exceeds the maximum number of tokens", ContextOverflow),
    ],
)
def test_a_status_becomes_one_error_of_the_tree(
    status: int | None, words: str, kind: type[PodiumError]
) -> None:
    error = error_of_status("gemini", status, words, login_hint="log in", now=NOW)
    assert type(error) is kind
    assert "'gemini'" in str(error)


def test_user_not_logged_in_is_shown_how_to() -> None:
    error = error_of_status("codex", 401, "", login_hint="run `codex login`", now=NOW)
    assert str(error) == "agent 'codex' is not logged in; run `codex login`"


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Your quota will reset after 1h2m3s.", 3723),
        ("Please retry in 12.5s", 12.5),
        ("Rate limit reached. Try again in 250ms.", 0.25),
        ("try again in 4 days 2 hours 5 minutes", 4 * 86400 + 2 * 3600 + 300),
        ("Claude AI usage limit reached|1794747600", 3600),
        ("resets at 2026-11-15T13:00:00Z", 3600),
        ("resets at 2026-11-15T15:00:00+02:00", 3600),
    ],
)
def test_the_reset_time_is_found_in_words(words: str, seconds: float) -> None:
    assert reset_time(words, NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "quota exceeded",
        "retry in 999999999999s",
        "resets at 2001-01-01T00:00:00Z",
        "resets at 2026-13-45T99:99:99Z",
        "resets at 0001-01-01T00:00:00+14:00",
        "resets at 9999-12-31T23:59:59-14:00",
        "a|12",
    ],
)
def test_what_no_provider_means_is_no_reset_time(words: str) -> None:
    assert reset_time(words, NOW) is None


def test_a_rate_limit_carries_its_reset_time() -> None:
    error = error_of_status("claude", 429, "retry in 60s", login_hint="", now=NOW)
    assert isinstance(error, RateLimited)
    assert error.retry_at == NOW + timedelta(seconds=60)
    assert "until 2026-11-15 12:01:00 UTC" in str(error)


def test_words_of_programs_are_plain_and_short() -> None:
    assert plain_line("\x1b[31mred\x1b[0m\n\ttab\0") == "red tab"
    assert len(plain_line("x" * 10_000)) == 500


def test_the_last_line_of_stderr_is_its_last_words() -> None:
    ended = ProcessExit(exit_code=1, stderr=b"noise\nFatal: \xff no\n")
    assert stderr_end(ended) == ": Fatal: � no"
    assert stderr_end(ProcessExit(exit_code=1)) == ""


def test_a_version_nobody_tried_is_warned_of_and_an_older_one_is_not() -> None:
    assert newer_than("0.62.0", "0.61.0")
    assert not newer_than("0.61.0", "0.61.0")
    assert untried("gemini", "1.0.0", "0.61.0") == (
        "agent 'gemini' is version 1.0.0; Podium was tested with 0.61.0",
    )
    assert untried("gemini", "", "0.61.0") == untried("gemini", "0.9", "0.61.0") == ()
