"""One request to the model and its streamed answer, what it used, and a retry only where nothing can be done twice."""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from podium.agents.api.errors import RequestFailure, error_in, failure_of
from podium.agents.api.settings import Choice, Key
from podium.agents.outcome import cost_of
from podium.core.decisions import Usage, spent_since
from podium.core.errors import BudgetSpent
from podium.core.events import ProgressKind
from podium.core.model import Json, whole_text
from podium.core.turns import TurnLimits
from podium.ports import Clock, HookDoor, Transcript

MAX_REQUESTS = 50
"""Requests to the model in a turn that sets no limit of its own."""


class Spending:
    """Adds up the requests of one turn. What nobody told of makes the sum incomplete."""

    def __init__(self, agent: str, model: str, limits: TurnLimits, clock: Clock) -> None:
        self._agent = agent
        self._model = model
        self._limits = limits
        self._clock = clock
        self._began = clock.monotonic()
        self._requests = 0
        self._used = Usage()
        self._counted = Usage()
        self._priced = True

    @property
    def usage(self) -> Usage:
        own = spent_since(self._counted, self._used)
        return own.plus(Usage(turns=1, seconds=self.seconds))

    @property
    def used(self) -> Usage:
        """By the requests alone."""
        return self._used

    @property
    def seconds(self) -> float:
        return self._clock.monotonic() - self._began

    @property
    def seconds_left(self) -> float | None:
        limit = self._limits.seconds
        return None if limit is None else limit - self.seconds

    @property
    def warnings(self) -> tuple[str, ...]:
        if self._priced or self._limits.usd is None:
            return ()
        return (
            f"the price of model {self._model!r} is unknown, so the limit of "
            f"{self._limits.usd:g} USD was not enforced",
        )

    def begin_request(self) -> None:
        """Count a request of the loop. Raises `BudgetSpent` when the turn has had all of them."""
        limit = self._limits.turns if self._limits.turns is not None else MAX_REQUESTS
        if self._requests >= limit:
            raise self._spent("turns", "requests", self._requests, limit)
        self._requests += 1

    def add(self, response: ModelResponse) -> None:
        """Count an answer."""
        used = response.usage
        is_measured = not used.unmeasured_requests and bool(used.input_tokens or used.output_tokens)
        self._add(used, is_measured, _provider_price(response))

    def add_remembered(self, used: Usage, *, counted: bool) -> None:
        """Count an answer from before, as it was counted then. One that was recorded counts for limits alone."""
        self._priced = self._priced and (used.complete or used.usd > 0)
        self._used = self._used.plus(used)
        if counted:
            self._counted = self._counted.plus(used)

    def check(self) -> None:
        """Raises `BudgetSpent` when the answers so far went beyond a limit."""
        tokens = self._used.input_tokens + self._used.output_tokens
        if self._limits.tokens is not None and tokens > self._limits.tokens:
            raise self._spent("tokens", "tokens", tokens, self._limits.tokens)
        if self._limits.usd is not None and self._used.usd > self._limits.usd:
            raise self._spent("usd", "USD", self._used.usd, self._limits.usd)

    def add_broken(self, used: RequestUsage) -> None:
        """Count what is known of a request that brought no answer."""
        self._add(used, False, None)

    def _add(self, used: RequestUsage, is_measured: bool, price: float | None) -> None:
        if price is None:
            price = _price(self._model, used)
        self._priced = self._priced and price is not None
        self._used = self._used.plus(
            Usage(
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                usd=price or 0.0,
                complete=is_measured and price is not None,
            )
        )

    def _spent(self, measure: str, what: str, used: float, limit: float) -> BudgetSpent:
        return BudgetSpent(
            f"agent {self._agent!r} has used {used:.12g} of {limit:.12g} {what} allowed in one turn; "
            "raise the limit of its role, or ask for less",
            scope="turn",
            measure=measure,
            used=used,
            limit=limit,
        )


def _provider_price(response: ModelResponse) -> float | None:
    """Return the cost as the provider reports it, as OpenRouter does."""
    cost = (response.provider_details or {}).get("cost")
    return float(cost) if isinstance(cost, int | float) and cost >= 0 else None


def _price(model: str, used: RequestUsage) -> float | None:
    """By the list; a reseller's name ends with the maker's own."""
    for name in dict.fromkeys((model, model.rpartition("/")[2].partition(":")[0])):
        price = cost_of(
            name,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.cache_read_tokens,
        )
        if price is not None:
            return price
    return None


MAX_REPEATS = 3
MAX_WAIT_SECONDS = 30.0
FIRST_WAIT_SECONDS = 0.5
MAX_COPY = 1_000_000


@dataclass(frozen=True)
class Pace:
    """The pause between two attempts."""

    sleep: Callable[[float], Awaitable[None]]
    chance: Callable[[], float]
    """A number from 0 to 1, so that many agents do not come back at the same moment."""

    def pause_seconds(self, repeat: int) -> float:
        return FIRST_WAIT_SECONDS * (1 << repeat) * (0.5 + self.chance())


@dataclass(frozen=True)
class _Failed:
    """A sending of a request that brought no answer."""

    failure: RequestFailure
    spoken: bool
    """Something of an answer had come."""
    used: RequestUsage


