"""Outbox of spans: sent by OTLP over HTTP from a thread, through a bounded queue."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

import podium
from podium.telemetry.span_model import FinishedSpan, SpanRef

MAX_WAITING = 4096
"""Spans that may wait to be sent; more are dropped."""

MAX_AT_ONCE = 512
GATHER_SECONDS = 1.0
"""Seconds for which spans are gathered before they are sent together."""

SEND_SECONDS = 5.0
"""Longest time of one sending, other tries included."""

CLOSE_SECONDS = 5.0
"""Longest wait of closing for what is left."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SpanOutbox(SpanProcessor):
    """Takes finished spans, and sends them when it can. `put` returns at once."""

    def __init__(
        self, endpoint: str, worker_id: str, redact: Callable[[str], str], *, endpoint_text: str
    ) -> None:
        """`shown` is what of the endpoint may stand in messages."""
        self._endpoint_text = endpoint_text
        self._reasons = _ExporterLog(redact, _secret_parts(endpoint))
        self._exporter: SpanExporter = OTLPSpanExporter(endpoint=endpoint, timeout=SEND_SECONDS)
        self._ids = _FixedIds()
        self._provider = TracerProvider(
            resource=_resource(worker_id),
            sampler=ALWAYS_ON,
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(self)
        self._tracer = self._provider.get_tracer("podium", podium.__version__)
        self._waiting: deque[ReadableSpan] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self.dropped = 0
        """Spans that were not sent."""
        self._thread = threading.Thread(target=self._serve, name="podium-traces", daemon=True)
        self._thread.start()

    @property
    def problems(self) -> tuple[str, ...]:
        """The number of missing spans, and the reason."""
        if not self.dropped:
            return ()
        why = f" ({self._reasons.latest})" if self._reasons.latest else ""
        spans = "1 span" if self.dropped == 1 else f"{self.dropped} spans"
        return (f"{spans} could not be sent to {self._endpoint_text}{why}",)

    def put(self, span: FinishedSpan) -> None:
        """Leave a span to be sent. Call it from one thread."""
        self._ids.ref = span.ref
        made = self._tracer.start_span(
            span.name,
            set_span_in_context(NonRecordingSpan(_context(span.parent))) if span.parent else None,
            attributes=span.attributes,
            links=[Link(_context(link)) for link in span.links],
            start_time=_nanoseconds(span.start),
        )
        if span.error:
            made.set_attribute("error.type", span.error)
            made.set_status(StatusCode.ERROR)
        made.end(_nanoseconds(max(span.start, span.end)))

    def on_end(self, span: ReadableSpan) -> None:
        with self._changed:
            if len(self._waiting) >= MAX_WAITING or self._closing.is_set():
                self.dropped += 1
                return
            self._waiting.append(span)
            self._changed.notify()

    def close(self) -> None:
        """Send what is left, for some seconds at most; the rest is dropped. Blocks meanwhile."""
        self._closing.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)
        with self._changed:
            self.dropped += len(self._waiting)
            self._waiting.clear()
        self._exporter.shutdown()  # ends its wait before another try
        self._thread.join(CLOSE_SECONDS)
        self._reasons.close()

    def _serve(self) -> None:
        while batch := self._next_batch():
            try:
                sent = self._exporter.export(batch) is SpanExportResult.SUCCESS
            except Exception:
                # An exporter promises not to raise; a run must not depend on that.
                sent = False
            if not sent:
                with self._changed:
                    self.dropped += len(batch)

    def _next_batch(self) -> list[ReadableSpan]:
        """Spans to be sent together. Empty: it is closed, and none are left."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing.is_set())
        self._closing.wait(GATHER_SECONDS)
        with self._changed:
            count = min(len(self._waiting), MAX_AT_ONCE)
            return [self._waiting.popleft() for _ in range(count)]


class _FixedIds(IdGenerator):
    """Gives the ids that the next span is to have."""

    ref = SpanRef(1, 1)

    def generate_span_id(self) -> int:
        return self.ref.span_id

    def generate_trace_id(self) -> int:
        return self.ref.trace_id


class _ExporterLog(logging.Handler):
    """Keeps what the exporter said last, instead of having it in the midst of people's output."""

    def __init__(self, redact: Callable[[str], str], hidden: Sequence[str]) -> None:
        super().__init__(logging.WARNING)
        self._redact = redact
        self._hidden = hidden
        self._logger = logging.getLogger("opentelemetry.exporter.otlp.proto.http")
        self._propagated, self._logger.propagate = self._logger.propagate, False
        self._logger.addHandler(self)
        self._messages: dict[int, str] = {}

    @property
    def latest(self) -> str:
        """The last warning and the last error: the one says what happened, the other what follows."""
        return "; ".join(self._messages[level] for level in sorted(self._messages))

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        for part in self._hidden:
            text = text.replace(part, "…")
        self._messages[record.levelno] = self._redact(text)[:200]

    def close(self) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated
        super().close()


def _secret_parts(endpoint: str) -> list[str]:
    """Parts of a URL that may hold a key, longest first: everything but scheme, host and port."""
    parts = urlsplit(endpoint)
    candidates = (parts.username, parts.password, parts.path, parts.query)
    return sorted(
        (part for part in candidates if part and part != "/v1/traces"), key=len, reverse=True
    )


def _resource(worker_id: str) -> Resource:
    """The source of the spans. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` go before."""
    own: dict[str, str | int] = {
        "service.name": "podium",
        "service.version": podium.__version__,
        "service.instance.id": worker_id,
        "host.name": socket.gethostname(),
        "process.pid": os.getpid(),
    }
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})


def _context(span_ref: SpanRef) -> SpanContext:
    return SpanContext(
        span_ref.trace_id,
        span_ref.span_id,
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _nanoseconds(timestamp: datetime) -> int:
    return (timestamp - _EPOCH) // timedelta(microseconds=1) * 1000
