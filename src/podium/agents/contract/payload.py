"""The JSON object at the end of free text, as a contract wants it, unless the text takes it back. Pure, and linear in the text.

Text after an answer is ignored. The few phrases here are those by which a model corrects itself in the same reply;
whoever uses one is asked again. They are not meant to be complete: an answer is withdrawn by not sending it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, Literal

from podium.agents.contract.json_objects import (
    MAX_LEAD,
    Objects,
    ObjectSpan,
    find_objects,
    is_part_of_more,
    load_object,
    surroundings,
    thoughts,
)
from podium.agents.contract.repair import repair_object
from podium.agents.contract.reply_schema import ExpectedObject, M, NotAnAnswer
from podium.agents.contract.reply_text import without_escapes

_SELF = r"(?:the|this|that|my)(?: \w{1,20})? (?:above|json|object|answer|verdict|reply|response|result|decision|one)"
_TAKES_BACK = re.compile(
    # As a sentence begins: "Wait, …", "Actually no". "Wait for the build" is advice.
    r"(?:^|[.!?\n])\W{0,8}(?:wait|hold on|actually|corrections?|oops|hmm+)(?:\s{0,2}[,.:!…–—-]|\s{1,2}(?:actually|no|let me)\b)"
    r"|\b(?:scratch that|on second thoughts?|my mistake|i was wrong|changed my mind"
    rf"|(?:ignore|disregard|discard|scrap|retract|strike|withdraw) (?:(?:this|that|it|the above)\b(?! \w)|{_SELF}\b)"
    rf"|(?:the above|{_SELF}) (?:is|was) (?:not|void|wrong|invalid|an? (?:draft|example|mistake|placeholder))\b)",
    re.IGNORECASE,
)
_ANSWER = r"(?:answer|verdict|reply|response|result|decision|output)"
_HYPOTHETICAL = re.compile(
    r"^\W*(?:if|once|until|unless|when)\b"
    rf"|\b(?:would|(?:not|isn['’]t|wasn['’]t) (?:my|the|an?) (?:\w{{1,20}} )?{_ANSWER}|printed|"
    r"(?:tell|told|tells|ask|asks|asked|want|wants) (?:me|us|you) to|(?:says?|said) to|"
    r"possible|draft|template|sample|placeholder|tentative|preliminary|(?:could|might|may) be|do not|don['’]t|"
    rf"(?:an|for) (?:example|instance)|such as|(?:previous|old|earlier|first) {_ANSWER})\b|\be\.g\.",
    re.IGNORECASE,
)
_SENTENCE_BEGINS = re.compile(r"[.!?]\s")
_CODE_BLOCK_BEGINS = re.compile(r"[`~]{1,8}\w{0,12}$")
# What models, renderers and terminals put behind an answer by themselves.
_DECORATION = re.compile(
    r"(?:[\s\u200b\ufeff;.)}`~*_\u2500-\u257f-]|<[/|][\w|:.-]{1,40}>|<end_of_turn>)*+"
)


def takes_back(rest: str) -> bool:
    """Return whether the text after an object says outright that it is not the answer after all."""
    return _TAKES_BACK.search(rest) is not None


def text_after(rest: str) -> str:
    """Return the agent's text after its answer, from the first character that is no mere decoration on."""
    decoration = _DECORATION.match(rest)
    return rest[decoration.end() :].strip() if decoration else rest


def is_only_supposed(before: str) -> bool:
    """Return whether the sentence before an object calls it an example, a wish or somebody else's."""
    written = _CODE_BLOCK_BEGINS.sub("", before.rstrip()).rstrip()
    sentence = _SENTENCE_BEGINS.split(written.rpartition("\n")[2][-300:])[-1]
    follows_at_once = "\n\n" not in before[len(written) :] and not sentence.endswith(
        (".", "!", "?")
    )
    leads_to_it = follows_at_once or sentence.endswith((":", "："))
    return leads_to_it and _HYPOTHETICAL.search(sentence) is not None


