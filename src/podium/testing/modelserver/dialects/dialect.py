"""What every dialect can do, and what an error says when the script does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from podium.testing.modelserver.answer import Answer, Event
from podium.testing.modelserver.ask import Ask
from podium.testing.modelserver.script import ProtocolName

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """An answer that is an error."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    event: Event | None = None
    """What a stream says instead, where the provider tells this error inside of one."""


class Dialect(Protocol):
    """One protocol. Knows nothing of scripts or sockets."""

    name: ProtocolName
    line_end: bytes
    """How a stream ends its lines."""

    def refusal(self, body: Mapping[str, Any]) -> str:
        """What the provider would not take about this body; empty when it would."""
        ...

    def ask(self, body: Mapping[str, Any], *, size: int) -> Ask:
        """What the body asks. Takes any JSON object."""
        ...

    def whole(self, ask: Ask, answer: Answer) -> Mapping[str, Any]:
        """The answer as one body, with `WORDS` where its text goes."""
        ...

    def events(self, ask: Ask, answer: Answer) -> Iterator[Event]:
        """The answer as a stream."""
        ...

    def still_waiting(self, ask: Ask) -> Event | None:
        """A first event of a stream that keeps a client patient. None: a comment of the stream does."""
        ...

    def failure(self, status: int, message: str = "", retry_after: float | None = None) -> Failure:
        """An error as the provider words it."""
        ...

    def error_event(self, status: int, message: str = "") -> Event:
        """An error inside a stream that had begun well."""
        ...

    def overflow(self) -> Failure:
        """The request is longer than the model's context."""
        ...

    def bad_key(self) -> Failure:
        """What the provider itself answers to a key it does not know."""
        ...


def retry_headers(retry_after: float | None) -> dict[str, str]:
    """Seconds for everybody; a whole number, as the header's grammar wants it."""
    return {} if retry_after is None else {"Retry-After": str(-int(-retry_after // 1))}


def wait_words(retry_after: float | None) -> str:
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
