"""Grounding: tools and values of a reading that nobody said are marked.

A model may be wrong, fooled or made to lie. What it reads is grounded where Podium comes to it by itself: the tool
by its own reading of the message, a value by finding it in the message or the context. The results of earlier calls
of a plan are references that plans write themselves, so they need no grounding here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator.judgement.embedded.tokens import DENIALS
from podium.jobs.operator.judgement.fields import Entity, FieldExtractor
from podium.jobs.operator.judgement.fields.dates import date_in
from podium.jobs.operator.judgement.fields.identifiers import digits
from podium.jobs.operator.judgement.fields.pack_lexicon import folded_tokens, kind_of, properties_of
from podium.jobs.operator.judgement.fields.tokenized_text import smoothed, token_set
from podium.jobs.operator.judgement.tiers import highest, intents_arithmetic, tools_of
from podium.jobs.operator.models import Intent, Message, Reading, ToolIntent

MAX_CONTEXT_CHARACTERS = 20_000
"""Of the context's texts; what is beyond was not read, and so grounds nothing."""
MAX_STEPS = 20_000
"""Of one search for a text with words left out."""
_ADDED = token_set("a an the of for to about on at in with re")
"""Words that may stand in a text although nobody said them: they say nothing by themselves."""
_LEFT_OUT = _ADDED | token_set("and please pls just also me us my our that thanks cheers")
_DENIALS = DENIALS | {"no", "without", "nor", "neither", "none"}
_SENTENCES = re.compile(r"(?<=\w{3}[.!?;])\s+|\n+")
"""End of a sentence. A short word with a full stop, such as `Mr.`, ends none."""
_LONG_FORMS = {"street": "st", "road": "rd", "avenue": "ave", "drive": "dr", "court": "ct"}
_SHORTEST_PHONE = 6
_FACT = re.compile(r"[\d@/\\_]|\w\.\w")
_SUMS = ("money", "number")
_DIGITS = re.compile(r"\+?\(?\d(?:[ .\-()/]{0,3}\d){5,19}")


@dataclass(frozen=True)
class SourceText:
    """One text with what was found in it."""

    text: str
    entities: Sequence[Entity]

    @cached_property
    def tokens(self) -> list[str]:
        return tokens_of(self.text)

    @cached_property
    def denied(self) -> frozenset[int]:
        """Places of the words behind a denial of the same sentence: it may turn them around."""
        positions: set[int] = set()
        end = 0
        for tokens in map(tokens_of, _SENTENCES.split(self.text)):
            start, end = end, end + len(tokens)
            denial = next((at for at, token in enumerate(tokens) if token in _DENIALS), len(tokens))
            positions.update(range(start + denial + 1, end))
        return frozenset(positions)

    @cached_property
    def joined(self) -> str:
        return f" {' '.join(self.tokens)} "

    @cached_property
    def dated(self) -> frozenset[str]:
        """Words that only say when; a text may leave them out."""
        kinds = {"date", "time", "datetime", "period"}
        return frozenset(
            token
            for entity in self.entities
            if entity.kind in kinds
            for token in tokens_of(entity.text)
        )


