"""Log of requests, for assertions: bounded, and without any key."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from podium.testing.modelserver.http_server import Request
from podium.testing.modelserver.messages import Ask

KEEP_REQUESTS = 1000
KEEP_BYTES = 64 * 1024 * 1024

SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "cookie",
        "set-cookie",
        "openai-organization",
        "openai-project",
        "anthropic-organization-id",
        "chatgpt-account-id",
        "x-goog-user-project",
    }
)
"""Headers that say who is asking."""
SECRET_QUERY = frozenset({"key", "api_key", "access_token", "token"})


@dataclass
class LoggedRequest:
    """A request as it came, but for what is secret, and how it was answered."""

    number: int
    """Counted from 1."""
    method: str
    path: str
    """With its query, but no key in it."""
    headers: Mapping[str, str]
    body: Any
    """Parsed JSON; the text of anything else; None for nothing."""
    size: int
    has_key: bool
    protocol: str = ""
    model: str = ""
    is_ask: bool = False
    """True for a request to the model."""
    prompt: str = ""
    """The newest prompt, without what a CLI puts beside it."""
    tools: tuple[str, ...] = ()
    """Names of the tools it offers."""
    streamed: bool = False
    rule: str = ""
    """Name of the rule that answered, or the outcome on a cassette. Empty: none matched."""
    step: int | None = None
    """Index of its step, from 0."""
    status: int = 0
    """0 while it is not answered, or when the line was cut before."""

    def describe(self, ask: Ask) -> None:
        """Note what the request asks the model."""
        self.is_ask, self.protocol = True, ask.protocol
        self.model, self.streamed, self.prompt = ask.model, ask.streamed, ask.prompt
        self.tools = tuple(tool.name for tool in ask.tools)


@dataclass
class RequestLog:
    """The newest requests, up to a number and a size of all bodies together."""

    count: int = 0
    requests: deque[LoggedRequest] = field(default_factory=lambda: deque(maxlen=KEEP_REQUESTS))
    _bytes: int = 0

    def add(self, request: Request, body: Any) -> LoggedRequest:
        self.count += 1
        logged = LoggedRequest(
            number=self.count,
            method=request.method,
            path=public_target(request.target),
            headers=public_headers(request.headers),
            body=body,
            size=len(request.body),
            has_key=bool(key_of(request)),
        )
        if len(self.requests) == self.requests.maxlen:
            self._bytes -= self.requests[0].size
        self.requests.append(logged)
        self._bytes += logged.size
        while self._bytes > KEEP_BYTES and len(self.requests) > 1:
            self._bytes -= self.requests.popleft().size
        return logged


def key_of(request: Request) -> str:
    """The key a client gave, wherever its protocol puts it."""
    headers = request.headers
    kind, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if kind.lower() == "bearer" else ""
    named = headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("api-key")
    return named or bearer or request.query.get("key", "")


def secrets_of(request: Request) -> Iterator[str]:
    """List every secret value of the request, of at least 6 characters."""
    values = [value for name, value in request.headers.items() if name in SECRET_HEADERS]
    values += [value for name, value in request.query.items() if name in SECRET_QUERY]
    for value in [*values, key_of(request)]:
        for part in {value, value.rpartition(" ")[2]}:
            if len(part) >= 6:
                yield part


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers without those that are secret."""
    return {name: value for name, value in headers.items() if name not in SECRET_HEADERS}


def public_target(target: str) -> str:
    """Path and query without a key."""
    parts = urlsplit(target)
    public = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name not in SECRET_QUERY
    ]
    return parts.path + (f"?{urlencode(public)}" if public else "")
