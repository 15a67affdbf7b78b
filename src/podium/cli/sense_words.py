"""A tick and its candidates in words."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from textwrap import wrap

from podium.cli.screen import Screen, counted, is_terminal
from podium.cli.untrusted import shown_line
from podium.domain.sensing import CandidateStanding, TickOutcome
from podium.flows.sense import SenseOptions

INDENT = 12
"""Where the values of a report begin."""
MOST_LINES = 12
"""Of one kind; the logs have all of them."""


def tell_tick(screen: Screen, outcome: TickOutcome, options: SenseOptions) -> None:
    """What was sensed, what was planned, what became of it, and what to do next."""
    _part(screen, "tick", [f"{outcome.tick}, mode {outcome.mode}, {outcome.seconds:.1f} s"])
    _part(screen, "sensed", [_counts(outcome)])
    _part(screen, "missing", outcome.missing)
    _part(screen, "planner", [_planner(outcome)])
    _part(screen, "changed", outcome.plan_changes)
    _part(screen, "notices", outcome.notices)
    _part(
        screen,
        "skipped",
        [f"item {each.index}: {each.reason}" for each in outcome.skipped_items],
    )
    _part(screen, "so far", [_so_far(outcome)])
    for each in outcome.candidates:
        screen.line()
        tell_candidate(screen, each, options)
    screen.line()
    screen.line(outcome.summary())


def tell_candidate(screen: Screen, standing: CandidateStanding, options: SenseOptions) -> None:
    """Where a candidate stands, and the next commands."""
    screen.line(f"{standing.state:<{INDENT}}{standing.wo_id}")
    about = f"{standing.target}: {standing.title}" if standing.target else standing.title
    for line in (about, weight_words(standing), why_words(standing)):
        _folded(screen, "", line)
    for command in next_commands(standing, options):
        screen.line(f"{'':{INDENT}}{shown_line(command)}")


def weight_words(standing: CandidateStanding) -> str:
    """Tier and zones, as the gate weighed them."""
    if not standing.tier:
        return ""
    return f"{standing.tier} in {', '.join(standing.zones) or 'no zone'}"


def why_words(standing: CandidateStanding) -> str:
    # What these wait for is said by the next commands.
    told = standing.state == "approved" or _asks(standing)
    return "" if told else standing.why


def _asks(standing: CandidateStanding) -> bool:
    return standing.state == "waiting" and standing.why.startswith("waits for approval:")


def next_commands(standing: CandidateStanding, options: SenseOptions) -> Iterator[str]:
    """What a person can do now, a line each."""
    wo_id, layout = standing.wo_id, options.layout
    match standing.state:
        case "waiting" if _asks(standing):
            yield f"podium deploy {wo_id}"
            yield f'podium reject {wo_id} --why "…"'
        case "waiting":
            yield f"podium show {standing.run_id}"
        case "approved":
            yield f"mv {layout.candidates}/{wo_id}.yaml {layout.inbox}/"
        case "delivered":
            yield f"in {standing.file}; podium worker performs it"
        case "logged":
            yield f"podium candidates show {wo_id}"
        case _:
            return


def _part(screen: Screen, name: str, lines: Sequence[str]) -> None:
    for number, line in enumerate(lines[:MOST_LINES]):
        _folded(screen, "" if number else name, line)
    if (more := len(lines) - MOST_LINES) > 0:
        screen.line(f"{'':<{INDENT}}and {more} more")


def _folded(screen: Screen, name: str, line: str) -> None:
    """A value beside its name; on a terminal folded between words."""
    width = shutil.get_terminal_size().columns - INDENT if is_terminal() else 0
    shown = shown_line(line)
    parts = wrap(shown, max(40, width), break_on_hyphens=False) if width else [shown]
    for number, part in enumerate(parts):
        screen.line(f"{'' if number else name:<{INDENT}}{part}")


def _counts(outcome: TickOutcome) -> str:
    return ", ".join(f"{name} {count}" for name, count in outcome.counts.items()) or "nothing"


def _planner(outcome: TickOutcome) -> str:
    if outcome.status == "SKIPPED":
        return f"SKIPPED: {outcome.why or 'nothing has changed, so nobody was asked'}"
    why = f": {outcome.why}" if outcome.why else ""
    return f"{outcome.planner or 'none'} {outcome.status}{why}"


def _so_far(outcome: TickOutcome) -> str:
    ticks, idle = counted(outcome.tick, "tick"), outcome.idle_ticks
    return f"{ticks}, {idle} of them idle; {counted(outcome.tokens, 'token')}"
