"""The terms of a run: what its acts are judged under, as it was when the run was started."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from podium.domain.model import Noun
from podium.domain.usage import Budget
from podium.domain.work import Run

Mode = Literal["sensing", "dry-run", "supervised", "autonomous"]

MODES: tuple[Mode, ...] = ("sensing", "dry-run", "supervised", "autonomous")
"""From the strictest to the most trusting."""


class Terms(Noun):
    """What a run records of its settings. Today's settings may tighten it, never loosen it."""

    model_config = ConfigDict(extra="ignore")

    mode: Mode | None = None
    """None: the run recorded none, so today's holds."""
    budgets: tuple[Budget, ...] = ()
    """Limits beside today's: of two, the lower one is reached first."""

    def mode_with(self, today: str) -> str:
        """The stricter of the recorded mode and today's. What is no mode is left to the gate's no."""
        if self.mode is None or today not in MODES:
            return today
        return next(mode for mode in MODES if mode in (self.mode, today))


def terms_of(run: Run | None) -> Terms:
    """The terms a run recorded; of a call outside any run, none."""
    return Terms() if run is None else Terms.model_validate(run.settings)
