"""Provider, model and key that the options of an API agent select."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from podium.agents.api import choose
from podium.agents.deps import AgentOptions
from podium.core.errors import AgentNotLoggedIn, BadInput


def options(**more: Any) -> AgentOptions:
    return AgentOptions(name="thinker", **more)


@pytest.mark.parametrize(
    ("given", "provider", "model"),
    [
        ({"model": "anthropic:claude-opus-4-6"}, "anthropic", "claude-opus-4-6"),
        ({"model": "google:gemini-2.5-flash"}, "google", "gemini-2.5-flash"),
        ({"model": "openrouter:a/b:free"}, "openrouter", "a/b:free"),
        ({"model": "a/b:free", "options": {"provider": "openrouter"}}, "openrouter", "a/b:free"),
        ({"model": "openai:gpt-5", "options": {"provider": "openai"}}, "openai", "gpt-5"),
        ({"model": "openai:x", "options": {"provider": "openrouter"}}, "openrouter", "openai:x"),
        ({"model": "openai-responses:gpt-5"}, "openai-responses", "gpt-5"),
    ],
)
def test_the_provider_is_named_by_an_option_or_the_models_prefix(
    given: dict[str, Any], provider: str, model: str
) -> None:
    choice = choose(options(**given))
    assert (choice.provider, choice.model) == (provider, model)
    assert choice.base_url.startswith("https://")


@pytest.mark.parametrize("model", ["gpt-5", "mistral:large", "", ":x", "Anthropic:claude"])
def test_an_unknown_provider_is_refused_with_the_known_ones(model: str) -> None:
    with pytest.raises(BadInput, match="google, openai, openai-responses, openrouter, anthropic"):
        choose(options(model=model))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"provider": "bedrock"}, "provider"),
        ({"temprature": 1}, "temprature"),
        ({"temperature": 9}, "temperature"),
        ({"same_call_limit": 0}, "same_call_limit"),
    ],
)
def test_options_that_cannot_be_used_are_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(BadInput, match=rf"options of agent 'thinker'.*{named}.*known options"):
        choose(options(model="openai:gpt-5", options=given))


@pytest.mark.parametrize("url", ["ftp://x", "https://", "http://u:p@host", "https://h/?key=1", "x"])
def test_a_url_that_cannot_be_used_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(BadInput, match="base_url of agent 'thinker'") as caught:
        choose(options(model="openai:gpt-5", base_url=url))
    assert "u:p" not in str(caught.value)


def test_a_model_must_be_named() -> None:
    with pytest.raises(BadInput, match="has no model"):
        choose(options(model="openai:"))


def test_a_key_comes_from_the_agents_own_variables_and_is_never_shown() -> None:
    choice = choose(options(model="anthropic:claude-opus-4-6"))
    key = choice.key({"ANTHROPIC_API_KEY": "secret://K"}, {"K": "sk-123 \n"}.__getitem__)
    assert key.headers == {"x-api-key": "sk-123"}
    assert "sk-123" not in f"{key!r} {key}"
    assert key.scrub("wrong: sk-123!") == "wrong: [key]!"
    token = choice.key({"ANTHROPIC_AUTH_TOKEN": "tok"}, str)
    assert token.headers == {"authorization": "Bearer tok"}


@pytest.mark.parametrize("value", ["", "  ", "a\nb", "schlüssel", "a\0b"])
def test_a_key_that_cannot_travel_is_refused_without_showing_it(value: str) -> None:
    choice = choose(options(model="anthropic:claude-opus-4-6"))
    with pytest.raises(AgentNotLoggedIn) as caught:
        choice.key({"ANTHROPIC_API_KEY": "secret://K"}, {"K": value}.__getitem__)
    assert value.strip() == "" or value not in str(caught.value)


def test_a_secret_that_is_not_known_is_named() -> None:
    choice = choose(options(model="anthropic:claude-opus-4-6"))
    with pytest.raises(AgentNotLoggedIn, match="secret 'K' is not defined"):
        choice.key({"ANTHROPIC_API_KEY": "secret://K"}, dict[str, str]().__getitem__)


def test_importing_agents_loads_no_provider_library() -> None:
    code = (
        "import sys, podium.agents, podium.agents.api\n"
        "heavy = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'httpx2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, None, 7),
        ({"retry-after-ms": "1500"}, None, 1.5),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 90)}, None, 90),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() + 90) * 1000)}, None, 90),
        ({"x-ratelimit-reset": "60"}, None, 60),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, None, 360),
        ({"anthropic-ratelimit-tokens-reset": "2026-01-01T12:01:00Z"}, None, 60),
        ({}, {"error": {"details": [{"retryDelay": "32.5s"}]}}, 32.5),
        ({}, {"error": {"message": "Please try again in 20s."}}, 20),
        ({}, {"error": {"details": [7, {"retryDelay": 5}]}}, None),
        ({"x-ratelimit-reset": "soon"}, None, None),
        ({"retry-after": "99999999999"}, None, None),
    ],
)
def test_every_way_to_say_when_to_come_back_is_understood(
    headers: dict[str, str], body: Any, seconds: float | None
) -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    from podium.agents.api.errors import time_to_ask_again

    error = ModelHTTPError(429, "m", body, headers=headers)
    words = str((body or {}).get("error", {}).get("message", ""))
    found = time_to_ask_again(error, words, NOW)
    assert found == (None if seconds is None else NOW + timedelta(seconds=seconds))
