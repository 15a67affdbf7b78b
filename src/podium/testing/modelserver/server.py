"""`ModelServer`: speaks the protocols of the model providers on loopback, with the step of a script that matches each request."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from podium.core.errors import BadInput, TimedOut
from podium.testing.modelserver.dialects import Dialect
from podium.testing.modelserver.http_server import HOST, Gone, HttpListener, Request, Response
from podium.testing.modelserver.messages import Ask
from podium.testing.modelserver.playback import Performance
from podium.testing.modelserver.provider import Provider
from podium.testing.modelserver.request_log import LoggedRequest, RequestLog
from podium.testing.modelserver.script import Script, ScriptRule, ScriptStep

if TYPE_CHECKING:
    from podium.testing.modelserver.relay import Relay


@dataclass(frozen=True)
class Match:
    """The matching step, and the name of its rule in the log."""

    rule: str
    number: int
    """Counted from 0."""
    step: ScriptStep


class Matcher:
    """Finds steps. Its only state is the number of requests per rule with `each_time`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._asked: Counter[str] = Counter()

    def match(self, ask: Ask) -> Match:
        """The step for this request; a step that explains itself where no rule fits."""
        for index, rule in enumerate(self._script.rules):
            if _fits(rule, ask):
                return self._step(rule.name or rule.marker or f"rule {index + 1}", rule, ask)
        if self._script.default is not None:
            return self._step(self._script.default.name or "default", self._script.default, ask)
        return Match("", 0, ScriptStep(text=self._no_rule_text(ask)))

    def _step(self, name: str, rule: ScriptRule, ask: Ask) -> Match:
        number = self._asked[name] if rule.each_time else _answered_steps(rule, ask)
        self._asked[name] += 1
        if number < len(rule.steps):
            return Match(name, number, _quoting(rule, ask, rule.steps[number]))
        last = rule.steps[-1]
        if last.call_count or last.payload is not None:
            # ConversationItem again, a call would keep an agent in a circle for ever.
            last = ScriptStep(
                text=f"The script has no more steps for {name!r} (done: {len(rule.steps)})."
            )
        return Match(name, number, _quoting(rule, ask, last))

    def _no_rule_text(self, ask: Ask) -> str:
        markers = ", ".join(self._script.markers) or "none"
        marker = f"the marker SCRIPT:{ask.marker}" if ask.marker else "no marker SCRIPT:<name>"
        return (
            f"No rule of the model server's script fits this request. It has {marker}, protocol "
            f"{ask.protocol!r}, model {ask.model!r}, and its newest prompt begins {ask.prompt[:80]!r}. "
            f"Markers in the script: {markers}. Add a rule, or a `default`."
        )


def _fits(rule: ScriptRule, ask: Ask) -> bool:
    return (
        (not rule.marker or rule.marker == ask.marker)
        and rule.protocol in (None, ask.protocol)
        and rule.offers_tools in (None, bool(ask.tools))
        and re.search(rule.model, ask.model) is not None
        and re.search(rule.when, ask.prompt) is not None
    )


def _quoting(rule: ScriptRule, ask: Ask, step: ScriptStep) -> ScriptStep:
    """The step with `{{name}}` in its words and payload replaced by what that group of `when` found."""
    match = re.search(rule.when, ask.prompt)
    groups = match.groupdict("") if match else {}
    if not groups:
        return step
    templates = {"text": step.text, "then": step.then, "payload": step.payload}
    return step.model_copy(update=_filled(templates, groups))


def _filled(value: Any, groups: Mapping[str, str]) -> Any:
    """The value with the groups in its texts, however deep. A prompt may hold anything, quotes too."""
    if isinstance(value, str):
        for name, replacement in groups.items():
            value = value.replace(f"{{{{{name}}}}}", replacement)
        return value
    if isinstance(value, list):
        return [_filled(item, groups) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, groups) for key, item in value.items()}
    return value


def _answered_steps(rule: ScriptRule, ask: Ask) -> int:
    """Count the steps that have all their tool results. A repeated request gets the same step."""
    results = ask.results_since_marker() if rule.marker else ask.results_since_prompt()
    for number, step in enumerate(rule.steps):
        needed = max(1, step.call_count)
        if results < needed:
            return number
        results -= needed
    return len(rule.steps) + results


class Scripted:
    """Plays the step of the script that a request is for."""

    def __init__(self, script: Script) -> None:
        self._matcher = Matcher(script)

    async def play(
        self,
        dialect: Dialect,
        request: Request,
        response: Response,
        gone: Gone,
        logged: LoggedRequest,
    ) -> None:
        ask = dialect.ask(logged.body, size=logged.size)
        match = self._matcher.match(ask)
        logged.describe(ask)
        logged.rule, logged.step = match.rule, match.number
        await Performance(match.step, ask, dialect, response, gone).play()


