"""Extractor of a tool's arguments from a clause and its context: entities, corrections, values."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.fields.addresses import addresses, postcodes, suburbs
from podium.jobs.operator.judgement.fields.argument_match import (
    Matching,
    choice,
    flag,
    named_choices,
    period_for,
)
from podium.jobs.operator.judgement.fields.dates import date_in, dates, periods
from podium.jobs.operator.judgement.fields.free_text import SEARCHING, Span
from podium.jobs.operator.judgement.fields.identifiers import emails, fits, ids, phones
from podium.jobs.operator.judgement.fields.names import CapitalNames, NameGround, SmallNames
from podium.jobs.operator.judgement.fields.numbers_and_times import (
    moments,
    numbers,
    sums_of_money,
    times,
)
from podium.jobs.operator.judgement.fields.pack_lexicon import (
    Lexicon,
    Order,
    Wanted,
    lexicon_of,
    pack_lexicon,
)
from podium.jobs.operator.judgement.fields.text_arguments import Writing
from podium.jobs.operator.judgement.fields.tokenized_text import Entity, Passage, settle, tidy
from podium.jobs.operator.models import Message

_TAKES_BACK = re.compile(
    r"\b(?:no,? (?:sorry|wait|make (?:it|that))|(?:sorry|wait|oops|whoops),? (?:no|i mean|make (?:it|that))|i mean|scratch that"
    r"|(?:or )?rather|actually,? (?:no|make (?:it|that))|correction|i meant|make that)\b"
)
_FARTHEST = 12
"""Characters between the words that take back and what takes the place: `no sorry, on the`."""


def without_corrected(passage: Passage, found: Sequence[Entity]) -> list[Entity]:
    """The finds without those of which a later one of the same kind says that they were wrong."""
    gone: set[int] = set()
    for said in _TAKES_BACK.finditer(passage.lower):
        instead = next((each for each in found if each.start >= said.end()), None)
        if instead is None or instead.start - said.end() > _FARTHEST:
            continue
        same = [each for each in found if each.end <= said.start() and each.kind == instead.kind]
        gone.update(each.start for each in same[-1:])
    return [each for each in found if each.start not in gone]


def entities(text: str, now: datetime, vocabulary: Mapping[str, tuple[str, ...]]) -> list[Entity]:
    """What is in the text, in its order; no two overlap. `now` is local time.

    Without a pack nobody knows what its things are called: ids are found by their shape alone. A
    `FieldExtractor` knows more.
    """
    return found_in(Passage(text, now), _lexicon(tuple(vocabulary.items())))


@lru_cache(maxsize=8)
def _lexicon(vocabulary: tuple[tuple[str, tuple[str, ...]], ...]) -> Lexicon:
    return lexicon_of(dict(vocabulary))


def found_in(passage: Passage, lexicon: Lexicon) -> list[Entity]:
    # People are found last: what is a number, a place or a day is nobody's name.
    certain = settle(
        [
            *emails(passage),
            *phones(passage, lexicon.area),
            *sums_of_money(passage),
            *dates(passage),
            *moments(passage),
            *times(passage),
            *addresses(passage),
            *ids(passage, lexicon),
        ],
        len(passage.text),
    )
    anchors = [each for each in certain if each.kind in {"phone", "email"}]
    places = _cued_first(settle([*certain, *suburbs(passage, lexicon)], len(passage.text)))
    people = _people(NameGround(passage, lexicon, anchors, places))
    vague = [*people, *periods(passage), *numbers(passage)]
    found = settle([*certain, *places, *postcodes(passage, places), *vague], len(passage.text))
    return without_corrected(passage, found)


def _people(ground: NameGround) -> list[Entity]:
    capitals = [] if ground.passage.shouted else CapitalNames(ground).found()
    return [*SmallNames(ground).found(), *capitals]


def _cued_first(found: list[Entity]) -> list[Entity]:
    """The places; of those that may as well be names, none where another is certain."""
    places = [each for each in found if each.kind == "suburb"]
    certain = [each for each in places if each.certainty > 38]
    return certain or places


_JOINT = re.compile(r",? {0,2}(?:(?:vic(?:toria)?|nsw|qld|sa|wa|tas|nt|act)\b,? ?)?", re.IGNORECASE)


def value_of(wanted: Wanted, entity: Entity, found: Sequence[Entity], passage: Passage) -> Json:
    """The find as this argument has it; None where it cannot be that."""
    if entity.kind == "address":
        return whole_address(entity, found, passage)
    if wanted.kind == "date" and entity.kind == "date" and wanted.past:
        return date_in(entity.text, passage.now, past=True)
    if entity.kind == "datetime":
        return {"date": entity.value[:10], "time": entity.value[11:16]}.get(
            wanted.kind, entity.value
        )
    if wanted.kind == "datetime":
        return _moment(entity, found, passage.now)
    return entity.value


def whole_address(street: Entity, found: Sequence[Entity], passage: Passage) -> str:
    """Number and street with the suburb and the postcode that directly follow."""
    end = street.end
    for kind in ("suburb", "postcode"):
        joint = _JOINT.match(passage.smooth, end)
        follows = joint.end() if joint else end
        next_one = next(
            (each for each in found if each.kind == kind and each.start == follows), None
        )
        end = next_one.end if next_one else end
    return tidy(passage.text[street.start : end])


def _moment(day: Entity, found: Sequence[Entity], now: datetime) -> str | None:
    time = next((each for each in found if each.kind == "time"), None)
    if time is None:
        return None
    moment = datetime.fromisoformat(f"{day.value}T{time.value}:00")
    return moment.replace(tzinfo=now.tzinfo).isoformat()


def given_value(wanted: Wanted, value: Json, found: Sequence[Entity]) -> Json:
    """A value of the context as the argument takes it: text such as `$500` or `0400 123 456` is read.

    `found` are the finds in that text. None: it is nothing the argument takes.
    """
    if wanted.accepts(value):
        return value
    if not isinstance(value, str):
        return None
    readings = [
        each.value
        for each in found
        if each.kind == wanted.kind and each.text.strip() == value.strip()
    ]
    if wanted.kind in {"money", "number"}:
        readings += [each.value for each in found if each.kind in {"money", "number"}]
    if wanted.kind == "flag":
        readings.append(
            {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
        )
    return next((each for each in readings if each is not None and wanted.accepts(each)), None)


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


_REMEMBERED = 32
"""Clauses whose finds are kept: one clause is read for several tools."""


class FieldExtractor:
    """Reads arguments against one pack. What it gives validates; what it is not sure of is left out."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._lexicon = pack_lexicon(pack)
        self._orders: dict[str, Order] = {}
        self._read: OrderedDict[tuple[str, datetime], tuple[Passage, list[Entity]]] = OrderedDict()

    def entities(self, text: str, now: datetime) -> list[Entity]:
        """What is in the text, in its order; ids with the kinds of this pack's things."""
        return list(self._reading(text, now)[1])

    def arguments(self, clause: str, tool: PackTool | Skill, message: Message) -> dict[str, Json]:
        """Arguments for the tool: from the context where it has one of that name, else from the clause.

        A value of the context that the argument cannot take is left out, and no words stand in for it.
        """
        order = self._order(tool)
        given = self._given(order, message)
        passage, found = self._reading(clause, message.now)
        asked = [each for each in order.wanted if each.name not in message.context]
        read = Filling(order, passage, found, self._lexicon, asked).values()
        return {
            each.name: (given | read)[each.name]
            for each in order.wanted
            if each.name in given or each.name in read
        }

    def choices(self, text: str, shape: Mapping[str, Json], now: datetime) -> list[Json]:
        """The values of an argument's `enum` that the text names."""
        return named_choices(self._reading(text, now)[0], shape, self._lexicon)

    def may_be_id(self, entity: Entity, kind: str) -> bool:
        """Whether a find may be the id of such a thing (`lead`), by its shape and the words before it."""
        return fits(entity, kind, frozenset({kind}), self._lexicon.kinds)

    def _given(self, order: Order, message: Message) -> dict[str, Json]:
        given: dict[str, Json] = {}
        for each in order.wanted:
            if each.name in message.context:
                value = message.context[each.name]
                found = (
                    self._reading(value, message.now)[1]
                    if isinstance(value, str) and len(value) < 200
                    else []
                )
                taken = given_value(each, value, found)
                if taken is not None:
                    given[each.name] = taken
        return given

    def _order(self, tool: PackTool | Skill) -> Order:
        order = self._orders.get(tool.name)
        if order is None:
            order = self._orders[tool.name] = Order(tool, self._pack)
        return order

    def _reading(self, text: str, now: datetime) -> tuple[Passage, list[Entity]]:
        known = self._read.get((text, now))
        if known is None:
            passage = Passage(text, now)
            known = self._read[text, now] = passage, found_in(passage, self._lexicon)
            if len(self._read) > _REMEMBERED:
                self._read.popitem(last=False)
        return known