class Sources:
    """All that somebody said and handed along."""

    def __init__(self, message: Message, extract: FieldExtractor) -> None:
        self._message = message
        self._extract = extract
        leaves = list(_leaves(message.context))
        self._context_values = {_key(leaf) for leaf in leaves}
        self.texts = [self._source(message.text), *map(self._source, _affordable(leaves))]

    def gives(self, value: Json) -> bool:
        """Return whether the context has exactly this value."""
        return _key(value) in self._context_values

    def finds(self, *kinds: str) -> Iterator[Entity]:
        """Iterate over the entities of these kinds; `id` is every kind of id."""
        for source in self.texts:
            for entity in source.entities:
                if entity.kind.partition(":")[0] in kinds:
                    yield entity

    def has_id(self, value: str, kind: str) -> bool:
        """Return whether an id stands there, and nothing says that it is another kind of thing's."""
        return any(
            entity.kind == "number" or self._extract.may_be_id(entity, kind)
            for entity in self.finds("id", "number")
            if entity.text.lstrip("#").casefold() == value.strip().casefold()
        )

    def has_phone(self, value: str) -> bool:
        """Return whether the number stands there, in whatever form, with or without the code of its country."""
        forms = {digits(value), *self._phones(value)}
        phones = {phone for source in self.texts for phone in self._phones(source.text)}
        return any(len(form) >= _SHORTEST_PHONE and form in phones for form in forms)

    def has_number(self, value: float) -> bool:
        """A share such as `10%` is no sum."""
        return any(
            isinstance(entity.value, int | float) and abs(entity.value - value) < 1e-9
            for entity in self.finds("money", "number")
            if not entity.text.endswith("%")
        )

    def has_timestamp(self, value: str) -> bool:
        """A day, a time or both, as it was written or as words such as `tomorrow` mean it."""
        read = [entity.value for entity in self._source(value).entities if entity.kind in _WHEN]
        values = {str(item) for item in read} or {value.strip()}
        return values <= self._timestamps or {value.strip()} <= self._timestamps

    @cached_property
    def _timestamps(self) -> frozenset[str]:
        values: set[str] = set()
        for entity in self.finds(*_WHEN, "period"):
            if isinstance(entity.value, Mapping):
                values.update(map(str, entity.value.values()))
                continue
            value = str(entity.value)
            values.update((value, value[:10], value[11:16]))
            if past := date_in(entity.text, self._message.now, past=True):
                values.add(past)
        return frozenset(values - {""})

    def names(self, shape: Mapping[str, Json], value: Json) -> bool:
        """Return whether the words name this value of a choice."""
        now = self._message.now
        return any(value in self._extract.choices(source.text, shape, now) for source in self.texts)

    def has_entity(self, kind: str, value: str) -> bool:
        return any(_key(entity.value) == _key(value) for entity in self.finds(kind))

    def has_text(self, value: str) -> bool:
        """Return whether the words stand there in this order, with nothing between them that could change what they say."""
        tokens = tokens_of(value)
        if not tokens:
            return any(value.strip() and value.strip() in source.text for source in self.texts)
        strange = {
            character for character in value if not character.isascii() and not character.isalnum()
        }
        return any(
            not strange - set(source.text) - {"\u2019", "\u2013", "\u2014", "\u201c", "\u201d"}
            and (_has_run(source, tokens) or _has_order(source, tokens))
            for source in self.texts
        )

    def content_tokens(self, text: str) -> set[str]:
        """Those of a text that say more than when."""
        return set(tokens_of(text)) - _LEFT_OUT - self.texts[0].dated

    def has_facts_of(self, value: str) -> bool:
        """Return whether all that is more than words stands there: figures, sums, ids, contacts, addresses."""
        chunks = (chunk.strip(".,;:!?()\"'") for chunk in smoothed(value).split())
        facts = [chunk for chunk in chunks if _FACT.search(chunk)]
        sums = [entity for entity in self._source(value).entities if entity.kind in _SUMS]
        return all(map(self.has_text, facts)) and all(
            self.has_text(entity.text) or self.has_number(entity.value) for entity in sums
        )

    def _phones(self, text: str) -> set[str]:
        """Runs of digits as they stand, and the numbers that they are read as."""
        runs = [digits(run) for run in _DIGITS.findall(smoothed(text))]
        plain = (self._source(run).entities for run in runs if len(run) >= _SHORTEST_PHONE)
        read = [entity for entities in (self._source(text).entities, *plain) for entity in entities]
        return {*runs, *(digits(str(entity.value)) for entity in read if entity.kind == "phone")}

    def _source(self, text: str) -> SourceText:
        return SourceText(text, self._extract.entities(text, self._message.now))


