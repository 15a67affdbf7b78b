"""ReferenceResolution: the arguments that a message leaves to records, from its words or from the conversation before it."""

from __future__ import annotations

import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace

from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.embedded.tokens import ACTION_VERBS, READ, stem
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.fields.pack_lexicon import (
    Parameter,
    kind_of,
    pack_lexicon,
    properties_of,
)
from podium.jobs.operator.judgement.ground_check import tokens_of
from podium.jobs.operator.judgement.judge import filled_by_others, missing_of
from podium.jobs.operator.judgement.tiers import ASKS_A_PERSON
from podium.jobs.operator.mentions import scope_of
from podium.jobs.operator.models import (
    Intent,
    Message,
    Reading,
    RecordMention,
    RecordRef,
    ResolvedRecord,
    ToolIntent,
)
from podium.jobs.operator.records import NamedRecord, PackRecords, Record
from podium.jobs.operator.references import Mention, References, references_in

MAX_OPTIONS = 9
_CONTACTS = ("phone", "email")
_PLAIN = {
    "phone": re.compile(r"\+?\d{6,16}"),
    "email": re.compile(r"[\w.+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", re.ASCII),
}
_THING = re.compile(r"\b(?:it|that|this)(?: one)?\b", re.IGNORECASE)
_PERSON = re.compile(r"\b(?:him|her|them|he|she|they)\b", re.IGNORECASE)

ReadAlone = Callable[[Message], Reading]
"""Podium's own reading of a message. No model is asked."""


@dataclass(frozen=True)
class ReferenceResolution:
    """Arguments for each call of a reading, or the question which record is meant."""

    reading: Reading
    text: str
    """The message as it was read: with the ids of records, where that made it clear."""
    arguments: tuple[Mapping[str, Json], ...]
    records: tuple[tuple[ResolvedRecord, ...], ...]
    question: str = ""
    options: tuple[RecordRef, ...] = ()
    option_field: str = ""


@dataclass(frozen=True)
class _RecordMatch:
    """The record for one argument; or several, or none, with the question about them."""

    record: Record | None = None
    question: str = ""
    options: tuple[Record, ...] = ()


_NOTHING = _RecordMatch()


def unresolved(reading: Reading, text: str) -> ReferenceResolution:
    """The reading with nothing added to it."""
    nothing: Mapping[str, Json] = {}
    count = len(reading.calls)
    return ReferenceResolution(reading, text, (nothing,) * count, ((),) * count)


