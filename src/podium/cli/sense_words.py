"""A tick and its candidates in words."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from textwrap import wrap

from podium.cli.screen import Screen, is_terminal
from podium.cli.sense_next import Surroundings
from podium.domain.sensing import (
    CandidateStanding,
    PlannerStatus,
    SkippedItem,
    TickOutcome,
    no_operations,
    no_plan,
)
from podium.telling.untrusted import shown_line
from podium.telling.wording import counted

INDENT = 12
"""Where the values of a report begin."""
MOST_LINES = 12
"""Of one kind; the logs have all of them."""
IN_WORDS = "words"
"""The zone of an order that nobody has made operations of."""
WITHOUT_A_MODEL = "`planner: rules` under `flows: sense:` in podium.yaml plans without a model"


def tell_tick(
    screen: Screen, outcome: TickOutcome, around: Surroundings, news: Sequence[str] = ()
) -> None:
    """What was sensed, what was planned, what became of it, and what to do next.

    `news` are lines about what was earned and lost since the last tick.
    """
    _part(screen, "tick", [f"{outcome.tick}, mode {outcome.mode}, {outcome.seconds:.1f} s"])
    _part(screen, "sensed", [_counts(outcome)])
    _part(screen, "missing", outcome.missing)
    _part(screen, "planner", _planner(outcome, around))
    _part(screen, "changed", outcome.plan_changes)
    _part(screen, "notices", outcome.notices)
    _part(
        screen,
        "skipped",
        [
            f"item {each.index}: {each.reason}"
            for each in outcome.skipped_items
            if not _is_told(each)
        ],
    )
    _part(screen, "trust", news)
    _part(screen, "so far", [_so_far(outcome)])
    for each in outcome.candidates:
        screen.line()
        tell_candidate(screen, each, around)
    screen.line()
    screen.line(outcome.summary())


def tell_candidate(screen: Screen, standing: CandidateStanding, around: Surroundings) -> None:
    """Where a candidate stands, and the next commands."""
    screen.line(f"{around.state_of(standing):<{INDENT}}{standing.wo_id}")
    about = f"{standing.target}: {standing.title}" if standing.target else standing.title
    for line in (about, weight_words(standing), why_words(standing, around)):
        if line:
            _folded(screen, "", line)
    for command in next_commands(standing, around):
        screen.line(f"{'':{INDENT}}{shown_line(command)}")


def weight_words(standing: CandidateStanding) -> str:
    """Tier and zones, as the gate weighed them."""
    if not standing.tier:
        return ""
    if standing.zones == (IN_WORDS,):
        cannot = f"; {no_operations(standing)}" if standing.cannot else ""
        return f"{standing.tier}, in words: no operations have been made of it yet{cannot}"
    return f"{standing.tier} in {', '.join(standing.zones) or 'no zone'}"


def why_words(standing: CandidateStanding, around: Surroundings) -> str:
    """Why it stands there, where the next commands do not say so."""
    if ack := around.acks.get(standing.wo_id):
        return ack.error
    if hindrance := around.hindrances.get(standing.wo_id):
        return hindrance
    if people := around.grantors(standing):
        return f"unasked, by the autonomy that {' and '.join(people)} granted"
    told = standing.state == "approved" or _asks(standing)
    return "" if told else standing.why


def _asks(standing: CandidateStanding) -> bool:
    return standing.state == "waiting" and standing.why.startswith("waits for approval:")


def next_commands(standing: CandidateStanding, around: Surroundings) -> Iterator[str]:
    """What a person can do now, a line each. They work where they are shown."""
    wo_id = standing.wo_id
    if wo_id in around.acks:
        yield f"answered in {around.ack_file(wo_id)}"
        return
    match standing.state:
        case "waiting" if _asks(standing):
            yield around.deploy(wo_id)
            yield around.command(f'reject {wo_id} --why "…"')
        case "waiting":
            yield around.command(f"show {standing.run_id}")
        case "approved":
            yield around.move(wo_id)
        case "delivered" if wo_id in around.hindrances:
            yield around.command("runs --status needs_human")
        case "delivered":
            yield f"in {around.place(standing.file)}; {around.command('worker --once')} performs it"
        case "logged":
            yield around.command(f"candidates show {wo_id}")
        case _:
            return


def _is_told(item: SkippedItem) -> bool:
    """Whether the notices tell it already."""
    return item.reason.startswith("action alert:")


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


def _planner(outcome: TickOutcome, around: Surroundings) -> list[str]:
    if outcome.status is PlannerStatus.SKIPPED:
        return [f"SKIPPED: {outcome.why or 'nothing has changed, so nobody was asked'}"]
    why = f": {outcome.why}" if outcome.why else ""
    name = outcome.planner or around.options.planner
    absent = outcome.status is PlannerStatus.MOCK
    unplanned = [no_plan(outcome.status)] if no_plan(outcome.status) else []
    return [f"{name} {outcome.status}{why}", *unplanned, *([WITHOUT_A_MODEL] if absent else [])]


def _so_far(outcome: TickOutcome) -> str:
    ticks, idle = counted(outcome.tick, "tick"), outcome.idle_ticks
    return f"{ticks}, {idle} of them idle; {counted(outcome.tokens, 'token')}"
