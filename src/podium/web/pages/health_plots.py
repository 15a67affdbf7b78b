"""Plots as the server draws them: where each bar stands, and what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from podium.usecases.see_costs import Sum

WIDTH, HEIGHT = 720, 200
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 24
GAP = 0.25
"""Of a bar's room that stays empty."""
MOST_BARS = 12
STEPS = (1, 2, 5, 10)
GRID_LINES = 4


@dataclass(frozen=True)
class Bar:
    sum: Sum
    x: float
    y: float
    width: float
    height: float
    label: str = ""
    """What stands beneath it; empty where there is no room."""
    is_over: bool = False
    """It goes beyond the limit."""


@dataclass(frozen=True)
class DayPlot:
    """A bar for each day, lines to read them by, and the limit of a day."""

    bars: tuple[Bar, ...]
    lines: tuple[tuple[float, float], ...]
    """Height on the picture, and dollars."""
    limit_y: float | None = None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


@dataclass(frozen=True)
class RankedBar:
    """One of a list of bars that lie side by side, as wide as its share of the greatest."""

    sum: Sum
    percent: float


def day_plot(days: Sequence[Sum], limit_usd: float | None) -> DayPlot:
    top = _round_up(max([limit_usd or 0.0, *(each.usd for each in days)]))
    room, ground = (WIDTH - LEFT - RIGHT) / max(1, len(days)), HEIGHT - BOTTOM
    scale = (ground - TOP) / top

    def bar(number: int, day: Sum) -> Bar:
        height = day.usd * scale
        is_labelled = (len(days) - 1 - number) % 7 == 0
        return Bar(
            sum=day,
            x=round(LEFT + room * (number + GAP / 2), 1),
            y=round(ground - height, 1),
            width=round(room * (1 - GAP), 1),
            height=round(height, 1),
            label=day.name[5:] if is_labelled else "",
            is_over=limit_usd is not None and day.usd > limit_usd,
        )

    steps = (top * step / GRID_LINES for step in range(GRID_LINES + 1))
    return DayPlot(
        bars=tuple(bar(number, day) for number, day in enumerate(days)),
        lines=tuple((round(ground - usd * scale, 1), usd) for usd in steps),
        limit_y=None if limit_usd is None else round(ground - limit_usd * scale, 1),
    )


def ranked(sums: Sequence[Sum]) -> tuple[RankedBar, ...]:
    """The dearest, by dollars; by tokens where nothing cost any."""
    by_usd = any(each.usd for each in sums)
    figures = [each.usd if by_usd else float(each.tokens) for each in sums[:MOST_BARS]]
    top = max(figures, default=0.0) or 1.0
    return tuple(
        RankedBar(each, round(100 * figure / top, 1))
        for each, figure in zip(sums, figures, strict=False)
    )


def _round_up(usd: float) -> float:
    """The next figure that is easily read: 1, 2 or 5 with zeros."""
    if usd <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(usd))
    return next(step * power for step in STEPS if step * power >= usd)
