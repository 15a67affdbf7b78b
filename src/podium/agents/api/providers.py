"""The provider libraries, set up so that they hold no key, repeat nothing and ask no environment."""

from __future__ import annotations

import httpx2
from pydantic_ai.models import Model

from podium.agents.api.choosing import Choice
from podium.agents.api.line import certificates

NO_KEY = "held-by-podium"
"""What the libraries are given for a key. The line puts the real one on."""


def model_for(choice: Choice, client: httpx2.AsyncClient) -> Model:
    """The model of the library. Whoever made the client closes it."""
    match choice.provider:
        case "google":
            return _google(choice, client)
        case "anthropic":
            return _anthropic(choice, client)
        case _:
            return _openai(choice, client)


def _google(choice: Choice, client: httpx2.AsyncClient) -> Model:
    from google.genai.client import Client, DebugConfig
    from google.genai.types import HttpOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    options = HttpOptions(
        base_url=choice.base_url,
        api_version="v1beta",
        httpx_async_client=client,
        # Neither is used, and both are made from the environment when they are not given.
        async_client_args={"ssl": certificates()},
        httpx_client=httpx2.Client(trust_env=False, transport=httpx2.MockTransport(_nowhere)),
        timeout=int(choice.settings.silence_seconds * 1000),
    )
    debug = DebugConfig(client_mode="", replays_directory="", replay_id="")
    sdk = Client(vertexai=False, api_key=NO_KEY, http_options=options, debug_config=debug)
    return GoogleModel(choice.model, provider=GoogleProvider(client=sdk))


def _nowhere(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.LocalProtocolError("an API agent speaks by its own line alone")


def _anthropic(choice: Choice, client: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(
        api_key=NO_KEY,
        base_url=choice.base_url,
        http_client=client,
        max_retries=0,
        open_telemetry=False,
    )
    sdk._custom_headers = {}  # what ANTHROPIC_CUSTOM_HEADERS put there
    return AnthropicModel(choice.model, provider=AnthropicProvider(anthropic_client=sdk))


def _openai(choice: Choice, client: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    sdk = AsyncOpenAI(
        api_key=NO_KEY,
        base_url=choice.base_url,
        http_client=client,
        max_retries=0,
        organization="",
        project="",
    )
    sdk._custom_headers = {}  # what OPENAI_CUSTOM_HEADERS put there
    if choice.provider == "openrouter":
        return OpenRouterModel(choice.model, provider=OpenRouterProvider(openai_client=sdk))
    if choice.provider == "openai-responses":
        return OpenAIResponsesModel(choice.model, provider=OpenAIProvider(openai_client=sdk))
    return OpenAIChatModel(choice.model, provider=OpenAIProvider(openai_client=sdk))