@dataclass
class Resolver:
    """Resolves the references of one message."""

    pack: Pack
    extract: FieldExtractor
    records: PackRecords
    message: Message
    _here: list[Record] = field(default_factory=list)
    """Records of earlier calls of this message, the newest first."""
    _problem: _RecordMatch = _NOTHING
    _field: str = ""
    _text: str = ""

    async def resolve(
        self, reading: Reading, read_alone: ReadAlone | None = None
    ) -> ReferenceResolution:
        """Fill what the calls lack. `read_alone` reads the message again with ids in place of pronouns."""
        self._text = self.message.text
        if read_alone and _differs(reading, read_alone(self.message)):
            # A model's own idea of what comes before and after is for people to see as it is.
            return unresolved(reading, self._text)
        reading = await self._with_ids(reading, read_alone) if read_alone else reading
        if reading.intent is not Intent.EXECUTE or not reading.calls:
            return unresolved(reading, self._text)
        arguments, records = [], []
        for intent in reading.calls:
            values, references = await self._intent(intent, reading.calls)
            arguments.append(values)
            records.append(references)
        found = self._problem
        options = tuple([await self._ref(record) for record in found.options])
        return ReferenceResolution(
            reading,
            self._text,
            tuple(arguments),
            tuple(records),
            found.question,
            options,
            self._field,
        )

    async def one(self, kind: str) -> Record | None:
        """The one record of a kind that the message means, whatever it asks for."""
        return (
            await self._meant(kind, self._references_in(self.message.about or self.message.text))
        ).record

    # --- one call ----------------------------------------------------------------------------

    async def _intent(
        self, intent: ToolIntent, calls: Sequence[ToolIntent]
    ) -> tuple[dict[str, Json], tuple[ResolvedRecord, ...]]:
        entry = self.pack.tool(intent.tool) or self.pack.skill(intent.tool)
        if entry is None:
            return {}, ()
        lacking = set(missing_of([intent], self.pack, self.message)) - filled_by_others(
            intent, calls, self.pack
        )
        references = self._references(intent)
        kinds = [one.kind.removeprefix("id:") for one in self._parameters(entry)]
        asked = [kind for kind in kinds if kind in self.records.kinds]
        values: dict[str, Json] = {}
        resolved: list[ResolvedRecord] = []
        for parameter in self._parameters(entry):
            name = parameter.name
            if name in self.message.context or name in values:
                continue
            if self._is_given_id(parameter, intent):
                resolved += await self._known(parameter, intent.arguments)
                continue
            others = [kind for kind in asked if f"id:{kind}" != parameter.kind]
            left = await self._without_others(parameter, references, others)
            match = await self._match(parameter, intent, entry, name in lacking, left)
            if match.record and (already := self._already_so(entry, name, match.record)):
                self._problem, self._field = _RecordMatch(question=already), name
                continue
            value = self._value(parameter, match.record) if match.record else None
            if match.record is None or value is None:
                self._ask(name, match, parameter.kind, needed=name in lacking)
                continue
            self._here.insert(0, match.record)
            values[name] = value
            values |= dict(self._along(entry, match.record, intent, values, lacking))
            resolved += [
                await self._resolved(field, values[field], match.record)
                for field in values
                if field not in {one.field for one in resolved}
            ]
        return values, tuple(resolved)

    async def _without_others(
        self, parameter: Parameter, references: References, others: Sequence[str]
    ) -> References:
        """The references without the words that name a record of another kind: `lend Momo to Jonas`."""
        kind = parameter.kind.removeprefix("id:")
        if not others or not references.words or kind not in self.records.kinds:
            return references
        own = {
            word for one in await self.records.named(kind, references.words) for word in one.words
        }
        named = {
            word
            for other in others
            for one in await self.records.named(other, references.words)
            for word in one.words
        }
        words = tuple(word for word in references.words if word in own or word not in named)
        return replace(references, words=words, pointed=references.pointed & frozenset(words))

    def _is_given_id(self, parameter: Parameter, intent: ToolIntent) -> bool:
        given = parameter.name in intent.arguments and not self.message.about
        return given and parameter.kind.startswith("id:")

    async def _match(
        self,
        parameter: Parameter,
        intent: ToolIntent,
        entry: PackTool | Skill,
        lacks: bool,
        references: References,
    ) -> _RecordMatch:
        """The record for one argument, where it takes one and lacks it."""
        given, kind = parameter.name in intent.arguments, parameter.kind.removeprefix("id:")
        if "x-resolve" in parameter.shape and any(one.newest for one in references.phrases):
            return _NOTHING
        if parameter.kind.startswith("id:") and kind in self.records.kinds:
            # Another record is wanted in the place of a given one: `same for Sarah`.
            named = parameter.required and bool(scope_of(self._named_here, intent.source))
            return await self._for_id(kind, lacks or given or named, entry, references)
        if parameter.kind in _CONTACTS and given and not self.message.about:
            return await self._placed(parameter.kind, str(intent.arguments[parameter.name]))
        if parameter.kind in _CONTACTS and (given or lacks):
            return await self._for_contact(parameter.kind, references)
        return _NOTHING

    def _ask(self, name: str, match: _RecordMatch, kind: str, *, needed: bool) -> None:
        """Note the first question: which record is meant, or what it does not say."""
        if match.record is not None:
            match = _RecordMatch(question=f"{_named(match.record)} has no {kind}. What is it?")
        elif not needed:
            return
        if match.question and not self._problem.question:
            self._problem, self._field = match, name

    def _already_so(self, entry: PackTool | Skill, name: str, record: Record) -> str:
        """The question about a call whose result is there already, by the rows that would prove it."""
        # From T2 on a person decides about it anyway.
        checks = entry.verify if isinstance(entry, PackTool) and entry.tier < ASKS_A_PERSON else ()
        for check in checks:
            expected = {
                column: value
                for column, value in check.expect.items()
                if not (isinstance(value, str) and value.startswith("$"))
            }
            same = expected and all(
                record.row.get(column) == value for column, value in expected.items()
            )
            if (
                same
                and check.where == {"id": f"$arg.{name}"}
                and len(expected) == len(check.expect)
            ):
                status = ", ".join(f"{column} {value}" for column, value in expected.items())
                label = record.label or record.id
                return f"{_word(record.kind).capitalize()} {label!r} has {status} already. What should be done?"
        return ""

    def _parameters(self, entry: PackTool | Skill) -> Iterator[Parameter]:
        """Ids first: what else is missing may be known of the record."""
        required = entry.input_schema.get("required", ())
        shapes = properties_of(entry)
        for name in sorted(
            shapes, key=lambda name: not kind_of(name, shapes[name]).startswith("id:")
        ):
            kind = kind_of(name, shapes[name])
            yield Parameter(name, kind, shapes[name], name in required, entry.input_schema)

    def _references(self, intent: ToolIntent) -> References:
        rewritten = self._text != self.message.text
        text = self.message.about or (not rewritten and intent.source) or self.message.text
        return self._references_in(
            text, () if self.message.about else tuple(intent.arguments.values())
        )

    def _references_in(self, text: str, values: Sequence[Json] = ()) -> References:
        lexicon = pack_lexicon(self.pack)
        entities = self.extract.entities(text, self.message.now)
        return references_in(text, entities, lexicon, lexicon.pack_tokens, values)

    async def _known(
        self, parameter: Parameter, arguments: Mapping[str, Json]
    ) -> list[ResolvedRecord]:
        """The record of an id that stands in the message: put there for a name, or known from before."""
        kind, value = parameter.kind.removeprefix("id:"), str(arguments.get(parameter.name))
        placed = f"{kind} {value}" in self._text and value not in self.message.text
        spoken_of = any((ref.kind, ref.id) == (kind, value) for ref in self.message.focus)
        record = await self.records.by_id(kind, value) if placed or spoken_of else None
        if record is None:
            return []
        self._here.insert(0, record)
        return [await self._resolved(parameter.name, record.id, record)]

    async def _for_id(
        self, kind: str, needed: bool, entry: PackTool | Skill, references: References
    ) -> _RecordMatch:
        if not needed and not _reads(entry) and self._named_here:
            return await self._beside(kind, references)
        if not needed:
            # A list may be narrowed down; what changes something is asked for what it needs, and no more.
            if not _reads(entry) or not (references.pointed or references.person):
                return _NOTHING
            found = await self._meant(kind, references)
            return found if found.record else _NOTHING
        return await self._meant(kind, references)

    async def _placed(self, contact: str, value: str) -> _RecordMatch:
        """The person whose address took the place of `him` in the message."""
        if value in self.message.text or value not in self._text:
            return _NOTHING
        for lookup in self.pack.registry.lookup:
            if lookup.person and contact in lookup.gives:
                matches = await self.records.named(lookup.kind, [value])
                return _RecordMatch(matches[0].record) if len(matches) == 1 else _NOTHING
        return _NOTHING

    async def _beside(self, kind: str, references: References) -> _RecordMatch:
        """The record for an argument that may be left out: one that is named itself, or by the noun of its thing."""
        mentions = scope_of(self._named_here, references.text)
        nouns = pack_lexicon(self.pack).kinds_by_name
        named = any(ref.kind == kind for mention in mentions for ref in mention.records)
        if not named and not any(nouns.get(word) == kind for word in tokens_of(references.text)):
            return _NOTHING
        found = await self._by_mentions(kind, references)
        return found if found and found.record else _NOTHING

    async def _for_contact(self, contact: str, references: References) -> _RecordMatch:
        """The person that a message goes to: a record that has such an address."""
        lookups = [lookup for lookup in self.pack.registry.lookup if contact in lookup.gives]
        for lookup in sorted(lookups, key=lambda lookup: not lookup.person):
            named = scope_of(self._named_here, references.text)
            if references.pointed or references.words or references.anaphoric or named:
                return await self._meant(lookup.kind, references)
        return _NOTHING

    def _value(self, parameter: Parameter, record: Record) -> Json:
        """The record's value for an argument; None where it has none that fits."""
        if parameter.kind.startswith("id:"):
            return record.id
        lookup = self.pack.lookup(record.kind)
        value = record.row.get(lookup.gives[parameter.kind]) if lookup else None
        return value if value not in (None, "") and parameter.accepts(value) else None

    def _along(
        self,
        entry: PackTool | Skill,
        record: Record,
        intent: ToolIntent,
        values: Mapping[str, Json],
        lacking: set[str],
    ) -> list[tuple[str, Json]]:
        """Values that the record gives beside: those that the call still lacks, and with a contact its id."""
        lookup = self.pack.lookup(record.kind)
        more: list[tuple[str, Json]] = []
        for parameter in self._parameters(entry):
            name = parameter.name
            if name in intent.arguments or name in values or name in self.message.context:
                continue
            column = lookup.gives.get(parameter.kind) if lookup else None
            if parameter.kind == f"id:{record.kind}" and not parameter.required:
                more.append((name, record.id))
            elif name in lacking and column and parameter.accepts(record.row.get(column)):
                more.append((name, record.row[column]))
        return more

    # --- one record --------------------------------------------------------------------------

    async def _meant(self, kind: str, references: References) -> _RecordMatch:
        """The record of a kind that is meant: by its words, by its place in a list, by a pronoun."""
        if self._named_here and (found := await self._by_mentions(kind, references)):
            return found
        if references.words and (found := await self._by_words(kind, references)) is not None:
            return found
        if references.pointed:
            missing = _in_order(references.pointed, references)
            return _RecordMatch(
                question=f"No {_word(kind)} matches {missing!r}. Which {_word(kind)} is it?"
            )
        if references.ordinal and (record := await self._by_place(kind, references.ordinal)):
            return _RecordMatch(record)
        if any(phrase.newest for phrase in references.phrases if phrase.kind == kind):
            return await self._newest(kind)
        return await self._from_conversation(kind, references)

    @property
    def _named_here(self) -> tuple[RecordMention, ...]:
        """The mentions, unless the conversation goes on about another record than the text."""
        return () if self.message.about else self.message.mentions

    async def _by_mentions(self, kind: str, references: References) -> _RecordMatch | None:
        """The record that belongs to all that was named. None: nothing that was named has any of the kind."""
        mentions = scope_of(self._named_here, references.text)
        if not mentions and len(self._named_here) == 1:
            mentions = list(self._named_here)
        candidates: dict[str, Record] = {}
        for mention in mentions:
            own: dict[str, Record] = {}
            for ref in mention.records:
                record = await self.records.by_id(ref.kind, ref.id)
                if record is not None:
                    for one in await self.records.belonging(kind, record):
                        own[one.id] = one
            both = {key: record for key, record in candidates.items() if key in own}
            candidates = both or candidates or own
        if not candidates:
            return None
        records = self._narrowed(kind, tuple(candidates.values()), references.text)
        if len(records) == 1:
            return _RecordMatch(records[0])
        return _RecordMatch(
            question=f"Which {_word(kind)} do you mean?", options=records[:MAX_OPTIONS]
        )

    def _narrowed(self, kind: str, records: tuple[Record, ...], text: str) -> tuple[Record, ...]:
        """The records whose title has most of the words of a text."""
        lookup = self.pack.lookup(kind)
        columns = (
            [column for column, kind in lookup.match.items() if kind == "text"] if lookup else []
        )
        if len(records) < 2 or not columns:
            return records
        stems = {stem(word) for word in tokens_of(text)}
        hits = [
            sum(
                stem(token) in stems
                for column in columns
                for token in tokens_of(str(record.row.get(column) or ""))
            )
            for record in records
        ]
        return tuple(
            record for record, count in zip(records, hits, strict=True) if count == max(hits)
        )

    async def _by_words(self, kind: str, references: References) -> _RecordMatch | None:
        """None: no word names a record."""
        matches = await self.records.named(kind, references.words)
        most = max((len(match.words) for match in matches), default=0)
        best = [match for match in matches if len(match.words) == most]
        if not best:
            return None
        return await self._one_of(kind, best, references)

    async def _one_of(
        self, kind: str, best: Sequence[NamedRecord], references: References
    ) -> _RecordMatch:
        records = tuple(match.record for match in best)
        unmatched = references.pointed - best[0].words
        if len(records) == 1 and not unmatched and await self.records.is_complete(kind):
            return _RecordMatch(records[0])
        if unmatched:
            words = _in_order(unmatched, references)
            question = f"No {_word(kind)} matches {words!r} as well. Do you mean one of these?"
        else:
            question = f"Which {_word(kind)} do you mean?"
        return _RecordMatch(question=question, options=records[:MAX_OPTIONS])

    async def _by_place(self, kind: str, place: int) -> Record | None:
        ref = self._shown_at(place)
        record = await self.records.by_id(ref.kind, ref.id) if ref else None
        related = await self.records.belonging(kind, record) if record else []
        return related[0] if len(related) == 1 else None

    def _shown_at(self, place: int) -> RecordRef | None:
        shown = self.message.shown
        within = 0 < abs(place) <= len(shown)
        return shown[place - 1 if place > 0 else place] if within else None

    async def _newest(self, kind: str) -> _RecordMatch:
        record = await self.records.newest(kind)
        return _RecordMatch(record) if record else _NOTHING

    async def _from_conversation(self, kind: str, references: References) -> _RecordMatch:
        """The record that the conversation is about; several where it is about more than one."""
        focus = [*((record.kind, record.id) for record in self._here)]
        focus += [(ref.kind, ref.id) for ref in self.message.focus]
        if not focus or not (references.anaphoric or self._may_be_implied(kind)):
            return _NOTHING
        candidates: dict[str, Record] = {}
        same = [record_id for its_kind, record_id in focus if its_kind == kind]
        if same and (record := await self.records.by_id(kind, same[0])):
            candidates[record.id] = record
        related = await self._related_to_newest(kind, focus, references)
        if related and not candidates.keys() & {record.id for record in related}:
            candidates |= {record.id: record for record in related}
        elif candidates:
            candidates = dict(list(candidates.items())[:1])
        records = tuple(candidates.values())
        if len(records) == 1:
            return _RecordMatch(records[0])
        if records:
            return _RecordMatch(
                question=f"Which {_word(kind)} do you mean?", options=records[:MAX_OPTIONS]
            )
        return _NOTHING

    async def _related_to_newest(
        self, kind: str, focus: Sequence[tuple[str, str]], references: References
    ) -> list[Record]:
        """The records of a kind that belong to what was spoken of last; with `her` to the person."""
        people = {lookup.kind for lookup in self.pack.registry.lookup if lookup.person}
        whose = any(phrase.whose and phrase.kind == kind for phrase in references.phrases)
        pairs = [pair for pair in focus if pair[0] in people] if whose else list(focus)
        for its_kind, record_id in pairs[:1]:
            if its_kind == kind:
                return []
            record = await self.records.by_id(its_kind, record_id)
            return await self.records.belonging(kind, record) if record else []
        return []

    def _may_be_implied(self, kind: str) -> bool:
        """`add a line: …`, right after a quote was made: nothing else of the kind was spoken of last."""
        last = self.message.focus[: self.message.latest]
        return len({ref.id for ref in last if ref.kind == kind}) == 1

    # --- ids in place of pronouns ------------------------------------------------------------

    async def _with_ids(self, reading: Reading, read_alone: ReadAlone) -> Reading:
        """The reading; of a message that is unclear by its pronouns, that with the records' ids instead."""
        if reading.intent is Intent.EXECUTE and not _may_be_closer(reading, self.pack):
            return reading
        async for text in self._rewritten():
            again = read_alone(self.message.model_copy(update={"text": text}))
            if again.intent is Intent.EXECUTE and again.calls and _uses_more(again, reading):
                self._text = text
                return again
        return reading

    async def _rewritten(self) -> AsyncIterator[str]:
        text = self.message.text
        references = self._references_in(text)
        if phrased := await self._with_phrases(text, references):
            yield phrased
            yield await self._with_contacts(phrased, named=False)
            text = phrased
        yield await self._with_contacts(text, named=True)
        people = {lookup.kind for lookup in self.pack.registry.lookup if lookup.person}
        kinds = dict.fromkeys(ref.kind for ref in self.message.focus)
        things = [kind for kind in kinds if kind not in people][:3]
        for kind in things if _THING.search(text) else ():
            found = await self._from_conversation(kind, replace(references, thing=True))
            if found.record is not None:
                yield _THING.sub(f"{kind} {found.record.id}", text, count=1)
        for kind in sorted(people) if self.message.focus and _PERSON.search(text) else ():
            found = await self._from_conversation(kind, replace(references, person=True))
            for instead in self._instead_of(found.record) if found.record else ():
                yield _PERSON.sub(instead, text, count=1)

    def _instead_of(self, person: Record) -> Iterator[str]:
        """Texts that may stand in a message for a person: an address of theirs, and the id."""
        lookup = self.pack.lookup(person.kind)
        for contact, form in _PLAIN.items() if lookup else ():
            value = str(person.row.get(lookup.gives.get(contact, "")) or "") if lookup else ""
            # Only what is plainly an address takes the place of a word of the message.
            if form.fullmatch(value):
                yield value
        yield f"{person.kind} {person.id}"

    async def _with_contacts(self, text: str, *, named: bool) -> str:
        """The text without phone numbers and addresses of e-mail; with `named` the record has their place."""
        entities = self.extract.entities(text, self.message.now)
        for entity in reversed([entity for entity in entities if entity.kind in _CONTACTS]):
            instead = ""
            for lookup in self.pack.registry.lookup if named else ():
                if entity.kind in lookup.gives:
                    matches = await self.records.named(lookup.kind, [str(entity.value)])
                    instead = f"{lookup.kind} {matches[0].record.id}" if len(matches) == 1 else ""
            if instead or not named:
                text = f"{text[: entity.start]}{instead}{text[entity.end :]}"
        return " ".join(text.split())

    async def _with_phrases(self, text: str, references: References) -> str:
        """The text with the id of each record that a phrase such as `Sarah's quote` means."""
        changed = text
        for phrase in reversed(references.phrases):
            if not phrase.kind and phrase.ordinal:
                ref = self._shown_at(phrase.ordinal)
                if ref is not None:
                    changed = f"{changed[: phrase.start]}{ref.kind} {ref.id}{changed[phrase.end :]}"
            if phrase.many or phrase.kind not in self.records.kinds:
                continue
            inner = self._references_in(_with_rest(text, phrase))
            found = await self._meant(phrase.kind, inner)
            if found.record is not None:
                changed = f"{changed[: phrase.start]}{phrase.kind} {found.record.id}{changed[phrase.end :]}"
        return changed if changed != text else ""

    # --- results -----------------------------------------------------------------------------

    async def _ref(self, record: Record) -> RecordRef:
        described = await self.records.described(record)
        return RecordRef(kind=record.kind, id=record.id, label=described.label)

    async def _resolved(self, name: str, value: Json, record: Record) -> ResolvedRecord:
        ref = await self._ref(record)
        return ResolvedRecord(field=name, value=value, kind=ref.kind, id=ref.id, label=ref.label)


