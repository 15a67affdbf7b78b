"""The JSON object at the end of free text, as a contract wants it. Pure, and linear in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, Literal

from podium.agents.contract.cleaning import without_escapes
from podium.agents.contract.not_an_answer import NotAnAnswer
from podium.agents.contract.objects import Objects, Span, find_objects
from podium.agents.contract.placing import is_part_of_more, surroundings
from podium.agents.contract.repairing import repair_object
from podium.agents.contract.strict import load_object
from podium.agents.contract.wanted import M, Wanted

LOOKED_AT = 1_000_000
"""Characters at the end of a text in which the object and its rivals are looked for."""

MOST_TRAILING = 600
"""Characters that may follow the object: a farewell, a note, not a second thought."""

MOST_PROSE = 20_000
"""Characters at the end of a text that are searched for an object behind braces that mean nothing."""

_THOUGHT = r"(?:think|thinking|thought|reasoning|scratchpad)"
_THOUGHT_BEGINS = re.compile(
    rf"<{_THOUGHT}\b[^<>]{{0,80}}>|<\|channel\|>(?:analysis|commentary)\b", re.IGNORECASE
)
_THOUGHT_ENDS = re.compile(rf"</{_THOUGHT}\s{{0,8}}>|<\|channel\|>final\b", re.IGNORECASE)
_FENCE = re.compile(r"[\s}]*(?:`{3,}|~{3,})")


@dataclass(frozen=True)
class Found(Generic[M]):
    """A payload that fits its contract, and whether its JSON had to be mended."""

    payload: M
    how: Literal["strict", "repaired"]


def read_payload(text: str, model: type[M], *, nonce: str | None = None) -> Found[M]:
    """The one JSON object at the end of the text that fits `model`.

    With a nonce the object must carry it under `NONCE_KEY`, and objects that do not are no rivals.
    Raises `NotAnAnswer`, a `ReplyInvalid` whose words can be quoted to the agent.
    """
    raw = text[-LOOKED_AT:]
    page = _Page(without_escapes(raw), Wanted(model, nonce), is_cut=len(raw) < len(text))
    span = page.answer_span()
    page.check_place(span)
    found = page.read(span)
    page.check_rivals(span, found.payload)
    # An object that terminal escapes ran through is not as the agent sent it.
    intact = page.text is raw or page.text[span.start : span.end] in raw
    return found if intact else Found(found.payload, "repaired")


class _Page(Generic[M]):
    """The end of a reply, with its objects."""

    def __init__(self, text: str, wanted: Wanted[M], *, is_cut: bool) -> None:
        self.text = text
        self.wanted = wanted
        self.objects: Objects = find_objects(text)
        self.begins_earlier = is_cut and bool(self.objects.closed)
        """An object ends here whose beginning lies before what is looked at."""

    def answer_span(self) -> Span:
        """The last object that could be meant; braces in a sentence about other things are prose."""
        for span in self.objects.spans:
            if self.wanted.is_mentioned_in(self.text[span.start : span.end]):
                return span
            if surroundings(self.text, span).begins_its_line:
                return span
            if len(self.text) - span.end > MOST_PROSE:
                break
        if self.objects.opened:
            raise NotAnAnswer("cut off", "The reply ends before its JSON object does")
        self._check_size()
        raise NotAnAnswer("missing", "There is no JSON object in the reply")

    def check_place(self, span: Span) -> None:
        if self.objects.opened and self.objects.opened[0] > span.end:
            raise NotAnAnswer(
                "cut off", "After the last whole JSON object another one begins and does not end"
            )
        around = surroundings(self.text, span)
        if is_part_of_more(self.text[: span.start]):
            self._check_size()
            raise NotAnAnswer(
                "misplaced", "The last JSON object is part of something larger, or that was cut off"
            )
        if around.is_quoted or not (around.begins_its_line or around.closes_its_line):
            raise NotAnAnswer(
                "misplaced", "The last JSON object is only mentioned in a sentence or quoted"
            )
        self._check_trailing(self.text[span.end :])
        self._check_thinking(span)

    def _check_size(self) -> None:
        if self.begins_earlier:
            raise NotAnAnswer(
                "too large", f"The last JSON object is longer than {LOOKED_AT} characters"
            )

    def _check_trailing(self, rest: str) -> None:
        rest = rest.strip()
        if rest.startswith(("]", '"', "'", ",", ":")):
            raise NotAnAnswer("misplaced", "The last JSON object is part of something larger")
        if len(rest) > MOST_TRAILING:
            raise NotAnAnswer("trailing", f"{len(rest)} characters follow the last JSON object")
        closed = _FENCE.match(rest)
        further = rest[closed.end() :].strip() if closed else rest
        if further.count("```") % 2 and further != "```":
            raise NotAnAnswer(
                "cut off", "After the last JSON object another block begins and does not end"
            )

    def _check_thinking(self, span: Span) -> None:
        ended = _THOUGHT_ENDS.search(self.text, span.end)
        if ended and not _THOUGHT_BEGINS.search(self.text, span.end, ended.start()):
            raise NotAnAnswer("thinking", "The last JSON object stands inside the thinking")
        begun = [each.start() for each in _THOUGHT_BEGINS.finditer(self.text, 0, span.start)]
        if begun and begun[-1] >= self._thought_until(span):
            raise NotAnAnswer("thinking", "The thinking before the last JSON object never ends")

    def _thought_until(self, span: Span) -> int:
        ends = [each.end() for each in _THOUGHT_ENDS.finditer(self.text, 0, span.start)]
        return ends[-1] if ends else 0

    def read(self, span: Span) -> Found[M]:
        source = self.text[span.start : span.end]
        try:
            value = load_object(source)
        except ValueError as error:
            return Found(self._mended(span, source, str(error)), "repaired")
        one_brace_too_many = self.text[span.end : span.end + 50].lstrip().startswith("}")
        return Found(self.wanted.fit(value), "repaired" if one_brace_too_many else "strict")

    def _mended(self, span: Span, source: str, problem: str) -> M:
        """Only what begins its line is mended: in a sentence or a string, looser rules find too much."""
        around = surroundings(self.text, span)
        if not around.begins_its_line or self.objects.opened:
            raise NotAnAnswer("malformed", f"The last JSON object is not valid JSON: {problem}")
        try:
            value = repair_object(source)
        except ValueError as error:
            raise NotAnAnswer(
                "malformed", f"The last JSON object is not valid JSON: {problem}; {error}"
            ) from None
        return self.wanted.fit(value, mended=True)

    def check_rivals(self, span: Span, payload: M) -> None:
        """Another object that could be the answer, and says something else, makes both worthless."""
        since = self._thought_until(span)
        for other in self.objects.spans:
            if since <= other.start < span.start and self._is_rival(other, payload):
                raise NotAnAnswer(
                    "ambiguous",
                    "The reply holds several JSON objects that fit the schema and differ",
                )

    def _is_rival(self, span: Span, payload: M) -> bool:
        source = self.text[span.start : span.end]
        if not self.wanted.is_mentioned_in(source):
            return False
        around = surroundings(self.text, span)
        if around.is_quoted or not (around.begins_its_line or around.closes_its_line):
            return False
        try:
            return self.wanted.fit(load_object(source)) != payload
        except (ValueError, NotAnAnswer):
            return False
