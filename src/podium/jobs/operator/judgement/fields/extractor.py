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
from podium.jobs.operator.judgement.fields.names import CapitalNames, NameContext, SmallNames
from podium.jobs.operator.judgement.fields.numbers_and_times import (
    numbers,
    sums_of_money,
    times,
    timestamps,
)
from podium.jobs.operator.judgement.fields.pack_lexicon import (
    Lexicon,
    Order,
    Parameter,
    lexicon_of,
    pack_lexicon,
)
from podium.jobs.operator.judgement.fields.text_arguments import Writing
from podium.jobs.operator.judgement.fields.tokenized_text import Entity, TokenizedText, settle, tidy
from podium.jobs.operator.models import Message, RecordMention

TAKES_BACK = re.compile(
    r"\b(?:no,? (?:sorry|wait|make (?:it|that))|(?:sorry|wait|oops|whoops),? (?:no|i mean|make (?:it|that))|i mean|scratch that"
    r"|(?:or )?rather|actually,? (?:no|make (?:it|that))|correction|i meant|make that)\b"
)
_FARTHEST = 12
"""Characters between the words that take back and what takes the place: `no sorry, on the`."""


def without_corrected(tokenized: TokenizedText, entities: Sequence[Entity]) -> list[Entity]:
    """The finds without those of which a later one of the same kind says that they were wrong."""
    gone: set[int] = set()
    for correction in TAKES_BACK.finditer(tokenized.lower):
        instead = next((entity for entity in entities if entity.start >= correction.end()), None)
        if instead is None or instead.start - correction.end() > _FARTHEST:
            continue
        same = [
            entity
            for entity in entities
            if entity.end <= correction.start() and entity.kind == instead.kind
        ]
        gone.update(entity.start for entity in same[-1:])
    return [entity for entity in entities if entity.start not in gone]


def entities(text: str, now: datetime, vocabulary: Mapping[str, tuple[str, ...]]) -> list[Entity]:
    """Find the entities of a text, in its order; no two overlap. `now` is local time.

    Without a pack nobody knows what its things are called: ids are found by their shape alone. A
    `FieldExtractor` knows more.
    """
    return entities_in(TokenizedText(text, now), _lexicon(tuple(vocabulary.items())))


@lru_cache(maxsize=8)
def _lexicon(vocabulary: tuple[tuple[str, tuple[str, ...]], ...]) -> Lexicon:
    return lexicon_of(dict(vocabulary))


def entities_in(tokenized: TokenizedText, lexicon: Lexicon) -> list[Entity]:
    # People are found last: what is a number, a place or a day is nobody's name.
    certain = settle(
        [
            *emails(tokenized),
            *phones(tokenized, lexicon.area),
            *sums_of_money(tokenized),
            *dates(tokenized),
            *timestamps(tokenized),
            *times(tokenized),
            *addresses(tokenized),
            *ids(tokenized, lexicon),
        ],
        len(tokenized.text),
    )
    anchors = [entity for entity in certain if entity.kind in {"phone", "email"}]
    cued_suburbs = _cued_first(
        settle([*certain, *suburbs(tokenized, lexicon)], len(tokenized.text))
    )
    people = _people(NameContext(tokenized, lexicon, anchors, cued_suburbs))
    vague = [*people, *periods(tokenized), *numbers(tokenized)]
    settled = settle(
        [*certain, *cued_suburbs, *postcodes(tokenized, cued_suburbs), *vague], len(tokenized.text)
    )
    return without_corrected(tokenized, settled)


def _people(context: NameContext) -> list[Entity]:
    capitals = [] if context.tokenized.shouted else CapitalNames(context).entities()
    return [*SmallNames(context).entities(), *capitals]


def _cued_first(entities: list[Entity]) -> list[Entity]:
    """The places; of those that may as well be names, none where another is certain."""
    suburbs = [entity for entity in entities if entity.kind == "suburb"]
    certain = [entity for entity in suburbs if entity.certainty > 38]
    return certain or suburbs


_JOINT = re.compile(r",? {0,2}(?:(?:vic(?:toria)?|nsw|qld|sa|wa|tas|nt|act)\b,? ?)?", re.IGNORECASE)


