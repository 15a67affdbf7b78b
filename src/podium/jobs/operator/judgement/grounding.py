"""Holds what a classifier read against what was said: tools and values that nobody gave are marked.

A model may be wrong, fooled or made to lie. What it reads is grounded where Podium comes to it by itself: the
tool by its own reading of the message, a value by finding it in the message or the context. The results of
earlier calls of a plan are references that plans write themselves, so they need no ground here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.fields.identifiers import digits
from podium.jobs.operator.judgement.fields.pack_lexicon import kind_of, properties_of
from podium.jobs.operator.judgement.tiers import highest, intents_arithmetic, tools_of
from podium.jobs.operator.judgement.value_sources import Sources, tokens_of
from podium.jobs.operator.models import Intent, Message, Reading, ToolIntent

Ungrounded = tuple[UngroundedArgument, ...]
FindUngrounded = Callable[[Message, Sequence[ToolIntent]], list[Ungrounded]]
"""For each call that was read, what of it nobody said."""

NOT_ASKED = "the message does not ask for it"
ASKED_LESS = "the message does not ask for it so often"
NOT_IN_MESSAGE = "not in the message"
OTHERWISE = "the message says it otherwise"
NOT_CHECKED = "it could not be held against the message"


class GroundingCheck:
    """Ungrounded what is not grounded. A reading that is Podium's own is grounded by construction."""

    def __init__(
        self, pack: Pack, extract: FieldExtractor, read: Callable[[Message], Reading]
    ) -> None:
        """`read` is Podium's own reading, made without a model."""
        self._pack = pack
        self._extract = extract
        self._read = read

    def __call__(self, message: Message, intents: Sequence[ToolIntent]) -> list[Ungrounded]:
        """One entry for each intent; empty where all of it was said. Any trouble marks everything."""
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