_WHEN = ("date", "time", "datetime")


def tokens_of(text: str) -> list[str]:
    """Words in lower case without accents and possessives; `Street` is `st`."""
    bare = (token.removesuffix("'s").replace("'", "") for token in folded_tokens(smoothed(text)))
    return [_LONG_FORMS.get(token, token) for token in bare]


def _has_run(source: SourceText, needle: Sequence[str]) -> bool:
    """Return whether the words stand there side by side, and not behind a denial."""
    text, start = f" {' '.join(needle)} ", -1
    while (start := source.joined.find(text, start + 1)) >= 0:
        if source.joined.count(" ", 0, start) not in source.denied:
            return True
    return False


def _has_order(source: SourceText, needle: Sequence[str]) -> bool:
    """Return whether the words stand there one after the other, with only empty words left out or put in."""
    steps, tokens = MAX_STEPS, source.tokens
    first = next((token for token in needle if token not in _ADDED), needle[0])
    rest = needle[needle.index(first) :]
    for start, token in enumerate(tokens):
        if token != first:
            continue
        taken = _walk(tokens, start, rest, source.dated)
        steps -= taken or len(rest)
        if taken and start not in source.denied:
            return True
        if steps < 0:
            return False
    return False


def _walk(tokens: Sequence[str], at: int, needle: Sequence[str], dated: frozenset[str]) -> int:
    """Count the steps through all tokens; 0 when it was not possible."""
    start, position = at, 0
    while position < len(needle):
        if at < len(tokens) and tokens[at] == needle[position]:
            at, position = at + 1, position + 1
        elif at < len(tokens) and (tokens[at] in _LEFT_OUT or tokens[at] in dated):
            at += 1
        elif needle[position] in _ADDED:
            position += 1
        else:
            return 0
    return at - start + len(needle)


def _leaves(value: Json) -> Iterator[Json]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _affordable(leaves: Sequence[Json]) -> Iterator[str]:
    left = MAX_CONTEXT_CHARACTERS
    for leaf in leaves:
        text = leaf if isinstance(leaf, str) else ""
        left -= len(text)
        if left < 0:
            return
        if text:
            yield text


def _key(value: Json) -> tuple[str, str]:
    """Values that are the same however they are written; a number is no text, and `true` no number."""
    if isinstance(value, str):
        return "text", " ".join(value.casefold().split())
    return (
        ("number", repr(float(value))) if _is_number(value) else (type(value).__name__, str(value))
    )


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Ungrounded = tuple[UngroundedArgument, ...]
FindUngrounded = Callable[[Message, Sequence[ToolIntent]], list[Ungrounded]]
"""For each call that was read, what of it nobody said."""

NOT_ASKED = "the message does not ask for it"
ASKED_LESS = "the message does not ask for it that often"
NOT_IN_MESSAGE = "not in the message"
OTHERWISE = "the message says something else"
NOT_CHECKED = "it could not be compared with the message"


