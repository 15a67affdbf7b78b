"""Relay: writes each request down, waits for its answer in the folder or on its page, and sends that in the protocol that asked."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from podium.testing.modelserver.dialects import Dialect
from podium.testing.modelserver.http_server import Gone, Request, Response
from podium.testing.modelserver.messages import Ask, ServedAnswer, ServedEvent, filled
from podium.testing.modelserver.playback import JSON, STREAM, event_bytes, send_failure
from podium.testing.modelserver.provider import Provider
from podium.testing.modelserver.relay.exchange import (
    BadAnswer,
    ExchangeFolder,
    RelayExchange,
    State,
    write_request,
)
from podium.testing.modelserver.relay.transcript import (
    Heading,
    RelayEntry,
    RelayTranscript,
    readable,
)
from podium.testing.modelserver.request_log import LoggedRequest, secrets_of

REFRESH_SECONDS = 3
PAGE = "/page"
_PREFIX = f"{PAGE}/"
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:1rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}"
    "pre,textarea{font:14px/1.4 ui-monospace,monospace;width:100%;box-sizing:border-box}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f4;padding:.5rem;"
    "max-height:70vh;overflow:auto}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .5rem;"
    "border-bottom:1px solid #bbb}.problem{color:#a40000;font-weight:600}label{display:block}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}pre{background:#222}"
    "a{color:#8ab4f8}.problem{color:#ff8a80}}"
)


class RelayPage:
    """Answers the requests of a browser. Its address holds a secret, as others on the machine can reach it."""

    def __init__(
        self, token: str, waiting: Mapping[int, RelayExchange], exchanges: Sequence[RelayExchange]
    ) -> None:
        self._token = token
        self._waiting = waiting
        self._exchanges = exchanges

    @property
    def path(self) -> str:
        return f"{_PREFIX}{self._token}/"

    def is_meant(self, request: Request) -> bool:
        return request.path.startswith(_PREFIX)

    async def answer(self, request: Request, response: Response) -> None:
        token, _, name = request.path.removeprefix(_PREFIX).partition("/")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            await _send(
                response,
                404,
                _html(
                    "Not found",
                    "<p>Open the address that <code>podium modelserver</code> printed.</p>",
                ),
            )
        elif not name:
            await _send(response, 200, self._list())
        elif (exchange := self._named(name)) is None:
            await _send(response, 404, _html("Not found", '<p><a href="./">All requests</a></p>'))
        elif request.method == "POST":
            await self._take(exchange, request, response)
        else:
            await _send(response, 200, self._detail(exchange))

    def _named(self, name: str) -> RelayExchange | None:
        return next((exchange for exchange in self._exchanges if exchange.name == name), None)

    async def _take(self, exchange: RelayExchange, request: Request, response: Response) -> None:
        form = parse_qs(request.body.decode(errors="replace"), max_num_fields=10)
        text, calls = (form.get(name, [""])[0].replace("\r\n", "\n") for name in ("text", "calls"))
        try:
            if exchange.number not in self._waiting:
                raise BadAnswer(f"the request is no longer waiting: {exchange.state}")
            exchange.write_answer(_answer(text, calls))
        except (BadAnswer, OSError) as problem:
            page = self._detail(exchange, text, calls, str(problem))
            await _send(response, 400, page)
            return
        await response.whole(303, b"", {"Location": self.path, **_HEADERS})

    def _list(self) -> str:
        rows = [_row(exchange) for exchange in reversed(self._exchanges)]
        head = (
            "<tr><th>Request</th><th>State</th><th>Protocol</th><th>Model</th><th>Bytes</th></tr>"
        )
        table = f"<table>{head}{''.join(rows)}</table>" if rows else "<p>No requests yet.</p>"
        return _html(
            f"{len(self._waiting)} waiting",
            table,
            f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">',
        )

    def _detail(
        self, exchange: RelayExchange, text: str = "", calls: str = "", problem: str = ""
    ) -> str:
        waits = exchange.number in self._waiting
        parts = [
            '<p><a href="./">All requests</a></p>',
            f"<p>State: {escape(exchange.state)}</p>",
            _form(exchange, text, calls, problem) if waits or problem else "",
            f"<pre>{escape(_readable(exchange))}</pre>",
        ]
        return _html(f"Request {exchange.name}", "".join(parts))


def _answer(text: str, calls: str) -> Mapping[str, Any]:
    try:
        listed = json.loads(calls) if calls.strip() else []
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"the calls are not valid JSON: {error}") from None
    return {"text": text, "calls": listed}


def _row(exchange: RelayExchange) -> str:
    cells = (
        f'<a href="{exchange.name}">{exchange.name}</a>',
        escape(exchange.state),
        escape(exchange.ask.protocol),
        escape(exchange.ask.model[:80]),
        f"{exchange.ask.input_characters:,}",
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _form(exchange: RelayExchange, text: str, calls: str, problem: str) -> str:
    alert = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    hint = escape('[{"name": "…", "arguments": {}}]')
    # A line break behind <textarea> is not part of what stands in it.
    return (
        f'<form method="post" action="{exchange.name}">{alert}'
        f'<label>Text <textarea name="text" rows="8">\n{escape(text)}</textarea></label>'
        f'<label>Calls, as JSON: {hint} <textarea name="calls" rows="4">\n{escape(calls)}</textarea></label>'
        "<p><button>Send answer</button></p></form>"
    )


def _readable(exchange: RelayExchange) -> str:
    try:
        return exchange.path("request.md").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"{exchange.path('request.md').name} cannot be read: {error.strerror}"


def _html(title: str, content: str, head: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)} · model relay</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{content}</body></html>"
    )


async def _send(response: Response, status: int, page: str) -> None:
    body = page.encode(errors="replace")
    await response.whole(status, body, _HEADERS)


POLL_SECONDS = 0.1
KEEP_ALIVE_SECONDS = 10.0
MAX_EXCHANGES = 200
MAX_CONVERSATIONS = 50
SECRET_CHARACTERS = 16
"""Shorter values are no keys of a provider, and occur in ordinary texts."""
LOGGED_HEADERS = (
    "user-agent",
    "content-type",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
)

Watcher = Callable[[RelayExchange], None]


class _NoAnswer(Exception):
    """Nobody answered. `state` says why."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.state: State = state


