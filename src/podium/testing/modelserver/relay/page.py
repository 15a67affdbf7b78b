"""The relay's page: which requests wait, what they say, and a form to answer them."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import parse_qs

from podium.testing.modelserver.http_server import Request, Response
from podium.testing.modelserver.relay.exchange import BadAnswer, Exchange

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


class Page:
    """Answers the requests of a browser. Its address holds a secret, as others on the machine can reach it."""

    def __init__(
        self, token: str, waiting: Mapping[int, Exchange], exchanges: Sequence[Exchange]
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
                response, 404, _html("Not found", "<p>Open the address that was printed.</p>")
            )
        elif not name:
            await _send(response, 200, self._list())
        elif (exchange := self._named(name)) is None:
            await _send(response, 404, _html("Not found", '<p><a href="./">All requests</a></p>'))
        elif request.method == "POST":
            await self._take(exchange, request, response)
        else:
            await _send(response, 200, self._detail(exchange))

    def _named(self, name: str) -> Exchange | None:
        return next((exchange for exchange in self._exchanges if exchange.name == name), None)

    async def _take(self, exchange: Exchange, request: Request, response: Response) -> None:
        form = parse_qs(request.body.decode(errors="replace"), max_num_fields=10)
        text, calls = (form.get(name, [""])[0].replace("\r\n", "\n") for name in ("text", "calls"))
        try:
            if exchange.number not in self._waiting:
                raise BadAnswer(f"the request no longer waits: {exchange.state}")
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
        table = (
            f"<table>{head}{''.join(rows)}</table>" if rows else "<p>No request has come yet.</p>"
        )
        return _html(
            f"{len(self._waiting)} waiting",
            table,
            f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">',
        )

    def _detail(
        self, exchange: Exchange, text: str = "", calls: str = "", problem: str = ""
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


def _row(exchange: Exchange) -> str:
    cells = (
        f'<a href="{exchange.name}">{exchange.name}</a>',
        escape(exchange.state),
        escape(exchange.ask.protocol),
        escape(exchange.ask.model[:80]),
        f"{exchange.ask.input_characters:,}",
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _form(exchange: Exchange, text: str, calls: str, problem: str) -> str:
    alert = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    hint = escape('[{"name": "…", "arguments": {}}]')
    # A line break behind <textarea> is not part of what stands in it.
    return (
        f'<form method="post" action="{exchange.name}">{alert}'
        f'<label>Text <textarea name="text" rows="8">\n{escape(text)}</textarea></label>'
        f'<label>Calls, as JSON: {hint} <textarea name="calls" rows="4">\n{escape(calls)}</textarea></label>'
        "<p><button>Send answer</button></p></form>"
    )


def _readable(exchange: Exchange) -> str:
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
