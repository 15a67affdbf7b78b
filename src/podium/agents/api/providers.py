"""Provider libraries without keys, retries or environment, on an HTTP client that reaches one host alone.

The provider libraries take headers, proxies and organisations from the environment, and show the
key they were given in errors and debug logs. So they are given none: it is put on here, on a copy
of each request that nobody else sees.
"""

from __future__ import annotations

import codecs
import ssl
from collections.abc import AsyncIterator, Mapping
from functools import cache

import httpx2
from pydantic_ai.models import Model

from podium.agents.api.settings import Choice

MAX_ANSWER_BYTES = 256_000_000
CONNECT_SECONDS = 20.0
USER_AGENT = "podium"
REPLACEMENT = "\ufffd"

_SENT_HEADERS = frozenset(
    {
        "accept",
        "anthropic-beta",
        "anthropic-version",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    }
)


class HttpLine(httpx2.AsyncBaseTransport):
    """Sends requests to one provider, with its key, and gives back text that is text."""

    def __init__(
        self,
        base_url: str,
        key_headers: Mapping[str, str],
        silence_seconds: float,
        *,
        inner: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`silence_seconds`: how long the provider may say nothing."""
        self._origin = _origin(httpx2.URL(base_url))
        self._own_headers = {
            **key_headers,
            "accept-encoding": "identity",  # what is not packed cannot swell
            "user-agent": USER_AGENT,
        }
        self._timeout = httpx2.Timeout(silence_seconds, connect=CONNECT_SECONDS).as_dict()
        self._inner = inner or httpx2.AsyncHTTPTransport(verify=certificates(), trust_env=False)
        self.mended = False
        """True if invalid UTF-8 was replaced in an answer."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            raise httpx2.LocalProtocolError(
                f"the provider redirected to {request.url.host!r}, which is not its base_url"
            )
        response = await self._inner.handle_async_request(self._sent(request))
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the response is compressed, which was not requested")
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Mended(response, self),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _sent(self, request: httpx2.Request) -> httpx2.Request:
        """A copy with the key. Errors and logs of the libraries have the request without it."""
        headers = {name: value for name, value in request.headers.items() if name in _SENT_HEADERS}
        return httpx2.Request(
            request.method,
            request.url,
            headers={**headers, **self._own_headers},
            stream=request.stream,
            extensions={**request.extensions, "timeout": self._timeout},
        )


class _Mended(httpx2.AsyncByteStream):
    """An answer of bounded size. Bytes that are no UTF-8 become replacement characters."""

    def __init__(self, response: httpx2.Response, line: HttpLine) -> None:
        self._response = response
        self._line = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        size = 0
        async for part in self._response.aiter_raw():
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.RemoteProtocolError(
                    f"the answer is larger than {MAX_ANSWER_BYTES:,} bytes"
                )
            text = decoder.decode(part)
            if REPLACEMENT in text and REPLACEMENT.encode() not in part:
                self._line.mended = True
            yield text.encode()
        yield decoder.decode(b"", final=True).encode()

    async def aclose(self) -> None:
        await self._response.aclose()


@cache
def certificates() -> ssl.SSLContext:
    """Loaded once: it takes longer than a request on loopback."""
    return httpx2.create_ssl_context(trust_env=False)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    port = url.port or (443 if url.scheme == "https" else 80)
    return url.scheme, url.host, port


NO_KEY = "held-by-podium"
"""Placeholder that the libraries get for a key. The line puts the real one on."""


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
    raise httpx2.LocalProtocolError("an API agent sends requests only through its own client")


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