class GroundingCheck:
    """Marks what is not grounded. Podium's own reading is grounded by construction."""

    def __init__(
        self, pack: Pack, extract: FieldExtractor, read: Callable[[Message], Reading]
    ) -> None:
        """`read` is Podium's own reading, made without a model."""
        self._pack = pack
        self._extract = extract
        self._read = read

    def __call__(self, message: Message, intents: Sequence[ToolIntent]) -> list[Ungrounded]:
        """Return one entry per intent; empty where all of it was said. Any error marks everything."""
        try:
            return self._marked(message, intents)
        except Exception:
            return [
                (UngroundedArgument(value=intent.tool, reason=NOT_CHECKED), *_all_fields(intent))
                for intent in intents
            ]

    def _marked(self, message: Message, intents: Sequence[ToolIntent]) -> list[Ungrounded]:
        reading = self._read(message)
        own = reading.calls if reading.intent is Intent.EXECUTE else ()
        if _same(own, intents):
            return [() for _ in intents]
        whole: list[str | None] = [intent.tool for intent in own]
        parts = [self._parts(intent) for intent in own]
        asked, sources = {*whole, *chain(*parts)}, Sources(message, self._extract)
        ungrounded = []
        for intent, own_values in zip(intents, _matched(own, intents), strict=True):
            reason = ASKED_LESS if intent.tool in asked else NOT_ASKED
            taken = self._take(intent, whole, parts)
            tool = () if taken else (UngroundedArgument(value=intent.tool, reason=reason),)
            ungrounded.append((*tool, *self._fields(intent, message, sources, own_values)))
        return ungrounded

    def _parts(self, intent: ToolIntent) -> Counter[str]:
        """The tool itself; for a skill its tools, which may be asked for one by one."""
        return Counter(tool.name for tool in tools_of(intent, self._pack))

    def _take(self, intent: ToolIntent, whole: list[str | None], parts: list[Counter[str]]) -> bool:
        """Take the call off what was asked for: as a whole with its parts, or its parts, which leave no whole."""
        if intent.tool in whole:
            parts[whole.index(intent.tool)].clear()
            whole[whole.index(intent.tool)] = None
            return True
        needed = self._parts(intent)
        if not needed or not needed <= sum(parts, Counter[str]()):
            return False
        for name in needed.elements():
            number = next(number for number, left in enumerate(parts) if left[name] > 0)
            parts[number][name] -= 1
            whole[number] = None
        return True

    def _fields(
        self, intent: ToolIntent, message: Message, sources: Sources, own_values: Mapping[str, Json]
    ) -> Iterator[UngroundedArgument]:
        entry = self._pack.tool(intent.tool) or self._pack.skill(intent.tool)
        if entry is None:
            return
        shapes = properties_of(entry)
        read = self._extract.arguments(message.text, entry, message)
        for name, value in intent.arguments.items():
            shape = shapes.get(name, {})
            kind = kind_of(name, shape)
            if _is_from_context(name, value, shape, message) or own_values.get(name) == value:
                continue
            own = own_values.get(name, value)
            text = kind == "text" and shape.get("x-composed") is not True
            if _contradict(own, value, kind) or (
                text and self._leaves_out(intent, name, own, shapes, sources)
            ):
                yield UngroundedArgument(field=name, value=value, reason=OTHERWISE)
            elif read.get(name) != value and not _derived(value, kind, shape, sources):
                yield UngroundedArgument(field=name, value=value, reason=NOT_IN_MESSAGE)

    def _leaves_out(
        self,
        intent: ToolIntent,
        name: str,
        own: Json,
        shapes: Mapping[str, Mapping[str, Json]],
        sources: Sources,
    ) -> bool:
        """Return whether a text that is written down lacks words that may turn it around.

        Those that another argument has, such as a name, and those that only say when are not missed.
        """
        tier = highest(intents_arithmetic([intent], self._pack, ()))
        if not isinstance(own, str) or tier == Tier.T0:
            return False
        others = (
            str(value)
            for key, value in intent.arguments.items()
            if key == name or kind_of(key, shapes.get(key, {})) not in ("text", "")
        )
        return not sources.content_tokens(own) <= set(chain(*map(tokens_of, others)))


def _matched(own: Sequence[ToolIntent], intents: Sequence[ToolIntent]) -> list[Mapping[str, Json]]:
    """For every call the arguments of Podium's own reading that is most like it; no reading stands for two calls."""
    pairs = [
        (-_likeness(mine.arguments, intent.arguments), number, position)
        for number, intent in enumerate(intents)
        for position, mine in enumerate(own)
        if mine.tool == intent.tool
    ]
    matched: dict[int, int] = {}
    for _, number, position in sorted(pairs):
        if number not in matched and position not in matched.values():
            matched[number] = position
    return [
        own[matched[number]].arguments if number in matched else {}
        for number in range(len(intents))
    ]


