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
    Parameter,
    one_typo_apart,
)
from podium.jobs.operator.judgement.fields.tokenized_text import (
    STOPWORDS,
    Entity,
    TokenizedText,
    token_set,
    verbatim,
)

_EDGES = " \t\n,;:-–—=>@/("
_UNITS = token_set(
    "metres metre meters meter m lm hours hour hrs hr sheets lengths litres litre days x of"
)
_PER_UNIT = ("each", "a", "an", "per")
_ARTICLE = re.compile(r"^(?:(?:the|an?) )?(?:words? (?=\w))?", re.IGNORECASE)
_NEXT_SENTENCE = re.compile(r"[.?!;] +")
_WHERE = re.compile(r" (?:in|on|from|of|through|among) (?:(?:the|our|my) )?(\w+)$")
_CONTACT_LABELS = token_set("email e-mail mail phone ph tel mob mobile")
_REACHES = frozenset({"phone", "email"})


class Writing:
    """Finds the texts a tool asks for."""

    def __init__(
        self, order: Order, tokenized: TokenizedText, entities: list[Entity], lexicon: Lexicon
    ) -> None:
        self._order, self._tokenized, self._entities = order, tokenized, entities
        self._things = frozenset(lexicon.kinds_by_name)
        self._announced = Announced(
            tokenized,
            entities,
            self._things,
            order.own,
            frozenset(parameter.name for parameter in order.parameters if parameter.kind == "text"),
        )

    def spans(self, parameters: list[Parameter]) -> dict[str, Span]:
        spans = self._quoted(parameters)
        closed = list(spans.values())
        begun = {}
        for parameter in parameters:
            if parameter.name not in spans:
                begin = self._announced.begin(parameter.name, parameter.required, closed)
                if begin is not None:
                    begun[parameter.name] = begin
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
                else self._up_to(begin, min(ends, default=len(self._tokenized.text)), bool(ends))
            )
        return spans | self._reason(parameters, spans)

    def _end_of_opening(self, name: str, begin: int) -> int:
        """Find the end of a reason that opens the sentence: `because …, void it`. 0: it does not."""
        opens = name == "reason" and len(self._tokenized.before(begin, 4)) <= 2
        comma = self._tokenized.smooth.find(",", begin) if opens else -1
        return comma if comma > 0 and self._tokenized.after(comma, 1) else 0

    def _up_to(self, begin: int, end: int, cut: bool) -> Span:
        """The span up to the next text, without the words that announce that one."""
        if not cut:
            return Span(begin, end)
        tokens = list(self._tokenized.between(begin, end))
        while tokens and (tokens[-1].lower in STOPWORDS or self._is_cue(tokens[-1].lower)):
            tokens.pop()
        return Span(begin, tokens[-1].end if tokens else begin)

    def _is_cue(self, token: str) -> bool:
        texts = {parameter.name for parameter in self._order.parameters if parameter.kind == "text"}
        return token in texts or token in {"saying", "says", "message", "titled", "called"}

    def _quoted(self, parameters: list[Parameter]) -> dict[str, Span]:
        spans: dict[str, Span] = {}
        for parameter in parameters:
            named = None
            if "file" in parameter.name_tokens:
                named = file_named_in(self._tokenized)
            elif not parameter.required:
                named = code_after(self._tokenized, parameter.name)
            if named:
                spans[parameter.name] = named
        for quote in quoted_in(self._tokenized):
            name = self._owner(
                quote,
                [parameter for parameter in parameters if parameter.name not in spans],
                len(parameters),
            )
            if name:
                spans[name] = quote
        return spans

    def _owner(self, quote: Span, missing: list[Parameter], texts: int) -> str:
        for parameter in missing:
            if cue_before(self._tokenized, quote.start, parameter.name):
                return parameter.name
        required = [parameter.name for parameter in missing if parameter.required]
        if required:
            return required[0]
        return missing[0].name if missing and texts == 1 else ""

    def _reason(self, parameters: list[Parameter], spans: dict[str, Span]) -> dict[str, Span]:
        for parameter in parameters:
            if parameter.name == "reason" and parameter.name not in spans:
                added = after_comma(self._tokenized, self._entities, self._order.own)
                return {parameter.name: added} if added else {}
        return {}

    def trimmed(self, name: str, span: Span, claim: Callable[[Entity], bool]) -> Span:
        """The span without what other arguments take from its ends."""
        if span.quoted:
            return span
        polite = name not in MESSAGES
        span = without_orders(self._tokenized, span, self._order.own, polite)
        while True:
            shorter = self._claimed_at_end(name, span, claim) or self._claimed_at_start(span, claim)
            if shorter is None:
                return span
            span = without_orders(self._tokenized, shorter, self._order.own, polite)

    def _claimed_at_end(
        self, name: str, span: Span, claim: Callable[[Entity], bool]
    ) -> Span | None:
        last = max(
            (
                entity
                for entity in self._entities
                if span.start <= entity.start and entity.end <= span.end
            ),
            key=lambda entity: entity.end,
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
            (
                entity
                for entity in self._entities
                if span.start <= entity.start and entity.end <= span.end
            ),
            key=lambda entity: entity.start,
            default=None,
        )
        if (
            first is None
            or self._tokenized.smooth[span.start : first.start].strip(_EDGES)
            or first.end >= span.end
        ):
            return None
        if first.kind not in {"date", "time", "number", "money"} or not claim(first):
            return None
        return Span(self._after_units(first.end), span.end)

    def _after_units(self, end: int) -> int:
        token = next(iter(self._tokenized.after(end, 1)), None)
        return token.end if token and token.lower in {"x", "of", "each"} else end

    def _only_units(self, start: int, end: int) -> bool:
        """Return whether after a find come only its unit, such as `metres` or `a metre`, and marks."""
        tokens = [token.lower for token in self._tokenized.between(start, end)]
        if self._tokenized.smooth.startswith("/", start):
            tokens = tokens[1:]
        if tokens[:1] and tokens[0] in _PER_UNIT:
            tokens = tokens[2:] if tokens[0] != "each" else tokens[1:]
        return not tokens or (len(tokens) == 1 and (tokens[0] in _UNITS or tokens[0] in STOPWORDS))

    def _announcement(self, entity: Entity, span: Span) -> int:
        """Find the start of the words that lead up to an entity at the end of a text: `for lead`, `by`."""
        start = entity.start
        for token in self._tokenized.before(entity.start, 4):
            thing = entity.kind.startswith("id") and token.lower in self._things
            label = entity.kind in _REACHES and token.lower in _CONTACT_LABELS
            if token.start < span.start or not (hanging(token.lower) or thing or label):
                break
            start = token.start
        return start

    def _may_leave(self, name: str, entity: Entity, start: int) -> bool:
        """Return whether the text still says the same without the find."""
        led = self._tokenized.smooth[start : entity.start].split()
        if entity.kind in _REACHES:
            near = self._tokenized.before(entity.start, 1)
            nearest = near[0].lower if near else ""
            return nearest == "to" or nearest in _CONTACT_LABELS or nearest in self._order.own
        if entity.kind.startswith("id") or entity.kind == "name":
            return bool(led) and hanging(led[0].lower())
        return entity.kind != "suburb" or name in SEARCHING

    def text(self, span: Span, parameter: Parameter) -> str | None:
        """The text itself, as it was written; None where nothing is left of it."""
        raw = self._tokenized.text[span.start : span.end]
        return verbatim(raw) or None if span.quoted else _bare(raw, parameter, self._order.own)

    def left_over(self, used: list[Entity], parameter: Parameter) -> str | None:
        named = next((entity for entity in self._entities if entity.kind == "name"), None)
        if parameter.name in SEARCHING and named is not None:
            return str(named.value)
        own = self._order.own | self._mistyped_order()
        whole = self._used_whole(used)
        message = parameter.name in MESSAGES
        text = left_over(self._tokenized, self._entities, whole, own, self._things, message)
        return _bare(text, parameter, own)

    def _used_whole(self, used: list[Entity]) -> list[Entity]:
        """The finds with their units: of `$38 a metre` nothing is left."""
        whole = []
        for entity in used:
            after = self._tokenized.after(entity.end, 2)
            end = entity.end
            if entity.kind in {"money", "number"} and after:
                if self._tokenized.smooth.startswith("/", end):
                    end = after[0].end
                elif after[0].lower in _PER_UNIT:
                    end = after[-1].end if after[0].lower != "each" else after[0].end
                elif entity.kind == "number" and after[0].lower in _UNITS:
                    end = after[0].end
            whole.append(Entity(entity.kind, entity.value, entity.text, entity.start, end))
        return whole

    def _mistyped_order(self) -> frozenset[str]:
        """`viod invoice`: the first words of an order, one typo away from its own."""
        return frozenset(
            token.lower
            for token in self._tokenized.tokens[:4]
            if len(token.text) > 3
            and any(one_typo_apart(token.lower, own) for own in self._order.own)
        )


def _bare(text: str, parameter: Parameter, own: frozenset[str]) -> str | None:
    """The text without marks around it; what is written to somebody keeps its last one."""
    bare = (
        text.strip(_EDGES)
        if parameter.name in MESSAGES
        else text.strip(_EDGES).rstrip("." + _EDGES)
    )
    if parameter.name in SEARCHING:
        bare = _ARTICLE.sub("", _without_orders_behind(bare.rstrip("?! "), own))
        where = _WHERE.search(bare)
        bare = bare[: where.start()] if where and where[1].lower() in own else bare
    return verbatim(bare) or None


def _without_orders_behind(text: str, own: frozenset[str]) -> str:
    """`the gate code? find it`: a sentence behind it that only says what to do is no part of it."""
    end = _NEXT_SENTENCE.search(text)
    rest = text[end.end() :].lower().split() if end else []
    return text[: end.start()] if end and all(w in own or w in STOPWORDS for w in rest) else text
