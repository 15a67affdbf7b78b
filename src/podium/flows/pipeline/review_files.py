"""Documents that the supervisor writes itself: verdicts of gatekeepers, and what its checks showed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from podium.domain.check_results import check_ending, check_passed
from podium.domain.model import Json
from podium.flows.pipeline.plain_text import fenced, harmless, in_code, shortened, whole

LONGEST_TASK = 4_000
LONGEST_FEEDBACK = 60_000
LAST_LINES = 60
LONGEST_TAIL = 8_000
"""Of what one check wrote."""
MOST_CHECKS = 50


def review_file(
    *,
    title: str,
    task: str,
    role: str,
    agent: str,
    verdict: str,
    round: int,
    day: date,
    feedback: str,
    run_id: str,
) -> str:
    """A gatekeeper's verdict in Markdown. What agents and people said stands in it as data."""
    facts = [
        ("Verdict", f"**{harmless(verdict, 40)}**"),
        ("Role", in_code(role, 80)),
        ("Agent", in_code(agent, 120)),
        ("Round", str(round)),
        ("Date", f"{day:%Y-%m-%d}"),
        ("Run", in_code(run_id, 80)),
    ]
    said = shortened(whole(feedback).strip(), LONGEST_FEEDBACK)
    parts = [
        f"# {harmless(title, 120) or 'Review'}: {harmless(verdict, 40)}",
        _list(facts),
        _task(task),
        f"## Feedback\n\n{fenced(said) if said else 'None was given.'}",
    ]
    return "\n\n".join(parts) + "\n"


def evidence_file(
    *,
    task: str,
    commit: str,
    results: Sequence[Mapping[str, Json]],
    day: date,
    run_id: str,
) -> str:
    """What the supervisor's own checks showed on a commit, in Markdown.

    A result holds `name`, `command`, `exit_code`, `seconds`, `output_sha256`, `tail`, `timed_out` and
    `ran_no_tests`.
    """
    green = bool(results) and all(check_passed(each) for each in results)
    outcome = ("all passed" if green else "not all passed") if results else "no checks were run"
    facts = [
        ("Outcome", f"**{outcome}**"),
        ("Commit", in_code(commit, 80)),
        ("Date", f"{day:%Y-%m-%d}"),
        ("Run", in_code(run_id, 80)),
    ]
    parts = ["# Evidence: checks run by the supervisor", _list(facts), _task(task)]
    parts += [_check(number, each) for number, each in enumerate(results[:MOST_CHECKS], start=1)]
    if left_out := len(results) - MOST_CHECKS:
        parts += [f"And {left_out} more."] if left_out > 0 else []
    return "\n\n".join(parts) + "\n"


def _check(number: int, result: Mapping[str, Json]) -> str:
    name = harmless(str(result.get("name") or result.get("command") or ""), 120)
    facts = [
        ("Command", in_code(str(result.get("command", "")), 1_000)),
        ("Ended", check_ending(result)),
        ("Took", f"{float(result.get('seconds') or 0):.1f} s"),
        ("SHA-256 of the output", in_code(str(result.get("output_sha256") or ""), 80)),
    ]
    tail = "\n".join(_last_lines(str(result.get("tail") or "")))
    output = f"Last lines:\n\n{fenced(tail)}" if tail.strip() else "It wrote nothing."
    return f"## {number}. {name or 'Check'}\n\n{_list(facts)}\n\n{output}"


def _last_lines(tail: str) -> list[str]:
    lines = whole(tail[-4 * LONGEST_TAIL :]).rstrip().split("\n")[-LAST_LINES:]
    return "\n".join(lines)[-LONGEST_TAIL:].split("\n")


def _task(task: str) -> str:
    return f"## Task\n\n{fenced(shortened(whole(task[: 4 * LONGEST_TASK]).strip(), LONGEST_TASK))}"


def _list(facts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(_lines(facts))


def _lines(facts: Sequence[tuple[str, str]]) -> Iterator[str]:
    return (f"- {name}: {value}" for name, value in facts if value)