def value_of(
    parameter: Parameter, entity: Entity, entities: Sequence[Entity], tokenized: TokenizedText
) -> Json:
    """The find as this argument has it; None where it cannot be that."""
    if entity.kind == "address":
        return whole_address(entity, entities, tokenized)
    if parameter.kind == "date" and entity.kind == "date" and parameter.past:
        return date_in(entity.text, tokenized.now, past=True)
    if entity.kind == "datetime":
        return {"date": entity.value[:10], "time": entity.value[11:16]}.get(
            parameter.kind, entity.value
        )
    if parameter.kind == "datetime":
        return _timestamp(entity, entities, tokenized.now)
    return entity.value


def whole_address(street: Entity, entities: Sequence[Entity], tokenized: TokenizedText) -> str:
    """Number and street with the suburb and the postcode that directly follow."""
    end = street.end
    for kind in ("suburb", "postcode"):
        joint = _JOINT.match(tokenized.smooth, end)
        follows = joint.end() if joint else end
        next_one = next(
            (entity for entity in entities if entity.kind == kind and entity.start == follows), None
        )
        end = next_one.end if next_one else end
    return tidy(tokenized.text[street.start : end])


def _timestamp(day: Entity, entities: Sequence[Entity], now: datetime) -> str | None:
    time = next((entity for entity in entities if entity.kind == "time"), None)
    if time is None:
        return None
    timestamp = datetime.fromisoformat(f"{day.value}T{time.value}:00")
    return timestamp.replace(tzinfo=now.tzinfo).isoformat()


