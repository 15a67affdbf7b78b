"""The protocol of a dialect, default error texts, and errors as both of OpenAI's dialects write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from podium.testing.modelserver.messages import Ask, ServedAnswer, ServedEvent
from podium.testing.modelserver.script import ProtocolName

T = TypeVar("T")


@dataclass(frozen=True)
class DialectFailure:
    """An answer that is an error."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    event: ServedEvent | None = None
    """Event for a stream, where the provider reports this error inside of one."""


class Dialect(Protocol):
    """One protocol. Knows nothing of scripts or sockets."""

    name: ProtocolName
    line_end: bytes
    """Line ending of streams."""

    def refusal(self, body: Mapping[str, Any]) -> str:
        """Return why the provider would refuse this body; empty when it would not."""
        ...

    def ask(self, body: Mapping[str, Any], *, size: int) -> Ask:
        """Parse the body. Takes any JSON object."""
        ...

    def whole(self, ask: Ask, answer: ServedAnswer) -> Mapping[str, Any]:
        """The answer as one body, with `TEXT_SLOT` where its text goes."""
        ...

    def events(self, ask: Ask, answer: ServedAnswer) -> Iterator[ServedEvent]:
        """The answer as a stream."""
        ...

    def still_waiting(self, ask: Ask) -> ServedEvent | None:
        """A first event of a stream that keeps a client patient. None: a comment of the stream does."""
        ...

    def failure(
        self, status: int, message: str = "", retry_after: float | None = None
    ) -> DialectFailure:
        """Return an error in the provider's own form."""
        ...

    def error_event(self, status: int, message: str = "") -> ServedEvent:
        """An error inside a stream that had begun well."""
        ...

    def overflow(self) -> DialectFailure:
        """Return the error of a request that exceeds the model's context."""
        ...

    def bad_key(self) -> DialectFailure:
        """Return the provider's own answer to an unknown key."""
        ...


def retry_headers(retry_after: float | None) -> dict[str, str]:
    """Seconds for everybody; a whole number, as the header's grammar wants it."""
    return {} if retry_after is None else {"Retry-After": str(-int(-retry_after // 1))}


def retry_text(retry_after: float | None) -> str:
    return "" if retry_after is None else f" Please retry in {retry_after:g}s."


def marking_last(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Each item, and whether it is the last one. Holds no more than one back."""
    waiting: list[T] = []
    for item in items:
        if waiting:
            yield waiting.pop(), False
        waiting.append(item)
    if waiting:
        yield waiting.pop(), True


_INVALID = "invalid_request_error"
_STATUS: dict[int, tuple[str, str | None, str]] = {
    400: (_INVALID, None, "The request is invalid."),
    401: (_INVALID, "invalid_api_key", "Incorrect API key provided."),
    403: (_INVALID, "permission_denied", "Your key has no access to this model."),
    404: (_INVALID, "model_not_found", "The model does not exist or you do not have access to it."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", "server_error", "The server had an error processing your request."),
    503: ("server_error", "server_is_overloaded", "The server is overloaded."),
    529: ("server_error", "server_is_overloaded", "The server is overloaded."),
}


def failure(status: int, message: str = "", retry_after: float | None = None) -> DialectFailure:
    """The body of an error, with the code that clients look at."""
    kind, code, default = _STATUS.get(status, ("server_error", None, "The request failed."))
    text = message or default + retry_text(retry_after)
    body = error_body(text, kind, code)
    return DialectFailure(status, body, retry_headers(retry_after))


def error_body(
    message: str, kind: str = _INVALID, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def code_of(status: int) -> str:
    """The code of an error that is told inside a stream."""
    return _STATUS.get(status, ("", None, ""))[1] or "server_error"
