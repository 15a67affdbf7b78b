"""Status of runs as text and colour, and the layout of the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from podium.app.run_overview import RunRow
from podium.app.run_timeline import PERSON, TIME, Bar, Timeline, Turning
from podium.core import events as e
from podium.core.forge import check_passed
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.render.event import describe, shorten, view_event
from podium.render.text import counted, escaped_line, safe_line

MAX_SUMMARY = 240
_TONES = {
    "succeeded": "good",
    "failed": "bad",
    "cancelled": "bad",
    "interrupted": "bad",
    "waiting": "wait",
    "needs_human": "wait",
    "running": "live",
}


def tone(status: str) -> str:
    """CSS class of a status; empty for a neutral one."""
    return _TONES.get(status, "")


def status_text(status: str) -> str:
    return status.replace("_", " ")


def event_tone(body: e.EventBody) -> str:
    """Tone of a log line; empty for most."""
    outcome = view_event(body).outcome
    return "" if outcome == "plain" else outcome


def event_text(body: e.EventBody) -> str:
    """Describe an event on one line."""
    return safe_line(describe(body), 2 * MAX_SUMMARY)


def evidence(row: RunRow) -> str:
    """Explain a run's status in one line."""
    return safe_line(_evidence(row), MAX_SUMMARY)


def _evidence(row: RunRow) -> str:
    run = row.listing.run
    if row.listing.interrupted:
        return "its process is gone; resume it to continue"
    match run.status:
        case RunStatus.QUEUED:
            return f"in queue {run.queue}" if run.queue else "not started"
        case RunStatus.WAITING:
            return waiting_text(run)
        case RunStatus.SUCCEEDED:
            return _proof(run)
        case RunStatus.FAILED | RunStatus.NEEDS_HUMAN:
            return failure_text(run)
        case RunStatus.RUNNING:
            return _lately(row)
    return ""


def failure_text(run: Run) -> str:
    """Describe what failed, or what needs a person."""
    if run.failure is None:
        return ""
    if run.status is RunStatus.NEEDS_HUMAN:
        return run.failure.message
    return f"{run.failure.kind}: {run.failure.message}"


def waiting_text(run: Run) -> str:
    """Describe what a run waits for, and until when."""
    until = f" until {run.wake_at.astimezone():%Y-%m-%d %H:%M}" if run.wake_at else ""
    return f"waiting for {shorten(run.waiting_for or 'something')}{until}"


def _lately(row: RunRow) -> str:
    """Describe the latest checks, verdict or failed step."""
    if row.checks is not None:
        return f"checks {describe(row.checks)}"
    if row.news:
        return row.news
    return describe(row.broke) if row.broke is not None else ""


def _proof(run: Run) -> str:
    result: Mapping[str, Json] = run.result if isinstance(run.result, Mapping) else {}
    checks = result.get("checks")
    parts = []
    if isinstance(checks, list) and checks:
        passed = sum(1 for check in checks if isinstance(check, dict) and check_passed(check))
        parts.append(f"{passed} of {counted(len(checks), 'check')} passed")
    elif checks == []:
        parts.append("no checks ran")
    if branch := result.get("branch"):
        parts.append(f"branch {branch}")
    return "; ".join(parts)


COLUMN, ROW, HEAD = 128, 52, 28
"""Pixels: width of one step, height of one lane, and height of the band above the lanes."""
BAR_WIDTH, BAR_HEIGHT = 112, 40
MAX_LABEL, MAX_DETAIL = 13, 13
WAITS = (PERSON, TIME)
SIGNS = {"good": "✓", "bad": "✗", "wait": "…", "live": "▶", "plain": "•"}
"""Signs beside the colour, for people who cannot see it."""
OUTCOME_TEXTS = {
    "good": "succeeded",
    "bad": "failed",
    "wait": "waiting",
    "live": "running",
    "plain": "",
}


@dataclass(frozen=True)
class Box:
    """A bar with its coordinates."""

    bar: Bar
    x: int
    y: int
    label: str
    detail: str

    @property
    def title(self) -> str:
        """Full text of the bar."""
        bar = self.bar
        parts = [f"{bar.lane}: {shorten(bar.label)}", f"round {bar.round}" if bar.round > 1 else ""]
        parts += [
            shorten(bar.text) or OUTCOME_TEXTS[bar.outcome],
            f"by {bar.agent}" if bar.agent else "",
        ]
        return escaped_line(", ".join(part for part in parts if part), 400)

    @property
    def sign(self) -> str:
        return SIGNS[self.bar.outcome]


@dataclass(frozen=True)
class Link:
    """Connection from one step to the next."""

    path: str
    back: bool
    """True when work was sent back."""


@dataclass(frozen=True)
class Post:
    """A turning point with its coordinates."""

    turning: Turning
    x: int
    label: str
    title: str


@dataclass(frozen=True)
class Lane:
    name: str
    y: int


@dataclass(frozen=True)
class Picture:
    width: int
    height: int
    lanes: tuple[Lane, ...]
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    posts: tuple[Post, ...]
    cut: bool
    rounds: int
    """Steps that were repeated."""


def picture_of(timeline: Timeline) -> Picture:
    """Lay out the timeline. One without bars has no lanes."""
    lanes = {name: HEAD + number * ROW for number, name in enumerate(timeline.lanes)}
    boxes: list[Box] = []
    posts: list[Post] = []
    x = 8
    for number in range(len(timeline.bars) + 1):
        for turning in timeline.turnings:
            if turning.before == number:
                posts.append(_post(turning, x))
                x += COLUMN
        if number < len(timeline.bars):
            boxes.append(_box(timeline.bars[number], x, lanes))
            x += COLUMN
    return Picture(
        width=x,
        height=HEAD + len(lanes) * ROW + 4,
        lanes=tuple(Lane(escaped_line(name.replace("_", " "), 30), y) for name, y in lanes.items()),
        boxes=tuple(boxes),
        links=tuple(_link(a, b) for a, b in pairwise(boxes)),
        posts=tuple(posts),
        cut=timeline.cut,
        rounds=sum(1 for bar in timeline.bars if bar.comes_back),
    )


def _box(bar: Bar, x: int, lanes: dict[str, int]) -> Box:
    # What is waited for has a long name; the title says it.
    label = bar.label.partition(":")[0] if bar.outcome == "wait" or bar.lane in WAITS else bar.label
    label = shorten(label).replace("_", " ")
    turn = f" {bar.round}" if bar.round > 1 else ""
    return Box(
        bar=bar,
        x=x,
        y=lanes[bar.lane] + (ROW - BAR_HEIGHT) // 2,
        label=escaped_line(label, MAX_LABEL - len(turn)) + turn,
        detail=escaped_line(bar.text, MAX_DETAIL),
    )


def _post(turning: Turning, x: int) -> Post:
    return Post(
        turning=turning,
        x=x + BAR_WIDTH // 2,
        label=escaped_line(turning.label, MAX_DETAIL),
        title=escaped_line(turning.label, 400),
    )


def _link(one: Box, other: Box) -> Link:
    x1, y1 = one.x + BAR_WIDTH, one.y + BAR_HEIGHT // 2
    x2, y2 = other.x, other.y + BAR_HEIGHT // 2
    bend = max(8, (x2 - x1) // 2)
    path = f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    return Link(path, back=other.bar.comes_back and one.bar.outcome == "bad")