LOOKED_AT = 1_000_000
"""Characters at the end of a text in which the object and its rivals are looked for."""

MAX_TRAILING = 600
"""Characters that may follow an object without a nonce: behind more of them it may be one that the text quotes."""

MAX_PROSE = 20_000
"""Characters at the end of a text that are searched for an object behind braces that mean nothing."""

MAX_BEGUN = 2000
"""Braces without a partner before the object that are looked at; more are no text that holds an answer."""

MAX_RIVALS_MENDED = 20
"""Broken objects before the answer of which it is asked what they would say."""

MAX_ECHOED = 60
LEAST_ECHOED = 30
"""Characters before an example of the prompt by which an echo of it is known, blanks not counted."""

_CODE_BLOCK_ENDS = re.compile(r"[\s}]*+(?:`{3,}+|~{3,}+)(?!\w)(?:\s*+(?:`{4,}|~{4,}))?")
_NAMED = ("`{`", "'{'", '"{"')


@dataclass(frozen=True)
class ParsedPayload(Generic[M]):
    """A payload that fits its contract, and whether its JSON had to be mended."""

    payload: M
    how: Literal["strict", "repaired"]
    ignored: str = ""
    """The text after it that was ignored, without fences, tags and other decoration."""


def read_payload(
    text: str, model: type[M], *, nonce: str | None = None, prompt: str = ""
) -> ParsedPayload[M]:
    """The one JSON object at the end of the text that fits `model`.

    With a nonce the object must carry it under `NONCE_KEY`, and objects that do not are no rivals. Nor are
    examples that the `prompt` gives with the nonce, where the text repeats them with the words before them.
    Raises `NotAnAnswer`, a `ReplyInvalid` whose words can be quoted to the agent.
    """
    raw = text[-LOOKED_AT:]
    echoes = _leads_of_examples(prompt, nonce) if nonce else ()
    page = _Page(
        without_escapes(raw),
        ExpectedObject(model, nonce),
        earlier=text[: -len(raw) or None],
        echoes=echoes,
    )
    span = page.answer_span()
    page.check_position(span)
    result = page.read(span)
    page.check_rivals(span, result.payload)
    page.check_context(span, result.payload)
    # An object that terminal escapes ran through is not as the agent sent it.
    intact = page.text is raw or page.text[span.start : span.end] in raw
    how = result.how if intact else "repaired"
    return ParsedPayload(result.payload, how, text_after(page.text[span.end :]))


def _leads_of_examples(prompt: str, nonce: str) -> tuple[str, ...]:
    """Return the text before each object of a prompt that carries the nonce, without blanks."""
    spans = find_objects(prompt).spans if nonce in prompt else []
    leads = (_lead(prompt, span.start) for span in spans if nonce in prompt[span.start : span.end])
    return tuple(lead for lead in leads if len(lead) >= LEAST_ECHOED)


def _lead(text: str, start: int) -> str:
    return "".join(text[max(0, start - 4 * MAX_ECHOED) : start].split())[-MAX_ECHOED:]


def _without_echoes(
    objects: Objects, text: str, nonce: str | None, leads: tuple[str, ...]
) -> Objects:
    if not leads or not nonce:
        return objects
    own = [
        span
        for span in objects.spans
        if nonce not in text[span.start : span.end] or not _lead(text, span.start).endswith(leads)
    ]
    return objects._replace(spans=own)


