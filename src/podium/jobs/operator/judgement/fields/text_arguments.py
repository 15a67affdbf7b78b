"""Free-text arguments of one clause: where they are, and which parts belong to other arguments."""

from __future__ import annotations

import re
from collections.abc import Callable

from podium.jobs.operator.judgement.fields.free_text import (
    MESSAGES,
    SEARCHING,
    Announced,
    Span,
    after_comma,
    code_after,
    cue_before,
    file_named_in,
    hanging,
    left_over,
    quoted_in,
    without_orders,
)
from podium.jobs.operator.judgement.fields.pack_lexicon import (
    Lexicon,
    Order,
    Wanted,
    one_typo_apart,
)
from podium.jobs.operator.judgement.fields.tokenized_text import (
    FUNCTION_WORDS,
    Entity,
    Passage,
    verbatim,
    words_in,
)

_EDGES = " \t\n,;:-–—=>@/("
_UNITS = words_in(
    "metres metre meters meter m lm hours hour hrs hr sheets lengths litres litre days x of"
)
_EACH = ("each", "a", "an", "per")
_ARTICLE = re.compile(r"^(?:(?:the|an?) )?(?:words? (?=\w))?", re.IGNORECASE)
_NEXT_SENTENCE = re.compile(r"[.?!;] +")
_WHERE = re.compile(r" (?:in|on|from|of|through|among) (?:(?:the|our|my) )?(\w+)$")
_CONTACT_LABELS = words_in("email e-mail mail phone ph tel mob mobile")
_REACHES = frozenset({"phone", "email"})


