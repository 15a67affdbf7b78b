"""A gateway on loopback that takes text messages the way Twilio does."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

ACCOUNT = "AC0123456789"
TOKEN = "token-for-tests"


@dataclass
class Gateway:
    """Loopback gateway for text messages: its answers, and the messages it took, one per idempotency key."""

    url: str = ""
    answer: tuple[int, bytes] | None = None
    """None: take the message."""
    fate: dict[str, Any] = field(default_factory=dict)
    """What is different about the message that it says it took."""
    hang_up: bool = False
    silent: bool = False
    """Say nothing until the client hangs up."""
    was_left: bool = False
    """Whether the client hung up on its silence."""
    asked: list[dict[str, str]] = field(default_factory=list)
    taken: dict[str, dict[str, str]] = field(default_factory=dict)


@contextmanager
def sms_gateway() -> Iterator[Gateway]:
    gateway = Gateway()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(gateway))
    gateway.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield gateway
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            gateway.asked.append({"path": self.path, **form})
            if gateway.silent:
                gateway.was_left = self.rfile.read(1) == b""
                return
            if gateway.hang_up:
                return
            status, answer = gateway.answer or self._judged(form)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _judged(self, form: dict[str, str]) -> tuple[int, bytes]:
            login = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
            if self.headers["Authorization"] != f"Basic {login}":
                return 401, _error(20003, "Authenticate", 401)
            if form["To"] == "+61400000000":
                return 400, _error(21211, "The 'To' number is not a valid phone number.", 400)
            gateway.taken.setdefault(self.headers["Idempotency-Key"], form)
            number = list(gateway.taken).index(self.headers["Idempotency-Key"])
            message = {"sid": f"SM{number:032}", "status": "queued", "num_segments": "1"}
            shown = {**message, "price": None, "price_unit": "USD", "error_code": None}
            return 201, json.dumps({**shown, **gateway.fate}).encode()

        def log_message(self, format: str, *args: Any) -> None:
            """Not to the terminal."""

    return Handler


def _error(code: int, message: str, status: int) -> bytes:
    more = f"https://www.twilio.com/docs/errors/{code}"
    payload = {"code": code, "message": message, "more_info": more, "status": status}
    return json.dumps(payload).encode()
