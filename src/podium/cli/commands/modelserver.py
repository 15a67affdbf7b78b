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
    from podium.testing.modelserver.relay import Exchange, Relay

app = command_app()

KEY_VARIABLE = "PODIUM_MODELSERVER_KEY"


@app.command()
def modelserver(
    context: typer.Context,
    script: Annotated[
        Path | None, typer.Option("--script", metavar="FILE", help="Answer as this file says.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", metavar="FILE", help="Hand requests on, and add the answers to this file."
        ),
    ] = None,
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="Where --record hands them to; NAME=URL for one of gemini, openai, anthropic.",
        ),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Answer from a recorded file.")
    ] = None,
    by_hand: Annotated[
        bool,
        typer.Option(
            "--by-hand", help="Show each request and wait for the answer of a person or a program."
        ),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="With --by-hand: where requests are written and answers awaited. "
            "Without it: a new folder for temporary files.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.001,
            help="With --by-hand: fail a request that nobody has answered by then. "
            "Without it: wait until the client leaves.",
        ),
    ] = None,
    paced: Annotated[
        bool, typer.Option("--paced", help="Replay as slowly as it was recorded.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: a free one.")] = 0,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            envvar=KEY_VARIABLE,
            help="With --script or --by-hand: refuse clients that bring another key, or none.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Add every request to this file, without keys."),
    ] = None,
) -> None:
    """Stand in for a model provider on this machine, until Ctrl-C.

    Speaks Gemini, OpenAI Responses and Chat, and Anthropic Messages on 127.0.0.1. A script answers
    without spending a token; a recorded file answers as the real provider once did; by hand, each
    request waits on a page and as files until somebody has answered it.

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
            "give one of --script FILE, --record FILE, --replay FILE or --by-hand"
        )
    if (record is None) != (not upstream):
        raise typer.BadParameter("--record and --upstream belong together")
    if not by_hand and (folder is not None or timeout is not None):
        raise typer.BadParameter("--folder and --timeout are for --by-hand; leave them out")
    if key is not None and script is None and not by_hand:
        raise typer.BadParameter(
            f"--key (or {KEY_VARIABLE}) is for --script and --by-hand: --record hands each client's "
            "own key on to the provider, and --replay asks for none; leave it out"
        )
    from podium.testing.modelserver import ModelServer, Script

    told: asyncio.Queue[LoggedRequest | Exchange] = asyncio.Queue()
    # Whoever gave a key has it; it is shown nowhere.
    shown_key: str | None = f'"${KEY_VARIABLE}"' if key is not None else "any-key"
    if by_hand:
        _relay(_Desk(context.obj, shown_key), told, folder, timeout, key=key, port=port, log=log)
        return
    if script is not None:
        read = read_located(script).validated(Script)
        server = ModelServer(read, key=key, port=port, watcher=told.put_nowait)
    elif record is not None:
        upstreams = _upstreams(upstream or [])
        server = ModelServer.recording(upstreams, record, port=port, watcher=told.put_nowait)
        shown_key = None
    else:
        cassette = replay or Path()
        server = ModelServer.replaying(cassette, paced=paced, port=port, watcher=told.put_nowait)
    desk = _Desk(context.obj, shown_key)
    try:
        run_to_end(desk.serve(server, told, log))
    except Interrupted:
        desk.part(server.request_count)


def _relay(
    desk: _Desk,
    told: asyncio.Queue[LoggedRequest | Exchange],
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
        relay = Relay(exchanges, key=key, timeout_seconds=timeout, watcher=told.put_nowait)
        server = ModelServer.by_hand(relay, port=port, watcher=told.put_nowait)
        try:
            run_to_end(desk.serve(server, told, log, relay))
        except Interrupted:
            desk.part(relay.count)


class _Desk:
    """Serves, and tells the person what comes in."""

    def __init__(self, options: Options, shown_key: str | None) -> None:
        self._screen = Screen(json=options.json)
        self._shown_key = shown_key

    async def serve(
        self,
        server: ModelServer,
        told: asyncio.Queue[LoggedRequest | Exchange],
        log: Path | None,
        relay: Relay | None = None,
    ) -> None:
        """Never returns; ends when it is interrupted."""
        from podium.testing.modelserver import LoggedRequest

        # Half a character in a request is written as JSON writes it.
        opened = log.open("a", encoding="utf-8", errors="backslashreplace") if log else None
        with opened or nullcontext() as file:
            async with server:
                self._greet(server.url, relay)
                while True:
                    event = await told.get()
                    if not isinstance(event, LoggedRequest):
                        self._tell_exchange(event)
                    elif relay is None or not relay.is_page(event):
                        self._tell(event, file, by_hand=relay is not None)

    def part(self, requests: int) -> None:
        """Somebody ended it, which is how a server ends when all is well."""
        words = f"podium: ended; {counted(requests, 'request')} came"
        self._screen.answer(
            {"ended": True, "requests": requests}, lambda: self._screen.aside(words)
        )

    def _greet(self, url: str, relay: Relay | None) -> None:
        lines = environment(url, self._shown_key)
        record = {"url": url, "environment": lines, "codex": codex_words(url)}
        if relay is not None:
            record |= {"page": url + relay.page_path, "folder": str(relay.folder)}
        self._screen.answer(record, lambda: self._greet_in_words(url, lines, relay))

    def _greet_in_words(self, url: str, lines: Mapping[str, str], relay: Relay | None) -> None:
        self._screen.line(f"listening on {url}; Ctrl-C ends it")
        for name, value in lines.items():
            self._screen.line(f"  export {name}={value}")
        self._screen.line(f"  codex {codex_words(url)}")
        if relay is not None:
            self._screen.line(f"answer on {url}{relay.page_path}")
            self._screen.line(f"or in {relay.folder}, as NNNN-answer.json or NNNN-answer.md")

    def _tell(self, seen: LoggedRequest, file: TextIO | None, *, by_hand: bool) -> None:
        if file is not None:
            file.write(json.dumps(asdict(seen), ensure_ascii=False) + "\n")
            file.flush()
        if not (by_hand and seen.is_ask):
            self._screen.answer(_record(seen), lambda: self._screen.line(_words(seen)))

    def _tell_exchange(self, exchange: Exchange) -> None:
        """JSON has one line for each request, when it comes: `closed.json` tells the end."""
        if exchange.state == "waiting" or not self._screen.json:
            self._screen.answer(
                _exchange_record(exchange), lambda: self._screen.line(_exchange_words(exchange))
            )


def environment(url: str, key: str | None) -> dict[str, str]:
    """What each client reads. None: the person's own keys stay as they are."""
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


