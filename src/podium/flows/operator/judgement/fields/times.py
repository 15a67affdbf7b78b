"""Times of the day, and moments written in one piece."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.numbers import COUNTED
from podium.flows.operator.judgement.fields.passage import Passage

_HOURS = "|".join(word for word, value in COUNTED.items() if 1 <= value <= 12)
_HOUR = rf"\d{{1,2}}|{_HOURS}"
_PART = r"(?: ?(?P<half>[ap]\.?m\b\.?)| in the (?P<part>morning|afternoon|arvo|evening)| (?P<night>at night))?"
_CLOCK = re.compile(
    rf"(?<![\w:.$/\-])(?P<hour>\d{{1,2}})[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\d:%]){_PART}(?![\w:])(?!\.\d)"
)
_WITH_HALF = re.compile(r"(?<![\w:.$,/\-])(?P<hour>\d{1,2}) ?(?P<half>[ap]\.?m\b\.?)(?!\w)")
_PAST = re.compile(
    rf"\b(?P<minutes>half|quarter|\d{{1,2}}|five|ten|twenty|twenty[ \-]five)(?: minutes?)?[ \-](?P<way>past|to)[ \-](?P<hour>{_HOUR})\b{_PART}"
)
_OCLOCK = re.compile(rf"\b(?P<hour>{_HOUR}) ?o'? ?clock\b{_PART}")
_IN_PART = re.compile(
    rf"(?<![\w:.$/\-])(?P<hour>{_HOUR}) (?:in the (?P<part>morning|afternoon|arvo|evening)|(?P<night>at night))\b"
)
_AT = re.compile(
    rf"\bat (?P<hour>\d{{1,2}}|{_HOURS})(?= (?:on|sharp|in the|at night|tomorrow|today|this|next)\b| ?[.,;!?)]?(?: |$))(?! ?[.,]?\d)(?! [a-z]+ (?:st|street|rd|road|ave|avenue|ct|court|dr|drive)\b){_PART}"
)
_AFTER_AT = re.compile(
    r" (?!on\b|sharp\b|in the\b|tomorrow\b|today\b|this\b|next\b|with\b|for\b|to\b|please\b|and\b|at night\b|mon|tue|wed|thu|fri|sat|sun)\w"
)
_NAMED = re.compile(r"\b(noon|midday|midnight)\b")
_MILITARY = re.compile(r"(?<![\w:.$,/\-])([01]\d|2[0-3])([0-5]\d) ?h(?:ou)?rs?\b")
_MOMENT = re.compile(
    r"(?<![\w\-])\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+\-]\d\d:?\d\d)?(?![\w:])"
)


def times(passage: Passage) -> Iterator[Entity]:
    """Times as HH:MM. Hours from one to six without am or pm are those of the afternoon: people work then."""
    text = passage.lower
    for found in _CLOCK.finditer(text):
        if found["half"] or ":" in found[0] or _said_as_time(text, found.start()):
            yield from _entity(
                passage, found, _hour(found), int(found["minute"]), 80 if ":" in found[0] else 72
            )
    for found in _WITH_HALF.finditer(text):
        yield from _entity(passage, found, _hour(found), 0, 80)
    for found in _PAST.finditer(text):
        yield from _past(passage, found)
    for found in _OCLOCK.finditer(text):
        yield from _entity(passage, found, _hour(found), 0, 78)
    for found in _IN_PART.finditer(text):
        yield from _entity(passage, found, _hour(found), 0, 70)
    for found in _AT.finditer(text):
        if not _AFTER_AT.match(text, found.end()):
            yield from _entity(passage, found, _hour(found), 0, 55, skip=3)
    for found in _MILITARY.finditer(text):
        yield from _entity(passage, found, int(found[1]), int(found[2]), 78)
    for found in _NAMED.finditer(text):
        yield from _entity(passage, found, 0 if found[1] == "midnight" else 12, 0, 75)


def moments(passage: Passage) -> Iterator[Entity]:
    """Moments in ISO 8601. Without an offset they are local, as `now` is."""
    for found in _MOMENT.finditer(passage.lower):
        try:
            moment = datetime.fromisoformat(found[0].upper())
        except ValueError:
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=passage.now.tzinfo)
        start, end = found.span()
        yield Entity("datetime", moment.isoformat(), passage.text[start:end], start, end, 92)


def _said_as_time(text: str, start: int) -> bool:
    return text[max(0, start - 3) : start] == "at " or text[max(0, start - 6) : start] == "about "


def _hour(found: re.Match[str]) -> int:
    groups = found.groupdict()
    written = groups["hour"]
    hour = int(written) if written.isdigit() else COUNTED[written]
    half = (groups.get("half") or "")[:1] or {"morning": "a"}.get(groups.get("part") or "", "")
    if not half and (groups.get("part") or groups.get("night")):
        half = "p"
    if half:
        return -1 if not 1 <= hour <= 12 else hour % 12 + (12 if half == "p" else 0)
    return hour + 12 if 1 <= hour <= 6 and not written.startswith("0") else hour


def _past(passage: Passage, found: re.Match[str]) -> Iterator[Entity]:
    said = found["minutes"].replace("-", " ")
    minutes = (
        {"half": 30, "quarter": 15, "twenty five": 25}.get(said)
        or COUNTED.get(said)
        or (int(said) if said.isdigit() else 0)
    )
    hour = _hour(found)
    if (
        hour < 0
        or not 0 < minutes < 60
        or (said.isdigit() and found["way"] == "to" and minutes % 5)
    ):
        return
    if found["way"] == "to":
        hour, minutes = (hour - 1) % 24, 60 - minutes
    # `five to six` may as well be a stretch; half and quarter are times.
    yield from _entity(passage, found, hour, minutes, 78 if said in {"half", "quarter"} else 50)


def _entity(
    passage: Passage, found: re.Match[str], hour: int, minute: int, sure: int, skip: int = 0
) -> Iterator[Entity]:
    if 0 <= hour <= 23:
        start, end = found.start() + skip, found.end()
        yield Entity("time", f"{hour:02}:{minute:02}", passage.text[start:end], start, end, sure)
