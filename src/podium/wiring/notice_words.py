"""What waits and what ended, in the few words that a phone shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.domain.events import RunFailed, RunNeededHuman
from podium.domain.ids import short_id
from podium.domain.work import Run
from podium.ports import Notice, NoticePart
from podium.telling.approval_words import diff_counts, diff_lines, what_line
from podium.telling.untrusted import shown_line
from podium.usecases.notify import Happening

LONGEST_WHAT = 300
LONGEST_TASK = 120
MAX_DIFF_LINES = 8
MAX_DIFF_LINE_CHARS = 100
_ENDS = {"run_succeeded": "succeeded", "run_failed": "failed", "run_cancelled": "was cancelled"}


def notice_of(
    happenings: Sequence[Happening],
    *,
    link_to: Callable[[str], str],
    redact: Callable[[str], str],
) -> Notice:
    """One message about all of them. `link_to` gives the address of a card; empty: there is none."""
    waiting = sum(each.what == "waits" for each in happenings)
    ended = len(happenings) - waiting
    counts = (f"{waiting} waiting for you" if waiting else "", f"{ended} ended" if ended else "")
    parts = tuple(
        NoticePart(text=redact(words_of(each)), link=link_to(each.card_id)) for each in happenings
    )
    return Notice(title="Podium: " + ", ".join(filter(None, counts)), parts=parts)


def words_of(happening: Happening) -> str:
    """What a person has to know of it, with every character that cannot be seen written out."""
    lines = _waits(happening) if happening.what == "waits" else _ended(happening)
    again = ["(perhaps told before: the line went away)"] if happening.perhaps_told else []
    return "\n".join([*lines, *again])


def _waits(happening: Happening) -> list[str]:
    approval, body = happening.approval, happening.event.body
    if approval is None:
        reason = body.reason if isinstance(body, RunNeededHuman) else ""
        return [f"{_run(happening.run)} needs a person: {shown_line(reason, LONGEST_WHAT)}"]
    cut = what_line(approval)
    what = cut if len(cut) <= LONGEST_WHAT else cut[: LONGEST_WHAT - 1] + "…"
    until = f"{approval.deadline:%Y-%m-%d %H:%M} UTC"
    return [
        f"{approval.tier} waits for a yes: {what}",
        *_replaced(approval.diff),
        f"asked by {_run(happening.run)}",
        f"until {until}. APPROVE: {short_id(approval.id)}",
    ]


def _replaced(diff: str) -> list[str]:
    """What a write takes away and brings, as far as a phone shows it."""
    if not diff:
        return []
    changed = [line for line in diff_lines(diff) if line.startswith(("-", "+"))]
    lines = [shown_line(line, MAX_DIFF_LINE_CHARS) for line in changed[:MAX_DIFF_LINES]]
    more = len(changed) - len(lines)
    return [diff_counts(diff), *lines, *([f"… and {more} more changed lines"] if more else [])]


def _ended(happening: Happening) -> list[str]:
    body = happening.event.body
    why = f"{body.failure.kind}: {body.failure.message}" if isinstance(body, RunFailed) else ""
    said = f": {shown_line(why, LONGEST_WHAT)}" if why else ""
    return [f"{_run(happening.run)} {_ENDS[body.type]}{said}"]


def _run(run: Run) -> str:
    task = f" “{shown_line(run.task, LONGEST_TASK)}”" if run.task else ""
    return f"run {short_id(run.id)} ({run.flow}){task}"
