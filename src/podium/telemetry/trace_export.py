"""Export of OpenTelemetry traces made from the journal; off unless configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podium.core.errors import BadInput, ToolMissing, UserMustAct
from podium.core.events import Event
from podium.telemetry.event_feed import HostedFollower, HostedRun
from podium.telemetry.run_spans import TRACED_TYPES, SpanMaker

if TYPE_CHECKING:
    from podium.ports import Store
    from podium.telemetry.span_outbox import SpanOutbox


SWITCH = "PODIUM_TRACES"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

CATCH_UP_SECONDS = 5.0
"""Longest wait of closing for the last events to be read."""


def traces_endpoint(environ: Mapping[str, str]) -> str | None:
    """The URL that traces are sent to; None when they are off.

    Raises `UserMustAct` when they are on and cannot be sent as the environment says.
    """
    switch = environ.get(SWITCH, "").strip().lower()
    if switch in ("", "off"):
        return None
    if switch != "on":
        raise BadInput(f"{SWITCH} is {environ[SWITCH]!r}; set it to on or off")
    endpoint = environ.get(TRACES_ENDPOINT, "").strip()
    if not endpoint and (base := environ.get(ENDPOINT, "").strip()):
        endpoint = f"{base.rstrip('/')}/v1/traces"
    if not endpoint:
        raise UserMustAct(
            f"{SWITCH}=on, but no collector is set; set {ENDPOINT} to one such as "
            f"http://127.0.0.1:4318, or {SWITCH}=off"
        )
    _must_be_sendable(endpoint, environ)
    return endpoint


def _must_be_sendable(endpoint: str, environ: Mapping[str, str]) -> None:
    if not endpoint_for_people(endpoint):
        raise BadInput(f"{ENDPOINT} must be an http:// or https:// URL with a host")
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        raise BadInput(
            f"traces are sent as http/protobuf, not {protocol!r}; unset {PROTOCOLS[1]} and give "
            "the collector's HTTP port, usually 4318"
        )


def endpoint_for_people(endpoint: str) -> str:
    """Scheme, host and port: what may be shown of a URL. Empty: it is none that can be used."""
    with suppress(ValueError):
        parts = urlsplit(endpoint)
        if parts.scheme in ("http", "https") and parts.hostname:
            port = f":{parts.port}" if parts.port else ""
            return f"{parts.scheme}://{parts.hostname}{port}"
    return ""


class TraceExport:
    """Sends a trace of every run that this process hosts. Never slows or fails one.

    What cannot be sent in time is dropped and counted.
    """

    @classmethod
    async def open(
        cls,
        store: Store,
        worker_id: str,
        environ: Mapping[str, str],
        redact: Callable[[str], str],
    ) -> TraceExport | None:
        """Begin with the runs taken from now on; None when traces are off.

        Raises `UserMustAct` when they are on and cannot be sent as the environment says.
        """
        endpoint = traces_endpoint(environ)
        if endpoint is None:
            return None
        # Half a second of imports that those without traces do not pay for.
        outbox = await asyncio.to_thread(_open_outbox, endpoint, worker_id, redact)
        maker = SpanMaker()
        take = partial(_send, maker, outbox)
        follower = await HostedFollower.open(
            store, worker_id, TRACED_TYPES, take, name="the export of traces"
        )
        return cls(follower, maker, outbox)

    def __init__(self, follower: HostedFollower, maker: SpanMaker, outbox: SpanOutbox) -> None:
        self._follower = follower
        self._maker = maker
        self._outbox = outbox
        self._unread = ""
        self._following = asyncio.create_task(follower.follow())

    @property
    def dropped(self) -> int:
        """Spans that were not sent."""
        return self._outbox.dropped

    @property
    def problems(self) -> tuple[str, ...]:
        """The missing parts of the traces, and the reasons. Complete once this is closed."""
        unread = (f"the last events are missing in traces: {self._unread}",) if self._unread else ()
        return (*self._follower.problems, *unread, *self._outbox.problems)

    async def close(self) -> None:
        """Send what is left, for some seconds at most. Call it when nothing is hosted any more."""
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await self._follower.catch_up()
        except Exception as error:  # a store that is away; the run is not to suffer for its trace
            self._unread = f"{type(error).__name__}: {error}".removesuffix(": ")
        for span in self._maker.close():
            self._outbox.put(span)
        await asyncio.to_thread(self._outbox.close)


def _open_outbox(endpoint: str, worker_id: str, redact: Callable[[str], str]) -> SpanOutbox:
    try:
        from podium.telemetry.span_outbox import SpanOutbox
    except ImportError as error:
        raise ToolMissing(
            f"{SWITCH}=on needs OpenTelemetry, but {error.name or 'a part of it'} is not installed; "
            f"install it with `pip install 'podium[otel]'`, or set {SWITCH}=off"
        ) from error
    return SpanOutbox(endpoint, worker_id, redact, endpoint_text=endpoint_for_people(endpoint))


def _send(maker: SpanMaker, outbox: SpanOutbox, event: Event, run: HostedRun) -> None:
    for span in maker.take(event, run):
        outbox.put(span)
