"""`podium modelserver`."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from podium.cli.app import Options, command_app
from podium.cli.context import run_to_end
from podium.cli.screen import Screen
from podium.config.located_yaml import read_located
from podium.core.errors import BadInput, Interrupted
from podium.core.model import Json
from podium.render.text import counted, safe_line

if TYPE_CHECKING:
    from podium.testing.modelserver import LoggedRequest, ModelServer
    from podium.testing.modelserver.relay import Relay, RelayExchange

app = command_app()

KEY_VARIABLE = "PODIUM_MODELSERVER_KEY"


@app.command()
def modelserver(
    context: typer.Context,
    script: Annotated[
        Path | None, typer.Option("--script", metavar="FILE", help="Answer from this script.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Forward requests, and append the answers to this file.",
        ),
    ] = None,
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="Where --record forwards to; NAME=URL for one of gemini, openai, anthropic.",
        ),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Answer from a recorded file.")
    ] = None,
    by_hand: Annotated[
        bool,
        typer.Option(
            "--by-hand", help="Show each request and wait for an answer by a person or a program."
        ),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="With --by-hand: folder for requests and answers. "
            "Default: a new temporary folder.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.001,
            help="With --by-hand: fail a request without an answer after this time. "
            "Default: wait until the client disconnects.",
        ),
    ] = None,
    paced: Annotated[bool, typer.Option("--paced", help="Replay at the recorded speed.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")] = 0,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            envvar=KEY_VARIABLE,
            help="With --script or --by-hand: refuse clients with another key, or none.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="FILE", help="Append every request to this file, without keys."
        ),
    ] = None,
) -> None:
    """Serve a model without a provider: scripted, recorded or replayed, until Ctrl-C.

    Speaks Gemini, OpenAI Responses and Chat, and Anthropic Messages on 127.0.0.1. A script answers
    without spending tokens; a recorded file answers as the real provider did; by hand, each
    request waits on a page and as files until it is answered.

    \b
    Example:
      podium modelserver --script answers.yaml --port 8123
      podium modelserver --record day.jsonl --upstream https://generativelanguage.googleapis.com
      podium modelserver --replay day.jsonl
      podium modelserver --by-hand --folder trial --port 8123
      echo "Good day." > trial/draft && mv trial/draft trial/0001-answer.md
    """
    ways = (script is not None, record is not None, replay is not None, by_hand)
    if sum(ways) != 1:
        raise typer.BadParameter(
            "pass one of --script FILE, --record FILE, --replay FILE or --by-hand"
        )
    if (record is None) != (not upstream):
        raise typer.BadParameter("--record and --upstream must be used together")
    if not by_hand and (folder is not None or timeout is not None):
        raise typer.BadParameter("--folder and --timeout require --by-hand")
    if key is not None and script is None and not by_hand:
        raise typer.BadParameter(
            f"--key (or {KEY_VARIABLE}) requires --script or --by-hand: --record forwards each client's "
            "own key to the provider, and --replay needs none"
        )
    from podium.testing.modelserver import ModelServer, Script

    events: asyncio.Queue[LoggedRequest | RelayExchange] = asyncio.Queue()
    # Whoever gave a key has it; it is shown nowhere.
    printed_key: str | None = f'"${KEY_VARIABLE}"' if key is not None else "any-key"
    if by_hand:
        _relay(
            _Session(context.obj, printed_key), events, folder, timeout, key=key, port=port, log=log
        )
        return
    if script is not None:
        read = read_located(script).validated(Script)
        server = ModelServer(read, key=key, port=port, watcher=events.put_nowait)
    elif record is not None:
        upstreams = _upstreams(upstream or [])
        server = ModelServer.recording(upstreams, record, port=port, watcher=events.put_nowait)
        printed_key = None
    else:
        cassette = replay or Path()
        server = ModelServer.replaying(cassette, paced=paced, port=port, watcher=events.put_nowait)
    session = _Session(context.obj, printed_key)
    try:
        run_to_end(session.serve(server, events, log))
    except Interrupted:
        session.part(server.request_count)


def _relay(
    session: _Session,
    events: asyncio.Queue[LoggedRequest | RelayExchange],
    folder: Path | None,
    timeout: float | None,
    *,
    key: str | None,
    port: int,
    log: Path | None,
) -> None:
    from podium.testing.modelserver import ModelServer
    from podium.testing.modelserver.relay import ExchangeFolder, Relay

    where = folder or Path(tempfile.mkdtemp(prefix="podium-relay-"))
    with ExchangeFolder(where) as exchanges:
        relay = Relay(exchanges, key=key, timeout_seconds=timeout, watcher=events.put_nowait)
        server = ModelServer.by_hand(relay, port=port, watcher=events.put_nowait)
        try:
            run_to_end(session.serve(server, events, log, relay))
        except Interrupted:
            session.part(relay.count)


class _Session:
    """Serves until interrupted, and reports each request."""

    def __init__(self, options: Options, printed_key: str | None) -> None:
        self._screen = Screen(json=options.json)
        self._printed_key = printed_key

    async def serve(
        self,
        server: ModelServer,
        events: asyncio.Queue[LoggedRequest | RelayExchange],
        log: Path | None,
        relay: Relay | None = None,
    ) -> None:
        """Serve until interrupted; never returns."""
        from podium.testing.modelserver import LoggedRequest

        # Half a character in a request is written as JSON writes it.
        opened = log.open("a", encoding="utf-8", errors="backslashreplace") if log else None
        with opened or nullcontext() as file:
            async with server:
                self._greet(server.url, relay)
                while True:
                    event = await events.get()
                    if not isinstance(event, LoggedRequest):
                        self._report_exchange(event)
                    elif relay is None or not relay.is_page(event):
                        self._report(event, file, by_hand=relay is not None)

    def part(self, requests: int) -> None:
        """Report the number of requests on interruption."""
        text = f"podium: stopped after {counted(requests, 'request')}"
        self._screen.answer(
            {"ended": True, "requests": requests}, lambda: self._screen.stderr_line(text)
        )

    def _greet(self, url: str, relay: Relay | None) -> None:
        lines = environment(url, self._printed_key)
        record = {"url": url, "environment": lines, "codex": codex_arguments(url)}
        if relay is not None:
            record |= {"page": url + relay.page_path, "folder": str(relay.folder)}
        self._screen.answer(record, lambda: self._print_greeting(url, lines, relay))

    def _print_greeting(self, url: str, lines: Mapping[str, str], relay: Relay | None) -> None:
        self._screen.line(f"listening on {url}; Ctrl-C stops it")
        for name, value in lines.items():
            self._screen.line(f"  export {name}={value}")
        self._screen.line(f"  codex {codex_arguments(url)}")
        if relay is not None:
            self._screen.line(f"answer at {url}{relay.page_path}")
            self._screen.line(f"or in {relay.folder}, as NNNN-answer.json or NNNN-answer.md")

    def _report(self, request: LoggedRequest, file: TextIO | None, *, by_hand: bool) -> None:
        if file is not None:
            file.write(json.dumps(asdict(request), ensure_ascii=False) + "\n")
            file.flush()
        if not (by_hand and request.is_ask):
            self._screen.answer(_record(request), lambda: self._screen.line(_request_text(request)))

    def _report_exchange(self, exchange: RelayExchange) -> None:
        """Report an exchange. JSON has one line for each request, when it arrives."""
        if exchange.state == "waiting" or not self._screen.json:
            self._screen.answer(
                _exchange_record(exchange), lambda: self._screen.line(_exchange_text(exchange))
            )


def environment(url: str, key: str | None) -> dict[str, str]:
    """Return the variables each client reads. Without a key, the person's own keys stay as they are."""
    urls = {
        "GOOGLE_GEMINI_BASE_URL": url,
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
    }
    if key is None:
        return urls
    return {
        **urls,
        **dict.fromkeys(("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"), key),
    }