def accepted_value(parameter: Parameter, value: Json, entities: Sequence[Entity]) -> Json:
    """A value of the context as the argument takes it: text such as `$500` or `0400 123 456` is read.

    `found` are the finds in that text. None: it is nothing the argument takes.
    """
    if parameter.accepts(value):
        return value
    if not isinstance(value, str):
        return None
    readings = [
        entity.value
        for entity in entities
        if entity.kind == parameter.kind and entity.text.strip() == value.strip()
    ]
    if parameter.kind in {"money", "number"}:
        readings += [entity.value for entity in entities if entity.kind in {"money", "number"}]
    if parameter.kind == "flag":
        readings.append(
            {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
        )
    return next(
        (reading for reading in readings if reading is not None and parameter.accepts(reading)),
        None,
    )


class Filling:
    """One clause read for one tool."""

    def __init__(
        self,
        order: Order,
        tokenized: TokenizedText,
        entities: list[Entity],
        lexicon: Lexicon,
        asked: Sequence[Parameter],
    ) -> None:
        self._order, self._tokenized, self._entities, self._lexicon = (
            order,
            tokenized,
            entities,
            lexicon,
        )
        self._asked = asked
        self._values: dict[str, Json] = {}
        self._used: list[Entity] = []

    def values(self) -> dict[str, Json]:
        writing = Writing(self._order, self._tokenized, self._entities, self._lexicon)
        self._used += [entity for entity in self._entities if entity.kind == RECORD]
        spans = writing.spans([parameter for parameter in self._asked if parameter.kind == "text"])
        self._match([entity for entity in self._entities if not _inside(entity, spans.values())])
        for name in list(spans):
            spans[name] = writing.trimmed(name, spans[name], self._claim)
        self._mentioned(spans.values())
        self._choose(list(spans.values()))
        for parameter in self._asked:
            if parameter.name in spans:
                self._keep(parameter, writing.text(spans[parameter.name], parameter))
        self._left_over(writing)
        self._people()
        return self._values

    def _people(self) -> None:
        """Take the name of somebody who does the work for the one argument that can hold it."""
        open_names = [
            parameter for parameter in self._asked
            if parameter.kind == "name" and parameter.name not in self._values
        ]  # fmt: skip
        free = [
            entity for entity in self._entities
            if entity.certainty == _SURE_NAME and entity.value not in self._values.values()
        ]  # fmt: skip
        denied = [entity for entity in free if _is_denied(self._tokenized, entity)]
        free = [entity for entity in free if entity not in denied]
        if len(open_names) == len(free) == 1 and open_names[0].name != "name":
            self._keep(open_names[0], free[0].value)

    def _match(self, free: Sequence[Entity]) -> None:
        parameters = [parameter for parameter in self._asked if parameter.name not in self._values]
        for parameter, entity in Matching(
            self._order, self._tokenized, free, self._lexicon.kinds
        ).run(parameters):
            self._keep_entity(parameter, entity)
        missing = [parameter for parameter in parameters if parameter.name not in self._values]
        for parameter, day in period_for(missing, free):
            self._keep(parameter, day)

    def _mentioned(self, spans: Iterable[Span]) -> None:
        """Days and ids that a text speaks of, for arguments that nothing else fills. They stay in the text."""
        open_spans = [span for span in spans if not span.quoted]
        spoken_of = [
            entity
            for entity in self._entities
            if (entity.kind in {"date", "time"} or entity.kind.startswith("id:"))
            and _inside(entity, open_spans)
        ]
        used = len(self._used)
        self._match(spoken_of)
        del self._used[used:]

    def _claim(self, entity: Entity) -> bool:
        """Return whether an argument that is still missing takes this find out of a text."""
        before = len(self._used)
        self._match([entity])
        return len(self._used) > before

    def _keep_entity(self, parameter: Parameter, entity: Entity) -> None:
        value = value_of(parameter, entity, self._entities, self._tokenized)
        if parameter.many:
            value = [*self._values.get(parameter.name, ()), value]
        if self._keep(parameter, value):
            self._used.append(entity)

    def _keep(self, parameter: Parameter, value: Json) -> bool:
        if value is None or not parameter.accepts(value):
            return False
        self._values[parameter.name] = value
        return True

    def _choose(self, spans: Sequence[Span]) -> None:
        masked = bytearray(len(self._tokenized.text))
        certain = [(entity.start, entity.end) for entity in self._entities if entity.certainty > 10]
        for start, end in (*certain, *((span.start, span.end) for span in spans)):
            masked[start:end] = b"\x01" * (end - start)
        self._mask_labels(masked)
        for parameter in self._asked:
            if parameter.kind == "choice":
                match = choice(
                    self._tokenized, parameter.name, parameter.shape, self._lexicon, masked
                )
                self._keep(parameter, match.value if match else None)
            elif parameter.kind == "flag":
                self._keep(parameter, flag(self._tokenized, parameter.name))

    def _mask_labels(self, masked: bytearray) -> None:
        """`phone 0400…`: the word is what the number is, not how somebody came to us."""
        for entity in self._entities:
            if entity.kind in {"phone", "email"}:
                for token in self._tokenized.before(entity.start, 2):
                    if token.lower in {"phone", "ph", "email", "e-mail", "mail", "number", "is"}:
                        masked[token.start : token.end] = b"\x01" * (token.end - token.start)

    def _left_over(self, writing: Writing) -> None:
        """Take the rest as the one text that is still missing, if there is but one."""
        texts = [parameter for parameter in self._asked if parameter.kind == "text"]
        missing = [parameter for parameter in texts if parameter.name not in self._values]
        required = [parameter for parameter in missing if parameter.required]
        every_required = [
            parameter
            for parameter in self._order.parameters
            if parameter.kind == "text" and parameter.required
        ]
        if len(required) == 1 and len(every_required) == 1:
            self._keep(required[0], writing.left_over(self._used, required[0]))
        elif not every_required and not self._values:
            for parameter in missing:
                if parameter.name in SEARCHING:
                    self._keep(parameter, writing.left_over(self._used, parameter))


def _is_denied(tokenized: TokenizedText, entity: Entity) -> bool:
    """`not Dave`, `instead of Dave`."""
    before = [token.lower for token in tokenized.before(entity.start, 2)]
    return bool({"not", "of"} & set(before[:1])) or before[:2] == ["of", "instead"]


def _inside(entity: Entity, spans: Iterable[Span]) -> bool:
    return any(entity.touches(span.start, span.end) for span in spans)


RECORD = "record"
"""Kind of what names a record: no argument takes it as it stands."""
_ALSO_PLACES = ("suburb", "address", "phone", "email", "postcode")
_SURE_RECORD, _SURE_NAME = 97, 58


def with_records(
    tokenized: TokenizedText,
    entities: Sequence[Entity],
    mentions: Sequence[RecordMention],
    names: Sequence[str],
) -> list[Entity]:
    """The finds with the mentions of records, and with the names that records have for people who do the work."""
    if not mentions and not names:
        return list(entities)
    found = list(entities)
    records = []
    for mention in mentions:
        start = tokenized.lower.find(mention.text.lower())
        if start >= 0:
            end = start + len(mention.text)
            records.append(
                Entity(RECORD, mention.reach, tokenized.text[start:end], start, end, _SURE_RECORD)
            )
            found = [
                entity
                for entity in found
                if not entity.touches(start, end) or entity.kind in _ALSO_PLACES
            ]
    for token in tokenized.tokens:
        bare = token.lower.removesuffix("'s")
        for name in names:
            own = name.lower()
            if own == bare or f"{own}s" == bare:
                taken = any(entity.touches(token.start, token.end) for entity in (*found, *records))
                if not taken:
                    end = token.start + len(own)
                    found.append(
                        Entity(
                            "name",
                            name,
                            tokenized.text[token.start : end],
                            token.start,
                            token.end,
                            _SURE_NAME,
                        )
                    )
    return sorted([*found, *records], key=lambda entity: entity.start)


def _concerns(order: Order, mention: RecordMention) -> bool:
    """Return whether an argument can be an id of what a mention leads to."""
    return any(parameter.kind in mention.reach for parameter in order.parameters)


_REMEMBERED = 32
"""Clauses whose finds are kept: one clause is read for several tools."""


class FieldExtractor:
    """Reads arguments against one pack. What it gives validates; what it is not sure of is left out."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._lexicon = pack_lexicon(pack)
        self._orders: dict[str, Order] = {}
        self._read: OrderedDict[tuple[str, datetime], tuple[TokenizedText, list[Entity]]] = (
            OrderedDict()
        )

    def entities(
        self,
        text: str,
        now: datetime,
        mentions: Sequence[RecordMention] = (),
        names: Sequence[str] = (),
    ) -> list[Entity]:
        """Find the entities of a text, in its order; ids with the kinds of this pack's things."""
        tokenized, entities = self._reading(text, now)
        return with_records(tokenized, entities, mentions, names)

    def arguments(self, clause: str, tool: PackTool | Skill, message: Message) -> dict[str, Json]:
        """Arguments for the tool: from the context where it has one of that name, else from the clause.

        A value of the context that the argument cannot take is left out, and no words stand in for it.
        """
        order = self._order(tool)
        from_context = self._from_context(order, message)
        tokenized, entities = self._reading(clause, message.now)
        entities = with_records(
            tokenized,
            entities,
            [one for one in message.mentions if _concerns(order, one)],
            message.names,
        )
        asked = [
            parameter for parameter in order.parameters if parameter.name not in message.context
        ]
        read = Filling(order, tokenized, entities, self._lexicon, asked).values()
        return {
            parameter.name: (from_context | read)[parameter.name]
            for parameter in order.parameters
            if parameter.name in from_context or parameter.name in read
        }

    def answer(
        self, name: str, text: str, tool: PackTool | Skill, message: Message, *, whole: bool
    ) -> Json:
        """Read the answer to a question for one argument; None where it is none.

        With `whole` the text may be the value itself. An id is never that: it must look like one.
        """
        read = self.arguments(text, tool, message)
        parameter = next(one for one in self._order(tool).parameters if one.name == name)
        if name in read or not whole:
            return read.get(name)
        entities = self._reading(text, message.now)[1]
        if parameter.kind == "choice":
            named = self.choices(text, parameter.shape, message.now)
            return named[0] if len(named) == 1 else None
        if parameter.kind.startswith("id:"):
            found = [entity.value for entity in entities if entity.kind in ("id", parameter.kind)]
            return found[0] if len(found) == 1 and parameter.accepts(found[0]) else None
        return accepted_value(parameter, text, entities)

    def choices(self, text: str, shape: Mapping[str, Json], now: datetime) -> list[Json]:
        """The values of an argument's `enum` that the text names."""
        return named_choices(self._reading(text, now)[0], shape, self._lexicon)

    def may_be_id(self, entity: Entity, kind: str) -> bool:
        """Return whether a find may be the id of such a thing (`lead`), by its shape and the words before it."""
        return fits(entity, kind, frozenset({kind}), self._lexicon.kinds)

    def _from_context(self, order: Order, message: Message) -> dict[str, Json]:
        values: dict[str, Json] = {}
        for parameter in order.parameters:
            if parameter.name in message.context:
                value = message.context[parameter.name]
                entities = (
                    self._reading(value, message.now)[1]
                    if isinstance(value, str) and len(value) < 200
                    else []
                )
                taken = accepted_value(parameter, value, entities)
                if taken is not None:
                    values[parameter.name] = taken
        return values

    def _order(self, tool: PackTool | Skill) -> Order:
        order = self._orders.get(tool.name)
        if order is None:
            order = self._orders[tool.name] = Order(tool, self._pack)
        return order

    def _reading(self, text: str, now: datetime) -> tuple[TokenizedText, list[Entity]]:
        cached = self._read.get((text, now))
        if cached is None:
            tokenized = TokenizedText(text, now)
            cached = self._read[text, now] = tokenized, entities_in(tokenized, self._lexicon)
            if len(self._read) > _REMEMBERED:
                self._read.popitem(last=False)
        return cached