def _likeness(own: Mapping[str, Json], values: Mapping[str, Json]) -> float:
    """Count equal values; tokens in common count for less than one."""
    alike = 0.0
    for name in own.keys() & values.keys():
        one, other = set(tokens_of(str(own[name]))), set(tokens_of(str(values[name])))
        overlap = len(one & other) / (2 * len(one | other)) if one or other else 0.0
        alike += 1.0 if own[name] == values[name] else overlap
    return alike


def _contradict(own: Json, value: Json, kind: str) -> bool:
    """Return whether two values cannot both be meant. Words may be cut from a message in more than one way."""
    if own == value:
        return False
    if kind == "text" or not isinstance(own, str) or not isinstance(value, str):
        return kind != "text"
    if kind == "phone":
        return digits(own)[-_PHONE_DIGITS:] != digits(value)[-_PHONE_DIGITS:]
    one, other = " ".join(tokens_of(own)), " ".join(tokens_of(value))
    if kind in _CUT:
        return one not in other and other not in one
    return one != other


_CUT = ("name", "address", "")
"""Kinds of values of which a message gives more or less of the same."""
_PHONE_DIGITS = 8
"""Without the codes of country and network."""


def _is_from_context(name: str, value: Json, shape: Mapping[str, Json], message: Message) -> bool:
    """Return whether it is the context's own value, or what would be taken without any."""
    if name in message.context and message.context[name] == value:
        return True
    return "default" in shape and shape["default"] == value


def _derived(value: Json, kind: str, shape: Mapping[str, Json], sources: Sources) -> bool:
    """Return whether the value, and every part of it, comes from what was said."""
    match value:
        case dict():
            inner = shape.get("properties")
            properties: Mapping[str, Json] = inner if isinstance(inner, dict) else {}
            return all(
                (name in properties or sources.has_text(name))
                and _derived(part, *_of(name, properties.get(name)), sources)
                for name, part in value.items()
            )
        case list():
            items = shape.get("items")
            item_schema = items if isinstance(items, dict) else {}
            return all(
                _derived(part, kind or kind_of("", item_schema), item_schema, sources)
                for part in value
            )
        case str():
            return sources.gives(value) or _text_derived(value, kind, shape, sources)
        case bool() | None:
            return sources.gives(value)
        case _:
            return sources.gives(value) or sources.has_number(value)


def _of(name: str, shape: Json) -> tuple[str, Mapping[str, Json]]:
    form = shape if isinstance(shape, dict) else {}
    return kind_of(name, form), form


def _text_derived(value: str, kind: str, shape: Mapping[str, Json], sources: Sources) -> bool:
    family, _, thing = kind.partition(":")
    match family:
        case "id":
            return sources.has_id(value, thing)
        case "phone":
            return sources.has_phone(value)
        case "email":
            return sources.has_entity("email", value)
        case "choice":
            return sources.names(shape, value)
        case "date" | "time" | "datetime":
            return sources.has_timestamp(value)
        case "money" | "number":
            return _is_figure(value) and sources.has_number(float(value))
        case "text" | "":
            composed = shape.get("x-composed") is True and sources.has_facts_of(value)
            return composed or sources.has_text(value)
        case _:
            return sources.has_entity(family, value) or sources.has_text(value)


def _is_figure(value: str) -> bool:
    try:
        return isinstance(json.loads(value), int | float)
    except ValueError:
        return False


def _same(own: Sequence[ToolIntent], intents: Sequence[ToolIntent]) -> bool:
    return [(intent.tool, intent.arguments) for intent in own] == [
        (intent.tool, intent.arguments) for intent in intents
    ]


def _all_fields(intent: ToolIntent) -> Iterator[UngroundedArgument]:
    for name, value in intent.arguments.items():
        yield UngroundedArgument(field=name, value=value, reason=NOT_CHECKED)
