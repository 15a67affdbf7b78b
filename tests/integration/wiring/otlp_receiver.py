"""A real OTLP/HTTP receiver on loopback: takes what is posted and decodes it with the published messages."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Receiver:
    """Requests received. `status` is the response to the next posts."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.paths: list[str] = []
        self.raw = b""
        self.status = 200
        self.held = threading.Event()
        """While not set, posts are not answered."""
        self.held.set()
        self.url = ""

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, str | int]:
        return attributes(self.requests[0].resource_spans[0].resource.attributes)

    def named(self) -> dict[str, Span]:
        return {span.name: span for span in self.spans}


def attributes(pairs: Iterable[KeyValue]) -> dict[str, str | int]:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> str | int:
    kind = pair.value.WhichOneof("value")
    found: str | int = getattr(pair.value, kind or "string_value")
    return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens while open."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.held.wait(120)
            receiver.paths.append(self.path)
            if receiver.status == 200:
                receiver.raw += body
                receiver.requests.append(ExportTraceServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(receiver.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        receiver.held.set()
        server.shutdown()
        thread.join()
        server.server_close()
