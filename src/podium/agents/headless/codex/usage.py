"""What a turn of codex has used, and when that is enough."""

from __future__ import annotations

from typing import Any

from podium.agents.pricing import cost_of
from podium.domain.asking import TurnLimits
from podium.domain.errors import BudgetSpent
from podium.domain.gating import Usage

MOST_TOKENS = 10**15
"""What is more than this is no figure."""


class Meter:
    """Counts the exchanges with the model, those of agents inside the agent too."""

    def __init__(self, agent: str, limits: TurnLimits) -> None:
        self._agent = agent
        self._limits = limits
        self._input = 0
        self._cached = 0
        self._output = 0
        self._turns = 0
        self.model = ""
        self.asked = False
        """Whether the question was put: one exchange then counts, even when codex tells of none."""

    @property
    def knows_price(self) -> bool:
        return self._price() is not None

    def count(self, tokens: Any) -> None:
        """Take in one exchange, as codex tells it."""
        last = tokens.get("last") if isinstance(tokens, dict) else None
        found = last if isinstance(last, dict) else {}
        self._input += _number(found, "inputTokens")
        self._cached += _number(found, "cachedInputTokens")
        self._output += _number(found, "outputTokens")
        self._turns += 1

    def must_have_some_left(self) -> None:
        """For when the agent goes on. Raises `BudgetSpent` when a limit of the turn is reached."""
        limits = self._limits
        self._check("turns", self._turns, limits.turns)
        self._check("tokens", self._input + self._output, limits.tokens)
        if limits.usd is not None:
            self._check("usd", self._price() or 0.0, limits.usd)

    def usage(self, seconds: float) -> Usage:
        """All that is known to be used so far."""
        price = self._price()
        is_known = self._turns > 0 and price is not None
        return Usage(
            input_tokens=self._input,
            output_tokens=self._output,
            usd=price or 0.0,
            turns=max(self._turns, int(self.asked)),
            seconds=seconds,
            complete=is_known or not self.asked,
        )

    def _price(self) -> float | None:
        if not self.model:
            return None
        return cost_of(
            self.model,
            input_tokens=self._input,
            output_tokens=self._output,
            cached_tokens=self._cached,
        )

    def _check(self, measure: str, used: float, limit: float | None) -> None:
        if limit is None or used < limit:
            return
        raise BudgetSpent(
            f"agent {self._agent!r} was ended: it has used {used:g} of {limit:g} {measure}",
            scope="step",
            measure=measure,
            used=used,
            limit=limit,
        )


def _number(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value < MOST_TOKENS else 0
