"""Where everything of a run's picture stands: lanes from top to bottom, pieces of work from left to right."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from podium.telling.event_words import shorten
from podium.telling.untrusted import shown_line
from podium.usecases.run_timeline import PERSON, TIME, Bar, Timeline, Turning

COLUMN, ROW, HEAD = 128, 52, 28
"""Pixels: of one piece from left to right, of one lane, and of the band above the lanes."""
BAR_WIDTH, BAR_HEIGHT = 112, 40
LABEL_LETTERS, SAID_LETTERS = 13, 13
WAITS = (PERSON, TIME)
SIGNS = {"good": "✓", "bad": "✗", "wait": "…", "live": "▶", "plain": "•"}
"""Beside the colour, for whoever does not see it."""
WORDS = {"good": "well", "bad": "badly", "wait": "waits", "live": "goes on", "plain": ""}


@dataclass(frozen=True)
class Box:
    """A bar with its place."""

    bar: Bar
    x: int
    y: int
    label: str
    said: str

    @property
    def title(self) -> str:
        """All of it in words."""
        bar = self.bar
        parts = [f"{bar.lane}: {shorten(bar.label)}", f"round {bar.round}" if bar.round > 1 else ""]
        parts += [shorten(bar.said) or WORDS[bar.outcome], f"by {bar.agent}" if bar.agent else ""]
        return shown_line(", ".join(part for part in parts if part), 400)

    @property
    def sign(self) -> str:
        return SIGNS[self.bar.outcome]


@dataclass(frozen=True)
class Link:
    """The way from one piece to the next."""

    path: str
    back: bool
    """Whether something was sent back."""


@dataclass(frozen=True)
class Post:
    """A turning with its place."""

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
    """How many pieces were done again."""


def picture_of(timeline: Timeline) -> Picture:
    """The same with places. A timeline without bars has no lanes."""
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
        lanes=tuple(Lane(shown_line(name.replace("_", " "), 30), y) for name, y in lanes.items()),
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
        label=shown_line(label, LABEL_LETTERS - len(turn)) + turn,
        said=shown_line(bar.said, SAID_LETTERS),
    )


def _post(turning: Turning, x: int) -> Post:
    return Post(
        turning=turning,
        x=x + BAR_WIDTH // 2,
        label=shown_line(turning.label, SAID_LETTERS),
        title=shown_line(turning.label, 400),
    )


def _link(one: Box, other: Box) -> Link:
    x1, y1 = one.x + BAR_WIDTH, one.y + BAR_HEIGHT // 2
    x2, y2 = other.x, other.y + BAR_HEIGHT // 2
    bend = max(8, (x2 - x1) // 2)
    path = f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    return Link(path, back=other.bar.comes_back and one.bar.outcome == "bad")