class Rejected(Exception):
    """The provider found the request itself wrong. Whoever made it may make another."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class ModelExchange:
    """Asks a model. Whoever asks keeps the conversation."""

    def __init__(
        self,
        model: Model,
        choice: Choice,
        key: Key,
        spending: Spending,
        door: HookDoor,
        transcript: Transcript,
        clock: Clock,
        pace: Pace,
    ) -> None:
        self._model = model
        self._choice = choice
        self._settings = model_settings(choice)
        self._key = key
        self._spending = spending
        self._door = door
        self._transcript = transcript
        self._clock = clock
        self._pace = pace

    async def ask(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters
    ) -> ModelResponse:
        """The whole answer. Raises an error of the tree, or `Rejected`."""
        repeat = 0
        while isinstance(answer := await self._attempt(messages, parameters), _Failed):
            failure = answer.failure
            if failure.billed or answer.spoken:
                self._spending.add_broken(answer.used)
            self.note("error", {"kind": type(failure.error).__name__, "said": str(failure.error)})
            pause = self._pause(answer, repeat)
            if pause is None:
                raise Rejected(failure) if failure.rejected else failure.error
            self._door.report_progress("retry", f"{failure.error}; retrying in {pause:.1f} s")
            await self._pace.sleep(pause)
            repeat += 1
        return self._accepted(answer)

    def note(self, kind: str, content: Json) -> None:
        """Keep a line in the transcript."""
        line = json.dumps({kind: content}, ensure_ascii=False, default=str)
        self._transcript.write(self._key.scrub(line))

    async def _attempt(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters
    ) -> ModelResponse | _Failed:
        spoken, used = False, RequestUsage()
        # The library tells of every model that will be taken away one day, in the middle of a turn.
        warnings.filterwarnings("ignore", r"The model '.*' is deprecated", DeprecationWarning)
        try:
            async with model_request_stream(
                self._model,
                messages,
                model_settings=self._settings,
                model_request_parameters=parameters,
                instrument=False,
            ) as stream:
                try:
                    async for event in stream:
                        spoken = True
                        self._notify(event)
                        _forget_copies(stream)
                finally:
                    used = stream.usage
            return _whole(stream.get())
        except Exception as error:
            failure = failure_of(error, self._choice, self._key, self._clock.now())
            return _Failed(failure, spoken, used)

    def _accepted(self, response: ModelResponse) -> ModelResponse:
        self.note("response", transcript_record(response))
        error = error_in(response, self._choice, self._key)
        self._spending.add(response)
        if error is not None:
            raise error
        return response

    def _pause(self, failed: _Failed, repeat: int) -> float | None:
        """Return the seconds to wait before sending it again. None: do not."""
        failure = failed.failure
        if not failure.passing or failed.spoken or repeat == MAX_REPEATS:
            return None
        pause = self._pace.pause_seconds(repeat)
        if failure.retry_at is not None:
            wait_seconds = (failure.retry_at - self._clock.now()).total_seconds()
            pause = max(wait_seconds, 0.0) + pause * 0.1
        elif failure.wants_wait:
            return None
        left = self._spending.seconds_left
        fits = pause <= MAX_WAIT_SECONDS and (left is None or pause < left)
        return pause if fits else None

    def _notify(self, event: ModelResponseStreamEvent) -> None:
        kind, text = _progress(event)
        if text:
            self._door.report_progress(kind, whole_text(text))


def model_settings(choice: Choice) -> ModelSettings:
    """Build the library's settings from the agent's."""
    # The stable beginning of a request is asked to be kept by providers that keep it only when asked.
    settings, library_settings = choice.settings, ModelSettings(cache=True)
    if settings.max_output_tokens is not None:
        library_settings["max_tokens"] = settings.max_output_tokens
    if settings.temperature is not None:
        library_settings["temperature"] = settings.temperature
    if settings.thinking is not None:
        library_settings["thinking"] = settings.thinking
    return library_settings


def _forget_copies(stream: StreamedResponse) -> None:
    """Empty what the library keeps of a long text a second time, to place citations in it.

    It copies all of it for each piece that comes, so that 50 MB would take most of a minute.
    """
    if len(getattr(stream, "_raw_text_content", "")) > MAX_COPY:
        stream._raw_text_content = ""  # type: ignore[attr-defined]
    for run in getattr(stream, "_text_runs", ()):
        if len(run.content) > MAX_COPY:
            run.content = ""


def _whole(response: ModelResponse) -> ModelResponse:
    """The answer without halves of characters, which nobody could write down."""
    return replace(response, parts=[_whole_part(part) for part in response.parts])


def _whole_part(part: ModelResponsePart) -> ModelResponsePart:
    mended: dict[str, Any] = {}
    for name in ("content", "args"):
        value = getattr(part, name, None)
        if (whole := whole_text(value)) != value:
            mended[name] = whole
    return replace(part, **mended) if mended else part


def _progress(event: ModelResponseStreamEvent) -> tuple[ProgressKind, str]:
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return "text", text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return "text", text
        case PartStartEvent(part=ThinkingPart(content=text)):
            return "thinking", text
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)):
            return "thinking", text or ""
    return "note", ""


def transcript_record(response: ModelResponse) -> Json:
    """The answer for the transcript."""
    parts: list[Json] = []
    for part in response.parts:
        record: dict[str, Json] = {"kind": part.part_kind}
        for name in ("content", "tool_name", "args", "tool_call_id"):
            if (value := getattr(part, name, None)) is not None:
                record[name] = value
        parts.append(record)
    used = response.usage
    return {
        "model": response.model_name,
        "finish": response.finish_reason,
        "parts": parts,
        "tokens": {
            "input": used.input_tokens,
            "output": used.output_tokens,
            "cached": used.cache_read_tokens,
        },
    }
