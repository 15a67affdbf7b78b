"""The line to a provider: only what Podium means to send leaves by it, and only for one place.

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

LARGEST_ANSWER_BYTES = 256_000_000
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


class Line(httpx2.AsyncBaseTransport):
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
        self._place = _place(httpx2.URL(base_url))
        self._own_headers = {
            **key_headers,
            "accept-encoding": "identity",  # what is not packed cannot swell
            "user-agent": USER_AGENT,
        }
        self._timeout = httpx2.Timeout(silence_seconds, connect=CONNECT_SECONDS).as_dict()
        self._inner = inner or httpx2.AsyncHTTPTransport(verify=certificates(), trust_env=False)
        self.mended = False
        """Whether bytes that are no UTF-8 were replaced in an answer."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _place(request.url) != self._place:
            raise httpx2.LocalProtocolError(
                f"the provider sent us on to {request.url.host!r}, which is not its base_url"
            )
        response = await self._inner.handle_async_request(self._sent(request))
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is packed, which nobody asked for")
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
        kept = {name: value for name, value in request.headers.items() if name in _SENT_HEADERS}
        return httpx2.Request(
            request.method,
            request.url,
            headers={**kept, **self._own_headers},
            stream=request.stream,
            extensions={**request.extensions, "timeout": self._timeout},
        )


class _Mended(httpx2.AsyncByteStream):
    """An answer of bounded size. Bytes that are no UTF-8 become replacement characters."""

    def __init__(self, response: httpx2.Response, line: Line) -> None:
        self._response = response
        self._line = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        size = 0
        async for part in self._response.aiter_raw():
            size += len(part)
            if size > LARGEST_ANSWER_BYTES:
                raise httpx2.RemoteProtocolError(
                    f"the answer is larger than {LARGEST_ANSWER_BYTES:,} bytes"
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


def _place(url: httpx2.URL) -> tuple[str, str, int]:
    port = url.port or (443 if url.scheme == "https" else 80)
    return url.scheme, url.host, port