class _Page(Generic[M]):
    """The end of a reply, with its objects."""

    def __init__(
        self, text: str, expected: ExpectedObject[M], *, earlier: str, echoes: tuple[str, ...] = ()
    ) -> None:
        self.text = text
        self.expected = expected
        self.objects: Objects = _without_echoes(find_objects(text), text, expected.nonce, echoes)
        self.thoughts = thoughts(text, self.objects.spans, earlier)
        self.begins_earlier = bool(earlier) and bool(self.objects.closed)
        """An object ends here whose beginning lies before what is looked at."""

    def answer_span(self) -> ObjectSpan:
        """The last object that could be meant; braces in a sentence about other things are prose.

        Where an object carries the nonce, one behind it without any key of the contract is ignored like other text.
        """
        nonce = self.expected.nonce
        carried = nonce is not None and any(
            nonce in self.text[span.start : span.end] for span in self.objects.spans
        )
        for span in self.objects.spans:
            if self.expected.is_mentioned_in(self.text[span.start : span.end]):
                return span
            if not carried and surroundings(self.text, span).begins_its_line:
                return span
            if not carried and len(self.text) - span.end > MAX_PROSE:
                break
        if self.objects.opened:
            raise NotAnAnswer("cut off", "The reply ends before its JSON object does")
        self._check_size()
        raise NotAnAnswer("missing", "There is no JSON object in the reply")

    def check_position(self, span: ObjectSpan) -> None:
        self._check_whole(span)
        if self.thoughts.hold(span.start):
            raise NotAnAnswer(
                "thinking",
                "The last JSON object is inside the thinking, or the thinking never ends",
            )
        if is_part_of_more(self.text[: span.start], self.text[span.end :]):
            self._check_size()
            raise NotAnAnswer(
                "misplaced", "The last JSON object is part of something larger, or was cut off"
            )
        around = surroundings(self.text, span)
        if not around.is_an_answers or not (
            around.ends_its_line or around.is_followed_by_a_sentence
        ):
            raise NotAnAnswer(
                "misplaced", "The last JSON object is only mentioned in a sentence or quoted"
            )
        self._check_trailing(self.text[span.end :])

    def _check_whole(self, span: ObjectSpan) -> None:
        """Nothing that begins like an answer may be left open, before the object or after it."""
        after = [position for position in self.objects.opened if position >= span.end]
        if any(self.text[position - 1 : position + 2] not in _NAMED for position in after):
            raise NotAnAnswer(
                "cut off", "After the last whole JSON object another one begins and does not end"
            )
        before = self.objects.opened[len(after) :]
        if len(before) > MAX_BEGUN or any(
            self._is_its_beginning(position, span) for position in before
        ):
            raise NotAnAnswer(
                "cut off", "Before the last whole JSON object another one begins and does not end"
            )

    def _is_its_beginning(self, opened: int, span: ObjectSpan) -> bool:
        """Return whether the object may be a piece of one that begins here and was cut off."""
        has_a_key = self.expected.is_begun_in(
            self.text[opened : min(opened + MAX_LEAD, span.start)]
        )
        begins_line = surroundings(self.text, ObjectSpan(opened, opened)).begins_its_line
        if not (has_a_key or begins_line) or self._is_begun_anew(opened, span):
            return False
        if not self.expected.nonce or self.text.find(self.expected.nonce, opened, span.start) >= 0:
            return True
        # Only the object carries the nonce: what begins before it is a try that was given up, or code.
        return has_a_key and self.text.find("\n\n", opened, span.start) < 0

    def _is_begun_anew(self, opened: int, span: ObjectSpan) -> bool:
        """Return whether the object is the same answer once more, as after a lost connection."""
        if self.thoughts.hold(opened) and not self.thoughts.hold(span.start):
            return True
        line_end = self.text.find("\n", opened, span.start)
        half = self.text[opened:line_end].rstrip() if line_end >= 0 else "{"
        return half[-1] not in "{[:," and self.text.startswith(half, span.start)

    def _check_size(self) -> None:
        if self.begins_earlier:
            raise NotAnAnswer(
                "too large", f"The last JSON object is longer than {LOOKED_AT} characters"
            )

    def _check_trailing(self, rest: str) -> None:
        # A bracket on the next line closes a call that the object is given to.
        on_the_next_line = rest.strip(" \t\r")[:1] == "\n"
        rest = rest.strip()
        if rest.startswith(("]", '"', "'", ",", ":")) or (on_the_next_line and rest[:1] == ")"):
            raise NotAnAnswer("misplaced", "The last JSON object is part of something larger")
        if len(rest) > MAX_TRAILING and not self.expected.nonce:
            raise NotAnAnswer("trailing", f"{len(rest)} characters follow the last JSON object")
        closed = _CODE_BLOCK_ENDS.match(rest)
        further = rest[closed.end() :].strip() if closed else rest
        if further.count("```") % 2 and further != "```":
            raise NotAnAnswer(
                "cut off", "After the last JSON object another block begins and does not end"
            )

    def check_context(self, span: ObjectSpan, payload: M) -> None:
        """The text before the object must give it, and the text after it must not take it back."""
        if is_only_supposed(self.text[max(0, span.start - 1000) : span.start]):
            raise NotAnAnswer(
                "misplaced",
                "The text before the last JSON object does not present it as the answer",
            )
        rest = self.text[span.end :].strip()
        if takes_back(rest) or self.expected.is_answered_otherwise_in(rest, payload):
            raise NotAnAnswer("trailing", "The text after the last JSON object retracts it")

    def read(self, span: ObjectSpan) -> ParsedPayload[M]:
        source = self.text[span.start : span.end]
        try:
            value = load_object(source)
        except ValueError as error:
            return ParsedPayload(self._mended(span, source, str(error)), "repaired")
        one_brace_too_many = self.text[span.end : span.end + 50].lstrip().startswith("}")
        return ParsedPayload(
            self.expected.fit(value), "repaired" if one_brace_too_many else "strict"
        )

    def _mended(self, span: ObjectSpan, source: str, problem: str) -> M:
        """Only what begins its line is mended: in a sentence or a string, looser rules find too much."""
        around = surroundings(self.text, span)
        if not around.begins_its_line or self.objects.opened:
            raise NotAnAnswer("malformed", f"The last JSON object is not valid JSON: {problem}")
        try:
            value = repair_object(source, self.expected.names)
        except ValueError as error:
            raise NotAnAnswer(
                "malformed", f"The last JSON object is not valid JSON: {problem}; {error}"
            ) from None
        return self.expected.fit(value, mended=True)

    def check_rivals(self, span: ObjectSpan, payload: M) -> None:
        """Another object that could be the answer, and says something else, makes both worthless."""
        self._to_mend = MAX_RIVALS_MENDED
        for other in self.objects.spans:
            if other.start < span.start and self._is_rival(other, payload):
                raise NotAnAnswer(
                    "ambiguous",
                    "The reply has several different JSON objects that fit the schema",
                )

    def _is_rival(self, span: ObjectSpan, payload: M) -> bool:
        source = self.text[span.start : span.end]
        if not self.expected.is_mentioned_in(source) or self.thoughts.hold(span.start):
            return False
        if self.expected.nonce:
            # Nobody but the agent knows the nonce: wherever such an object stands, it is its own.
            return self.expected.nonce in source and self._says_otherwise(source, payload)
        around = surroundings(self.text, span)
        in_a_list = around.lead.lstrip().startswith("[")
        return (around.is_an_answers or in_a_list) and self._says_otherwise(source, payload)

    def _says_otherwise(self, source: str, payload: M) -> bool:
        try:
            value = load_object(source)
        except ValueError:
            return self._might_say_otherwise(source, payload)
        try:
            return self.expected.fit(value) != payload
        except NotAnAnswer:
            return False

    def _might_say_otherwise(self, source: str, payload: M) -> bool:
        """Of what is no JSON. With the nonce in it, it was meant to be; without, mending shows it."""
        if self.expected.nonce:
            return True
        self._to_mend -= 1
        if self._to_mend < 0:
            return False
        try:
            return (
                self.expected.fit(repair_object(source, self.expected.names), mended=True)
                != payload
            )
        except (ValueError, NotAnAnswer):
            return False
