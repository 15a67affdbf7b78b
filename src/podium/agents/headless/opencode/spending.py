"""What a turn of opencode has used, step by step, and whether it may go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.agents.pricing import cost_of
from podium.domain.asking import TurnLimits
from podium.domain.errors import BudgetSpent
from podium.domain.gating import Usage

GOES_ON = "tool-calls"
"""How a step ends that another one follows."""


@dataclass(frozen=True)
class Step:
    """One exchange with the model, as opencode counts it."""

    read: int
    """Cached ones included."""
    written: int
    cached: int
    usd: float

    @classmethod
    def told(cls, tokens: dict[str, Any], cost: object) -> Step:
        found = tokens.get("cache")
        cache: dict[str, Any] = found if isinstance(found, dict) else {}
        cached = _whole(cache.get("read"))
        return cls(
            read=_whole(tokens.get("input")) + cached + _whole(cache.get("write")),
            written=_whole(tokens.get("output")) + _whole(tokens.get("reasoning")),
            cached=cached,
            usd=float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e9 else 0.0,
        )

    def usage(self, model: str) -> Usage:
        """With what the tokens cost, where opencode does not say it."""
        usd: float | None = self.usd
        if not usd and self.read + self.written:
            usd = cost_of(
                model,
                input_tokens=self.read,
                output_tokens=self.written,
                cached_tokens=self.cached,
            )
        return Usage(
            input_tokens=self.read,
            output_tokens=self.written,
            usd=usd or 0.0,
            turns=1,
            complete=usd is not None,
        )


class Spending:
    """Adds up the steps of one turn, those of inner agents among them."""

    def __init__(self, agent: str = "", model: str = "", limits: TurnLimits | None = None) -> None:
        """`model` is what it was told to think with; empty where that is its own choice."""
        self._agent = agent
        self._limits = limits or TurnLimits()
        self._steps: dict[str, Step] = {}
        self.model = model

    @property
    def used(self) -> Usage:
        total, model = Usage(), self.model.rpartition("/")[2]
        for step in self._steps.values():
            total = total.plus(step.usage(model))
        return total

    @property
    def warnings(self) -> tuple[str, ...]:
        if self._limits.usd is None or self.used.complete:
            return ()
        return (
            f"nobody knows the price of model {self.model!r}, so the limit of "
            f"{self._limits.usd:g} USD was not kept",
        )

    def add(self, part: str, step: Step, reason: object) -> None:
        """Count a step by its name. Raises `BudgetSpent` when it would go on beyond a limit."""
        self._steps[part] = step
        if reason == GOES_ON:
            self._must_be_within()

    def _must_be_within(self) -> None:
        used, limits = self.used, self._limits
        reached = [
            ("tokens", used.input_tokens + used.output_tokens, limits.tokens),
            ("usd", used.usd, limits.usd),
            ("turns", used.turns, limits.turns),
        ]
        for measure, amount, limit in reached:
            if limit is not None and amount >= limit:
                raise BudgetSpent(
                    f"agent {self._agent!r} has used {amount:.12g} of {limit:.12g} {measure} that "
                    "one turn may take and is not done; raise the limit of its role or ask for less",
                    scope="step",
                    measure=measure,
                    used=amount,
                    limit=limit,
                )


def _whole(found: object) -> int:
    return int(found) if isinstance(found, int | float) and 0 <= found < 1e15 else 0