Watcher = Callable[[LoggedRequest], None]


class Source(Protocol):
    """Source of answers: a script, a provider, a cassette, a person."""

    async def answer(
        self, request: Request, response: Response, gone: Gone, logged: LoggedRequest
    ) -> None:
        """Answer, and write down in `seen` what the request was. `gone` waits for the client to leave."""
        ...


class ModelServer:
    """Answers on a loopback port of its own while its `async with` is open."""

    def __init__(
        self,
        script: Script | Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        port: int = 0,
        models: Sequence[str] = ("scripted-model",),
        watcher: Watcher | None = None,
    ) -> None:
        """Play a script. `key` is the only one accepted; None: any, or none at all.

        `watcher` is told of each request once it is answered, also when the line was cut.
        """
        parsed = script if isinstance(script, Script) else Script.model_validate(script or {})
        provider = Provider(Scripted(parsed), key=key, models=models)
        self._open_with(provider, port, watcher)

    @classmethod
    def recording(
        cls,
        upstream: str | Mapping[str, str],
        cassette: Path | str,
        *,
        port: int = 0,
        watcher: Watcher | None = None,
    ) -> Self:
        """Hand requests on to a real provider and add its answers to the cassette, keys left out.

        `upstream` is one URL, or one for each of `gemini`, `openai` and `anthropic`.
        """
        from podium.testing.modelserver.recorder import Recorder

        server = cls.__new__(cls)
        server._open_with(Recorder(upstream, Path(cassette)), port, watcher)
        return server

    @classmethod
    def replaying(
        cls,
        cassette: Path | str,
        *,
        paced: bool = False,
        port: int = 0,
        watcher: Watcher | None = None,
    ) -> Self:
        """Answer from a cassette; `paced`: as slowly as it was recorded. Raises `ConfigInvalid`."""
        from podium.testing.modelserver.recorder import RecordedRole

        server = cls.__new__(cls)
        server._open_with(RecordedRole(Path(cassette), paced=paced), port, watcher)
        return server

    @classmethod
    def by_hand(cls, relay: Relay, *, port: int = 0, watcher: Watcher | None = None) -> Self:
        """Let each request wait for the answer of a person or another program."""
        server = cls.__new__(cls)
        server._open_with(relay, port, watcher)
        return server

    def _open_with(self, source: Source, port: int, watcher: Watcher | None) -> None:
        self._source = source
        self._watcher = watcher
        self._log = RequestLog()
        self._arrived = asyncio.Event()
        self._listener = HttpListener(self._handle)
        self.port = port

    @property
    def url(self) -> str:
        """Without a path: what Gemini and Anthropic clients want. OpenAI's want `/v1` behind it."""
        return f"http://{HOST}:{self.port}"

    @property
    def requests(self) -> list[LoggedRequest]:
        """The newest requests, oldest first. A bounded number; keys are never kept."""
        return list(self._log.requests)

    @property
    def request_count(self) -> int:
        """Count the requests since the start."""
        return self._log.count

    def prompts(self) -> list[str]:
        """The newest prompt of each request that asked the model something."""
        return [logged.prompt for logged in self._log.requests if logged.is_ask]

    async def wait_for_requests(self, count: int, seconds: float = 5.0) -> list[LoggedRequest]:
        """Wait until so many requests have come since the start. Raises `TimedOut`."""
        try:
            async with asyncio.timeout(seconds):
                while self._log.count < count:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise TimedOut(
                f"{self._log.count} of {count} requests came within {seconds:g} seconds"
            ) from None
        return self.requests

    async def __aenter__(self) -> Self:
        """Raises `BadInput` when the port cannot be had."""
        try:
            self.port = await self._listener.open(self.port)
        except OSError as error:
            raise BadInput(
                f"cannot listen on port {self.port}: {error.strerror}; choose another, or omit it for "
                "a free one"
            ) from None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._listener.close()

    async def _handle(self, request: Request, response: Response, gone: Gone) -> None:
        logged = self._log.add(request, _parsed(request.body))
        self._arrived.set()
        try:
            await self._source.answer(request, response, gone, logged)
        finally:
            logged.status = response.status
            if self._watcher is not None:
                self._watcher(logged)


def _parsed(body: bytes) -> Any:
    """The JSON of the body; the beginning of its text if it is none; None for nothing."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body[:1000].decode(errors="replace")
