"""Usage, and the budgets and quotas that limit it."""

from __future__ import annotations

from typing import Literal

from podium.core.model import FrozenModel, NonEmpty


class Usage(FrozenModel):
    """Tokens, cost and time. Unknown figures are zero, and `complete` is False."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    turns: int = 0
    seconds: float = 0.0
    complete: bool = True

    def plus(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            turns=self.turns + other.turns,
            seconds=self.seconds + other.seconds,
            complete=self.complete and other.complete,
        )


def spent_since(before: Usage, now: Usage) -> Usage:
    """The difference of two sums."""
    return Usage(
        input_tokens=now.input_tokens - before.input_tokens,
        output_tokens=now.output_tokens - before.output_tokens,
        usd=now.usd - before.usd,
        turns=now.turns - before.turns,
        seconds=now.seconds - before.seconds,
        complete=now.complete,
    )


class Budget(FrozenModel):
    """A limit on usage over a scope. None means no limit of that kind."""

    scope: Literal["call", "step", "run", "day"]
    """The limited unit."""
    usd: float | None = None
    """Cost in USD."""
    tokens: int | None = None
    """Input and output tokens together."""
    turns: int | None = None
    """Turns of agents."""
    seconds: float | None = None
    """Time that agents work, in seconds."""


class BudgetState(FrozenModel):
    """A budget and what has been used of it, as read from the store."""

    budget: Budget
    used: Usage = Usage()


class Quota(FrozenModel):
    """A limit to the number of times within a window, over all processes."""

    name: NonEmpty
    limit: int
    seconds: float


class QuotaState(FrozenModel):
    """A quota and how often it was used within its window."""

    quota: Quota
    used: int