def codex_words(url: str) -> str:
    """codex reads no such variable; a provider of its own is the way."""
    provider = (
        f'{{name="podium", base_url="{url}/v1", env_key="OPENAI_API_KEY", wire_api="responses"}}'
    )
    return f"-c model_provider=podium -c 'model_providers.podium={provider}'"


def _upstreams(given: list[str]) -> str | dict[str, str]:
    named = dict(each.split("=", 1) for each in given if "=" in each.split("://")[0])
    plain = [each for each in given if "=" not in each.split("://")[0]]
    if len(plain) > 1 or (plain and named):
        raise BadInput("give one --upstream URL, or one --upstream NAME=URL for each provider")
    return plain[0] if plain else named


def _exchange_record(exchange: Exchange) -> dict[str, Json]:
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


def _exchange_words(exchange: Exchange) -> str:
    ask = exchange.ask
    if exchange.state != "waiting":
        return f"{exchange.name} {exchange.state}"
    size = f"{ask.input_characters:,} bytes"
    tools = counted(len(ask.tools), "tool")
    waits = f"waiting for {exchange.name}-answer.json"
    return safe_line("  ".join((exchange.name, ask.protocol, ask.model, size, tools, waits)), 200)


def _record(seen: LoggedRequest) -> dict[str, Json]:
    told = asdict(seen)
    return {name: told[name] for name in _TOLD}


_TOLD = (
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


def _words(seen: LoggedRequest) -> str:
    which = seen.rule or ("no rule" if seen.is_ask else "")
    step = f"step {seen.step + 1}" if seen.step is not None and seen.rule else ""
    status = str(seen.status) if seen.status else "line cut"
    words = (seen.method, seen.path, seen.model, which, step, status)
    return safe_line("  ".join(word for word in words if word), 200)