def _differs(reading: Reading, own: Reading) -> bool:
    """Return whether a model reads other tools in a message than Podium does, where both are sure."""
    both = reading.intent is Intent.EXECUTE and own.intent is Intent.EXECUTE
    return both and [call.tool for call in reading.calls] != [call.tool for call in own.calls]


def _with_rest(text: str, phrase: Mention) -> str:
    """The phrase with the words behind it that may name its record: `the quote for Sarah`."""
    return text[phrase.start :]


def _reads(entry: PackTool | Skill) -> bool:
    if not isinstance(entry, PackTool) or entry.undo or entry.verify:
        return False
    verb = entry.name.rpartition(".")[2].partition("_")[0]
    return ACTION_VERBS.get(verb) == frozenset({READ})


def _may_be_closer(reading: Reading, pack: Pack) -> bool:
    """Return whether a reading only lists, where a message may mean one record of the list."""
    tools = [pack.tool(intent.tool) for intent in reading.calls]
    return len(tools) == 1 and tools[0] is not None and _reads(tools[0]) and not tools[0].required


def _uses_more(again: Reading, before: Reading) -> bool:
    """Return whether the new reading has arguments where the old one had none or was unclear."""
    if before.intent is not Intent.EXECUTE:
        return True
    return len(again.calls[0].arguments) > len(before.calls[0].arguments)


def _in_order(words: Collection[str], references: References) -> str:
    return " ".join(word for word in references.words if word in words)


def _word(kind: str) -> str:
    return kind.replace("_", " ")


def _named(record: Record) -> str:
    return f"{_word(record.kind)} {record.id}"


Resolve = Callable[[Message, Reading], Awaitable[ReferenceResolution]]
