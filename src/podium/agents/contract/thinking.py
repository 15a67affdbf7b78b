"""Where a reply only thinks: between the marks that models put around what is not meant for others."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from podium.agents.contract.objects import Span

_NAMES = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "scratchpad",
    "draft",
    "analysis",
)
_NAME = rf"(?:\w{{1,20}}:)?(?:{'|'.join(_NAMES)})"
_MARKS = re.compile(
    rf"(?P<begins><{_NAME}(?:\s[^<>]{{0,80}})?>|\[think\]|◁think▷|<\|(?:start_thinking|begin_of_thought)\|>"
    r"|<\|channel\|>(?:analysis|commentary)\b)"
    rf"|</{_NAME}\s{{0,8}}>|\[/think\]|◁/think▷|<\|(?:end_thinking|end_of_thought)\|>|<\|channel\|>final\b",
    re.IGNORECASE,
)
# As they are really written, for texts too long to be searched for every spelling.
_WRITTEN = ("<think>", "<thinking>", "<reasoning>", "<seed:think>", "[THINK]", "◁think▷")


def thoughts(text: str, objects: Sequence[Span] = (), earlier: str = "") -> Thoughts:
    """The thoughts of a text. A mark inside an object, or in backticks, is text about marks.

    `earlier` is what came before the text, in which a thought may have begun.
    """
    spans: list[Span] = []
    begun = 0 if _is_open_after(earlier) else None
    for found in _marks(text, objects):
        if found["begins"]:
            begun = found.start() if begun is None else begun
        elif begun is None:
            spans = [
                Span(0, found.end())
            ]  # it began before the reply did, as some templates have it
        else:
            spans.append(Span(begun, found.end()))
            begun = None
    if begun is not None:
        spans.append(Span(begun, len(text) + 1))
    return Thoughts(spans)


class Thoughts:
    """Disjoint pieces of a text, in order."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        self._starts = [each.start for each in spans]

    def hold(self, place: int) -> bool:
        at = bisect_right(self._starts, place) - 1
        return at >= 0 and place < self._spans[at].end


def _marks(text: str, objects: Sequence[Span]) -> Iterator[re.Match[str]]:
    within = Thoughts(sorted(objects))
    for found in _MARKS.finditer(text):
        before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
        in_backticks = "`" in (before, after)
        if not in_backticks and not within.hold(found.start()):
            yield found


def _is_open_after(text: str) -> bool:
    begins = max((text.rfind(mark) for mark in _WRITTEN), default=-1)
    return begins >= 0 and begins > max(text.rfind(f"{each[0]}/{each[1:]}") for each in _WRITTEN)
