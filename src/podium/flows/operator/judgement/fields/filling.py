"""Fills a tool's arguments from one clause: texts mark their ground first, then finds go to arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.domain.model import Json
from podium.flows.operator.judgement.fields.choices import choice, flag
from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.lexicon import Lexicon
from podium.flows.operator.judgement.fields.matching import Matching, period_for
from podium.flows.operator.judgement.fields.passage import Passage
from podium.flows.operator.judgement.fields.texts import SEARCHING, Span
from podium.flows.operator.judgement.fields.valuing import value_of
from podium.flows.operator.judgement.fields.wanted import Order, Wanted
from podium.flows.operator.judgement.fields.writing import Writing


class Filling:
    """One clause read for one tool."""

    def __init__(
        self,
        order: Order,
        passage: Passage,
        found: list[Entity],
        lexicon: Lexicon,
        asked: Sequence[Wanted],
    ) -> None:
        self._order, self._passage, self._found, self._lexicon = order, passage, found, lexicon
        self._asked = asked
        self._values: dict[str, Json] = {}
        self._used: list[Entity] = []

    def values(self) -> dict[str, Json]:
        writing = Writing(self._order, self._passage, self._found, self._lexicon)
        spans = writing.spans([each for each in self._asked if each.kind == "text"])
        self._match([each for each in self._found if not _inside(each, spans.values())])
        for name in list(spans):
            spans[name] = writing.trimmed(name, spans[name], self._claim)
        self._mentioned(spans.values())
        self._choose(list(spans.values()))
        for each in self._asked:
            if each.name in spans:
                self._keep(each, writing.text(spans[each.name], each))
        self._left_over(writing)
        return self._values

    def _match(self, free: Sequence[Entity]) -> None:
        wanted = [each for each in self._asked if each.name not in self._values]
        for each, entity in Matching(self._order, self._passage, free, self._lexicon.kinds).run(
            wanted
        ):
            self._keep_found(each, entity)
        missing = [each for each in wanted if each.name not in self._values]
        for each, day in period_for(missing, free):
            self._keep(each, day)

    def _mentioned(self, spans: Iterable[Span]) -> None:
        """Days and ids that a text speaks of, for arguments that nothing else fills. They stay in the text."""
        open_spans = [span for span in spans if not span.quoted]
        spoken_of = [
            each
            for each in self._found
            if (each.kind in {"date", "time"} or each.kind.startswith("id:"))
            and _inside(each, open_spans)
        ]
        used = len(self._used)
        self._match(spoken_of)
        del self._used[used:]

    def _claim(self, entity: Entity) -> bool:
        """Whether an argument that is still missing takes this find out of a text."""
        before = len(self._used)
        self._match([entity])
        return len(self._used) > before

    def _keep_found(self, wanted: Wanted, entity: Entity) -> None:
        value = value_of(wanted, entity, self._found, self._passage)
        if wanted.many:
            value = [*self._values.get(wanted.name, ()), value]
        if self._keep(wanted, value):
            self._used.append(entity)

    def _keep(self, wanted: Wanted, value: Json) -> bool:
        if value is None or not wanted.accepts(value):
            return False
        self._values[wanted.name] = value
        return True

    def _choose(self, spans: Sequence[Span]) -> None:
        masked = bytearray(len(self._passage.text))
        certain = [(each.start, each.end) for each in self._found if each.certainty > 10]
        for start, end in (*certain, *((span.start, span.end) for span in spans)):
            masked[start:end] = b"\x01" * (end - start)
        self._mask_labels(masked)
        for wanted in self._asked:
            if wanted.kind == "choice":
                said = choice(self._passage, wanted.name, wanted.shape, self._lexicon, masked)
                self._keep(wanted, said.value if said else None)
            elif wanted.kind == "flag":
                self._keep(wanted, flag(self._passage, wanted.name))

    def _mask_labels(self, masked: bytearray) -> None:
        """`phone 0400…`: the word is what the number is, not how somebody came to us."""
        for each in self._found:
            if each.kind in {"phone", "email"}:
                for word in self._passage.before(each.start, 2):
                    if word.lower in {"phone", "ph", "email", "e-mail", "mail", "number", "is"}:
                        masked[word.start : word.end] = b"\x01" * (word.end - word.start)

    def _left_over(self, writing: Writing) -> None:
        """What is left is the one text that is still missing, if there is but one."""
        texts = [each for each in self._asked if each.kind == "text"]
        missing = [each for each in texts if each.name not in self._values]
        required = [each for each in missing if each.required]
        every_required = [
            each for each in self._order.wanted if each.kind == "text" and each.required
        ]
        if len(required) == 1 and len(every_required) == 1:
            self._keep(required[0], writing.left_over(self._used, required[0]))
        elif not every_required and not self._values:
            for each in missing:
                if each.name in SEARCHING:
                    self._keep(each, writing.left_over(self._used, each))


def _inside(entity: Entity, spans: Iterable[Span]) -> bool:
    return any(entity.touches(span.start, span.end) for span in spans)
