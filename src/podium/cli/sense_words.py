"""A tick and its candidates in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.cli.screen import Screen
from podium.cli.sense_next import Surroundings
from podium.cli.tick_words import (
    INDENT,
    NOTHING_CHANGED,
    show_part,
    show_sensed,
    show_totals,
    show_value,
)
from podium.domain.sensing import (
    CandidateStanding,
    PlannerStatus,
    SkippedItem,
    TickOutcome,
    no_operations,
    no_plan,
)
from podium.telling.untrusted import shown_line

IN_WORDS = "words"
"""The zone of an order that nobody has made operations of."""
WITHOUT_A_MODEL = "`planner: rules` under `flows: sense:` in podium.yaml plans without a model"


def tell_tick(
    screen: Screen, outcome: TickOutcome, around: Surroundings, news: Sequence[str] = ()
) -> None:
    """What was sensed, what was planned, what became of it, and what to do next.

    `news` are lines about what was earned and lost since the last tick.
    """
    show_sensed(screen, outcome.tick, outcome.mode, outcome.seconds, outcome.counts)
    show_part(screen, "missing", outcome.missing)
    show_part(screen, "planner", _planner(outcome, around))
    show_part(screen, "changed", outcome.plan_changes)
    show_part(screen, "notices", outcome.notices)
    show_part(
        screen,
        "skipped",
        [
            f"item {each.index}: {each.reason}"
            for each in outcome.skipped_items
            if not _is_told(each)
        ],
    )
    show_part(screen, "trust", news)
    show_totals(screen, outcome.tick, outcome.idle_ticks, outcome.tokens)
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
            show_value(screen, "", line)
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


def _planner(outcome: TickOutcome, around: Surroundings) -> list[str]:
    if outcome.status is PlannerStatus.SKIPPED:
        return [f"SKIPPED: {outcome.why or NOTHING_CHANGED}"]
    why = f": {outcome.why}" if outcome.why else ""
    name = outcome.planner or around.options.planner
    absent = outcome.status is PlannerStatus.MOCK
    unplanned = [no_plan(outcome.status)] if no_plan(outcome.status) else []
    return [f"{name} {outcome.status}{why}", *unplanned, *([WITHOUT_A_MODEL] if absent else [])]
