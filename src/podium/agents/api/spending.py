"""What a turn has used so far, and whether it may use more."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from podium.agents.pricing import cost_of
from podium.domain.asking import TurnLimits
from podium.domain.errors import BudgetSpent
from podium.domain.gating import Usage, spent_since
from podium.ports import Clock

MOST_REQUESTS = 50
"""How often the model is asked in one turn that says nothing of it."""


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
            f"nobody knows the price of model {self._model!r}, so the limit of "
            f"{self._limits.usd:g} USD was not kept",
        )

    def begin_request(self) -> None:
        """Count a request of the loop. Raises `BudgetSpent` when the turn has had all of them."""
        limit = self._limits.turns if self._limits.turns is not None else MOST_REQUESTS
        if self._requests >= limit:
            raise self._spent("turns", "requests", self._requests, limit)
        self._requests += 1

    def add(self, response: ModelResponse) -> None:
        """Count an answer."""
        used = response.usage
        told = not used.unmeasured_requests and bool(used.input_tokens or used.output_tokens)
        self._add(used, told, _price_told(response))

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

    def _add(self, used: RequestUsage, told: bool, price: float | None) -> None:
        if price is None:
            price = _price(self._model, used)
        self._priced = self._priced and price is not None
        self._used = self._used.plus(
            Usage(
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                usd=price or 0.0,
                complete=told and price is not None,
            )
        )

    def _spent(self, measure: str, what: str, used: float, limit: float) -> BudgetSpent:
        return BudgetSpent(
            f"agent {self._agent!r} has used {used:.12g} of {limit:.12g} {what} that one turn may "
            "take; raise the limit of its role or ask for less",
            scope="turn",
            measure=measure,
            used=used,
            limit=limit,
        )


def _price_told(response: ModelResponse) -> float | None:
    """What the provider itself says it cost, as OpenRouter does."""
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