class Writing:
    """Finds the texts a tool asks for."""

    def __init__(
        self, order: Order, passage: Passage, found: list[Entity], lexicon: Lexicon
    ) -> None:
        self._order, self._passage, self._found = order, passage, found
        self._things = frozenset(lexicon.id_words)
        self._announced = Announced(
            passage,
            found,
            self._things,
            order.own,
            frozenset(each.name for each in order.wanted if each.kind == "text"),
        )

    def spans(self, wanted: list[Wanted]) -> dict[str, Span]:
        spans = self._quoted(wanted)
        closed = list(spans.values())
        begun = {}
        for each in wanted:
            if each.name not in spans:
                begin = self._announced.begin(each.name, each.required, closed)
                if begin is not None:
                    begun[each.name] = begin
        for name, begin in begun.items():
            ends = [
                other
                for other in (*begun.values(), *(span.start for span in closed))
                if other > begin
            ]
            end = self._end_of_opening(name, begin)
            spans[name] = (
                Span(begin, end)
                if end
                else self._up_to(begin, min(ends, default=len(self._passage.text)), bool(ends))
            )
        return spans | self._reason(wanted, spans)

    def _end_of_opening(self, name: str, begin: int) -> int:
        """Where a reason ends that the sentence begins with: `because …, void it`. 0: it does not."""
        opens = name == "reason" and len(self._passage.before(begin, 4)) <= 2
        comma = self._passage.smooth.find(",", begin) if opens else -1
        return comma if comma > 0 and self._passage.after(comma, 1) else 0

    def _up_to(self, begin: int, end: int, cut: bool) -> Span:
        """The span up to the next text, without the words that announce that one."""
        if not cut:
            return Span(begin, end)
        words = list(self._passage.between(begin, end))
        while words and (words[-1].lower in FUNCTION_WORDS or self._is_cue(words[-1].lower)):
            words.pop()
        return Span(begin, words[-1].end if words else begin)

    def _is_cue(self, word: str) -> bool:
        texts = {each.name for each in self._order.wanted if each.kind == "text"}
        return word in texts or word in {"saying", "says", "message", "titled", "called"}

    def _quoted(self, wanted: list[Wanted]) -> dict[str, Span]:
        spans: dict[str, Span] = {}
        for each in wanted:
            named = None
            if "file" in each.words:
                named = file_named_in(self._passage)
            elif not each.required:
                named = code_after(self._passage, each.name)
            if named:
                spans[each.name] = named
        for quote in quoted_in(self._passage):
            name = self._owner(
                quote, [each for each in wanted if each.name not in spans], len(wanted)
            )
            if name:
                spans[name] = quote
        return spans

    def _owner(self, quote: Span, missing: list[Wanted], texts: int) -> str:
        for each in missing:
            if cue_before(self._passage, quote.start, each.name):
                return each.name
        required = [each.name for each in missing if each.required]
        if required:
            return required[0]
        return missing[0].name if missing and texts == 1 else ""

    def _reason(self, wanted: list[Wanted], spans: dict[str, Span]) -> dict[str, Span]:
        for each in wanted:
            if each.name == "reason" and each.name not in spans:
                added = after_comma(self._passage, self._found, self._order.own)
                return {each.name: added} if added else {}
        return {}

    def trimmed(self, name: str, span: Span, claim: Callable[[Entity], bool]) -> Span:
        """The span without what other arguments take from its ends."""
        if span.quoted:
            return span
        polite = name not in MESSAGES
        span = without_orders(self._passage, span, self._order.own, polite)
        while True:
            shorter = self._claimed_at_end(name, span, claim) or self._claimed_at_start(span, claim)
            if shorter is None:
                return span
            span = without_orders(self._passage, shorter, self._order.own, polite)

    def _claimed_at_end(
        self, name: str, span: Span, claim: Callable[[Entity], bool]
    ) -> Span | None:
        last = max(
            (each for each in self._found if span.start <= each.start and each.end <= span.end),
            key=lambda each: each.end,
            default=None,
        )
        if last is None or not self._only_units(last.end, span.end):
            return None
        start = self._announcement(last, span)
        whole = start <= span.start
        if whole or not self._may_leave(name, last, start) or not claim(last):
            return None
        return Span(span.start, start)

    def _claimed_at_start(self, span: Span, claim: Callable[[Entity], bool]) -> Span | None:
        first = min(
            (each for each in self._found if span.start <= each.start and each.end <= span.end),
            key=lambda each: each.start,
            default=None,
        )
        if (
            first is None
            or self._passage.smooth[span.start : first.start].strip(_EDGES)
            or first.end >= span.end
        ):
            return None
        if first.kind not in {"date", "time", "number", "money"} or not claim(first):
            return None
        return Span(self._after_units(first.end), span.end)

    def _after_units(self, end: int) -> int:
        word = next(iter(self._passage.after(end, 1)), None)
        return word.end if word and word.lower in {"x", "of", "each"} else end

    def _only_units(self, start: int, end: int) -> bool:
        """Whether after a find come only its unit, such as `metres` or `a metre`, and marks."""
        words = [word.lower for word in self._passage.between(start, end)]
        if self._passage.smooth.startswith("/", start):
            words = words[1:]
        if words[:1] and words[0] in _EACH:
            words = words[2:] if words[0] != "each" else words[1:]
        return not words or (len(words) == 1 and (words[0] in _UNITS or words[0] in FUNCTION_WORDS))

    def _announcement(self, entity: Entity, span: Span) -> int:
        """Where the words begin that lead up to a find at the end of a text: `for lead`, `by`."""
        start = entity.start
        for word in self._passage.before(entity.start, 4):
            thing = entity.kind.startswith("id") and word.lower in self._things
            label = entity.kind in _REACHES and word.lower in _CONTACT_LABELS
            if word.start < span.start or not (hanging(word.lower) or thing or label):
                break
            start = word.start
        return start

    def _may_leave(self, name: str, entity: Entity, start: int) -> bool:
        """Whether the text still says the same without the find."""
        led = self._passage.smooth[start : entity.start].split()
        if entity.kind in _REACHES:
            near = self._passage.before(entity.start, 1)
            word = near[0].lower if near else ""
            return word == "to" or word in _CONTACT_LABELS or word in self._order.own
        if entity.kind.startswith("id") or entity.kind == "name":
            return bool(led) and hanging(led[0].lower())
        return entity.kind != "suburb" or name in SEARCHING

    def text(self, span: Span, wanted: Wanted) -> str | None:
        """The text itself, as it was written; None where nothing is left of it."""
        raw = self._passage.text[span.start : span.end]
        return verbatim(raw) or None if span.quoted else _bare(raw, wanted, self._order.own)

    def left_over(self, used: list[Entity], wanted: Wanted) -> str | None:
        named = next((each for each in self._found if each.kind == "name"), None)
        if wanted.name in SEARCHING and named is not None:
            return str(named.value)
        own = self._order.own | self._mistyped_order()
        whole = self._used_whole(used)
        message = wanted.name in MESSAGES
        text = left_over(self._passage, self._found, whole, own, self._things, message)
        return _bare(text, wanted, own)

    def _used_whole(self, used: list[Entity]) -> list[Entity]:
        """The finds with their units: of `$38 a metre` nothing is left."""
        whole = []
        for each in used:
            after = self._passage.after(each.end, 2)
            end = each.end
            if each.kind in {"money", "number"} and after:
                if self._passage.smooth.startswith("/", end):
                    end = after[0].end
                elif after[0].lower in _EACH:
                    end = after[-1].end if after[0].lower != "each" else after[0].end
                elif each.kind == "number" and after[0].lower in _UNITS:
                    end = after[0].end
            whole.append(Entity(each.kind, each.value, each.text, each.start, end))
        return whole

    def _mistyped_order(self) -> frozenset[str]:
        """`viod invoice`: the first words of an order, one typo away from its own."""
        return frozenset(
            word.lower
            for word in self._passage.words[:4]
            if len(word.text) > 3
            and any(one_typo_apart(word.lower, own) for own in self._order.own)
        )


def _bare(text: str, wanted: Wanted, own: frozenset[str]) -> str | None:
    """The text without marks around it; what is written to somebody keeps its last one."""
    bare = (
        text.strip(_EDGES) if wanted.name in MESSAGES else text.strip(_EDGES).rstrip("." + _EDGES)
    )
    if wanted.name in SEARCHING:
        bare = _ARTICLE.sub("", _without_orders_behind(bare.rstrip("?! "), own))
        where = _WHERE.search(bare)
        bare = bare[: where.start()] if where and where[1].lower() in own else bare
    return verbatim(bare) or None


def _without_orders_behind(text: str, own: frozenset[str]) -> str:
    """`the gate code? find it`: a sentence behind it that only says what to do is no part of it."""
    end = _NEXT_SENTENCE.search(text)
    rest = text[end.end() :].lower().split() if end else []
    return (
        text[: end.start()] if end and all(w in own or w in FUNCTION_WORDS for w in rest) else text
    )