def codex_arguments(url: str) -> str:
    """Return arguments that define a provider: codex reads no such variable."""
    provider = (
        f'{{name="podium", base_url="{url}/v1", env_key="OPENAI_API_KEY", wire_api="responses"}}'
    )
    return f"-c model_provider=podium -c 'model_providers.podium={provider}'"


def _upstreams(values: list[str]) -> str | dict[str, str]:
    named = dict(value.split("=", 1) for value in values if "=" in value.split("://")[0])
    plain = [value for value in values if "=" not in value.split("://")[0]]
    if len(plain) > 1 or (plain and named):
        raise BadInput("pass one --upstream URL, or one --upstream NAME=URL per provider")
    return plain[0] if plain else named


def _exchange_record(exchange: RelayExchange) -> dict[str, Json]:
    ask = exchange.ask
    return {
        "number": exchange.number,
        "state": exchange.state,
        "protocol": ask.protocol,
        "model": ask.model,
        "streamed": ask.streamed,
        "size": ask.input_characters,
        "tools": [tool.name for tool in ask.tools],
        "same_as": exchange.same_as,
        "request": str(exchange.path("request.json")),
        "readable": str(exchange.path("request.md")),
        "answer": str(exchange.path("answer.json")),
    }


def _exchange_text(exchange: RelayExchange) -> str:
    ask = exchange.ask
    if exchange.state != "waiting":
        return f"{exchange.name} {exchange.state}"
    size = f"{ask.input_characters:,} bytes"
    tools = counted(len(ask.tools), "tool")
    waits = f"waiting for {exchange.name}-answer.json"
    return safe_line("  ".join((exchange.name, ask.protocol, ask.model, size, tools, waits)), 200)


def _record(request: LoggedRequest) -> dict[str, Json]:
    fields = asdict(request)
    return {name: fields[name] for name in _FIELDS}


_FIELDS = (
    "number",
    "method",
    "path",
    "protocol",
    "model",
    "rule",
    "step",
    "status",
    "streamed",
    "size",
    "has_key",
)


def _request_text(request: LoggedRequest) -> str:
    which = request.rule or ("no rule" if request.is_ask else "")
    step = f"step {request.step + 1}" if request.step is not None and request.rule else ""
    status = str(request.status) if request.status else "line cut"
    parts = (request.method, request.path, request.model, which, step, status)
    return safe_line("  ".join(part for part in parts if part), 200)