class Relay:
    """Answers requests with what a person or program writes into the folder or on the page."""

    def __init__(
        self,
        folder: ExchangeFolder,
        *,
        key: str | None = None,
        models: Sequence[str] = ("model-by-hand",),
        timeout_seconds: float | None = None,
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
        watcher: Watcher | None = None,
    ) -> None:
        """`watcher` is told of each exchange when it begins to wait and when it is closed.

        `key` is the only one accepted; None: any, or none at all.
        """
        self._provider = Provider(self, key=key, models=models)
        self._folder = folder
        self._timeout_seconds = timeout_seconds
        self._keep_alive_seconds = keep_alive_seconds
        self._watcher = watcher
        self.count = 0
        """Number of requests so far."""
        self._exchanges: deque[RelayExchange] = deque(maxlen=MAX_EXCHANGES)
        self._waiting: dict[int, RelayExchange] = {}
        self._bodies: dict[bytes, int] = {}
        self._conversations: deque[tuple[int, tuple[int, ...]]] = deque(maxlen=MAX_CONVERSATIONS)
        self._page = RelayPage(secrets.token_urlsafe(24), self._waiting, self._exchanges)

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def page_path(self) -> str:
        """Return the page's path. It is secret: it gives access to every request."""
        return self._page.path

    def is_page(self, logged: LoggedRequest) -> bool:
        """Check if the request is for the page, not for the model."""
        return logged.path == PAGE

    async def answer(
        self, request: Request, response: Response, gone: Gone, logged: LoggedRequest
    ) -> None:
        if not self._page.is_meant(request):
            await self._provider.answer(request, response, gone, logged)
            return
        logged.path, logged.headers, logged.body = PAGE, {}, None
        await self._page.answer(request, response)

    async def play(
        self,
        dialect: Dialect,
        request: Request,
        response: Response,
        gone: Gone,
        logged: LoggedRequest,
    ) -> None:
        ask = dialect.ask(logged.body, size=logged.size)
        logged.describe(ask)
        line = _Line(dialect, ask, response)
        try:
            exchange = self._begin(request, ask, logged)
        except RecursionError:
            await line.fail(400, "the request is nested too deeply to be shown")
            return
        except OSError as error:
            message = f"the request cannot be written to {self._folder.path}: {error.strerror}"
            await line.fail(500, message)
            return
        state: State = "server ended"
        try:
            await line.send(await self._answer(exchange, line, gone))
            state = "answered"
        except _NoAnswer as none:
            state = none.state
            if state == "timed out":
                message = (
                    f"request {exchange.name} was not answered within {self._timeout_seconds:g} s"
                )
                await line.fail(504, message)
            else:
                response.drop()
        except ConnectionError:
            state = "client left"
            raise
        finally:
            self._close(exchange, state)

    def _begin(self, request: Request, ask: Ask, logged: LoggedRequest) -> RelayExchange:
        digest = hashlib.sha256(request.body).digest()
        exchange = self._folder.begin(ask, self._bodies.get(digest))
        transcript = RelayTranscript.of(logged.body, ask)
        earlier, common = self._longest_common(transcript.entries)
        heading = Heading(
            exchange.name,
            ask,
            user_agent=request.headers.get("user-agent", ""),
            same_as=exchange.same_as,
            common_entries=common,
            earlier=earlier,
        )
        keys = [key for key in secrets_of(request) if len(key) >= SECRET_CHARACTERS]
        raw = _without(keys, _raw(exchange, logged))
        write_request(exchange, raw, _without(keys, readable(heading, transcript)))
        self._bodies.setdefault(digest, exchange.number)
        self._conversations.append((exchange.number, tuple(map(hash, transcript.entries))))
        self.count += 1
        self._exchanges.append(exchange)
        self._waiting[exchange.number] = exchange
        self._notify(exchange)
        return exchange

    def _longest_common(self, entries: tuple[RelayEntry, ...]) -> tuple[int | None, int]:
        """The request with the longest beginning in common, and how many entries that has."""
        hashes = tuple(map(hash, entries))
        best: tuple[int | None, int] = (None, 0)
        for number, earlier in self._conversations:
            same = _common(earlier, hashes)
            if same == len(earlier) and best[1] < same < len(hashes):
                best = (number, same)
        return best

    async def _answer(self, exchange: RelayExchange, line: _Line, gone: Gone) -> ServedAnswer:
        """Wait for the answer. Raises `_NoAnswer` and `ConnectionError`."""
        loop = asyncio.get_running_loop()
        ends = None if self._timeout_seconds is None else loop.time() + self._timeout_seconds
        answered, left = asyncio.ensure_future(_read(exchange)), asyncio.ensure_future(gone())
        try:
            while True:
                rest = self._keep_alive_seconds if ends is None else ends - loop.time()
                await asyncio.wait(
                    (answered, left),
                    timeout=max(0.0, min(rest, self._keep_alive_seconds)),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if answered.done():
                    return answered.result()
                if left.done():
                    raise _NoAnswer("client left")
                if ends is not None and loop.time() >= ends:
                    raise _NoAnswer("timed out")
                await line.keep_alive()
        finally:
            answered.cancel()
            left.cancel()
            await asyncio.gather(answered, left, return_exceptions=True)

    def _close(self, exchange: RelayExchange, state: State) -> None:
        self._waiting.pop(exchange.number, None)
        exchange.close(state)
        self._notify(exchange)

    def _notify(self, exchange: RelayExchange) -> None:
        if self._watcher is not None:
            self._watcher(copy(exchange))  # as it is now: it may be read later


class _Line:
    """The way back to one client, quiet or begun."""

    def __init__(self, dialect: Dialect, ask: Ask, response: Response) -> None:
        self._dialect = dialect
        self._ask = ask
        self._response = response
        self._streams = ask.streamed and ask.event_stream
        self._begun = False

    async def keep_alive(self) -> None:
        """Send what changes nothing: an event, a comment of a stream, white space before JSON."""
        if not self._begun:
            self._begun = True
            await self._response.start(200, STREAM if self._streams else JSON)
        event = self._dialect.still_waiting(self._ask) if self._streams else None
        if event is not None:
            await self._send_event(event)
        else:
            end = self._dialect.line_end
            await self._response.send(b": waiting" + end * 2 if self._streams else b" ")

    async def send(self, answer: ServedAnswer) -> None:
        if not self._streams:
            await self._send_whole(answer)
            return
        if not self._begun:
            await self._response.start(200, STREAM)
        for event in self._dialect.events(self._ask, answer):
            await self._send_event(event)
        await self._response.finish()

    async def fail(self, status: int, message: str) -> None:
        if not self._begun:
            await send_failure(self._response, self._dialect.failure(status, message))
        elif self._streams:
            await self._send_event(self._dialect.error_event(status, message))
            await self._response.finish()
        else:
            # The status is sent already; half a body is understood by every client.
            self._response.drop()

    async def _send_event(self, event: ServedEvent) -> None:
        for part in event_bytes(event, self._dialect.line_end):
            await self._response.send(part)

    async def _send_whole(self, answer: ServedAnswer) -> None:
        body = b"".join(filled(self._dialect.whole(self._ask, answer), answer.text))
        if self._ask.streamed:
            body = b"[" + body + b"]"
        if not self._begun:
            await self._response.whole(200, body, JSON)
        else:
            await self._response.send(body)
            await self._response.finish()


async def _read(exchange: RelayExchange) -> ServedAnswer:
    # Files of other programs give no sign that could be waited for.
    while (answer := exchange.read_answer()) is None:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)
    return answer


def _raw(exchange: RelayExchange, logged: LoggedRequest) -> str:
    headers = {name: logged.headers[name] for name in LOGGED_HEADERS if name in logged.headers}
    request: dict[str, Any] = {
        "number": exchange.number,
        "method": logged.method,
        "path": logged.path,
        "headers": headers,
        "protocol": logged.protocol,
        "model": logged.model,
        "streamed": logged.streamed,
        "size": logged.size,
        "same_as": exchange.same_as,
        "body": logged.body,
    }
    return json.dumps(request, ensure_ascii=False, indent=1)


def _without(keys: list[str], text: str) -> str:
    for key in keys:
        text = text.replace(key, "[key]")
    return text


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return next(
        (at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other))
    )
