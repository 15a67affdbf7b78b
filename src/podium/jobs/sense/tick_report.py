"""Report of a tick made of numbers and names alone, and its SUMMARY line. Imports no pydantic: an idle tick uses it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from podium.render.text import counted, escaped_line

if TYPE_CHECKING:
    from podium.cli.screen import Screen

INDENT = 12
"""Column at which the values of a report begin."""
MAX_LINES = 12
"""Of one kind; the logs have all of them."""
NOTHING_CHANGED = "nothing changed; the planner was not asked"


def show_sensed(
    screen: Screen, tick: int, mode: str, seconds: float, counts: Mapping[str, int]
) -> None:
    """Number, mode and duration of a tick, and how many things each source has."""
    show_part(screen, "tick", [f"{tick}, mode {mode}, {seconds:.1f} s"])
    sources = ", ".join(f"{name} {count}" for name, count in counts.items())
    show_part(screen, "sensed", [sources or "nothing"])


def show_totals(screen: Screen, ticks: int, idle_ticks: int, tokens: int) -> None:
    """Print the totals of all ticks of the root."""
    line = f"{counted(ticks, 'tick')}, {idle_ticks} of them idle; {counted(tokens, 'token')}"
    show_part(screen, "so far", [line])


def show_part(screen: Screen, name: str, lines: Sequence[str]) -> None:
    """Lines of one kind, the first of them beside its name."""
    for number, line in enumerate(lines[:MAX_LINES]):
        show_value(screen, "" if number else name, line)
    if (more := len(lines) - MAX_LINES) > 0:
        screen.line(f"{'':<{INDENT}}and {more} more")


def show_value(screen: Screen, name: str, line: str) -> None:
    """A value beside its name; on a terminal folded between words."""
    from podium.cli.screen import is_terminal

    width = shutil.get_terminal_size().columns - INDENT if is_terminal() else 0
    text = escaped_line(line)
    parts = wrap(text, max(40, width), break_on_hyphens=False) if width else [text]
    for number, part in enumerate(parts):
        screen.line(f"{'' if number else name:<{INDENT}}{part}")


def summary_line(
    *,
    mode: str,
    tick: int,
    counts: Mapping[str, int],
    idle_ticks: int,
    tokens: int,
    status: str,
    candidates: int = 0,
    skipped: int = 0,
    no_plan: str = "",
    created: Sequence[str] = (),
) -> str:
    """The line without its time. `no_plan` is said only where no plan is not the same as nothing to do."""
    sources = "".join(f"{name}={count}, " for name, count in counts.items())
    unplanned = f"No_Plan={no_plan}, " if no_plan else ""
    return (
        f"SUMMARY Mode={mode}, Tick={tick}, {sources}Candidates={candidates}, Skipped={skipped}, "
        f"Idle_Ticks={idle_ticks}, Tokens={tokens}, {unplanned}GMX_Call_Status={status}, "
        f"WOs_Created={len(created)}, WO_IDs=[{', '.join(created)}]"
    )
