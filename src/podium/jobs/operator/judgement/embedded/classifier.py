"""Classifier without a model: reads messages by what the registry says of its tools."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Protocol

from podium.core.decisions import Usage
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.caution import look_again
from podium.jobs.operator.judgement.embedded.clause_meaning import DOTTED, ClauseMeaning, Reader
from podium.jobs.operator.judgement.embedded.clauses import MAX_CLAUSES, clauses_of, with_tails
from podium.jobs.operator.judgement.embedded.exact_examples import ExactExamples
from podium.jobs.operator.judgement.embedded.moods import (
    COURTESY,
    commanded,
    urgency_of,
    without_courtesy,
)
from podium.jobs.operator.judgement.embedded.query import marked
from podium.jobs.operator.judgement.embedded.tokens import (
    STOPWORDS,
    VAGUE,
    clean,
    token_set,
    tokenize,
)
from podium.jobs.operator.judgement.embedded.tool_index import Index, IndexEntry, index_of
from podium.jobs.operator.judgement.embedded.tool_score import FAINTEST, OPEN, Fit
from podium.jobs.operator.judgement.embedded.unused import account_for
from podium.jobs.operator.judgement.fields.tokenized_text import Entity
from podium.jobs.operator.models import Intent, Message, Reading, RecordMention, ToolIntent


class Extractor(Protocol):
    def arguments(self, clause: str, tool: PackTool | Skill, message: Message) -> dict[str, Json]:
        """Extract arguments for the properties of the tool; only those that were found."""
        ...

    def entities(
        self,
        text: str,
        now: datetime,
        mentions: Sequence[RecordMention] = (),
        names: Sequence[str] = (),
    ) -> Sequence[Entity]:
        """Every value of a kind that can be told without knowing the tool."""
        ...


_LISTING = re.compile(r"[\s,;&+/#]*(?:(?:and|also|plus|then)\b)?[\s,;&+/#]*", re.IGNORECASE)
"""Separator between the ids of one list."""
_CARRIED = ("phone", "email", "address")
"""Kinds of values that a later clause may mean by `him` or `there`, besides ids."""


@dataclass(frozen=True)
class RequestedEntry:
    """A tool or skill, and the part of the message that asks for it."""

    entry: IndexEntry
    start: int
    end: int


@dataclass(frozen=True)
class IntentBuilder:
    """Makes the intents of one message."""

    pack: Pack
    index: Index
    reader: Reader
    extract: Extractor
    message: Message

    def intents_of(
        self, understood: Sequence[ClauseMeaning], banned: frozenset[str]
    ) -> tuple[ToolIntent, ...]:
        parts = [
            RequestedEntry(meaning.entry, meaning.clause.start, meaning.clause.end)
            for meaning in understood
            if meaning.entry
        ]
        parts = self._with_skills(parts, understood, banned)
        intents: list[ToolIntent] = []
        for part in parts:
            for arguments in self._arguments(part):
                intent = ToolIntent(
                    tool=part.entry.name,
                    arguments=self._filled(part, arguments, intents),
                    source=self.reader.text[part.start : part.end],
                )
                if not any(_says_less(intent, other) for other in intents):
                    intents = [other for other in intents if not _says_less(other, intent)] + [
                        intent
                    ]
        return tuple(intents)

    def _with_skills(
        self,
        parts: list[RequestedEntry],
        understood: Sequence[ClauseMeaning],
        banned: frozenset[str],
    ) -> list[RequestedEntry]:
        """The parts, with each run of them that a skill stands for as one."""
        for skill in self.pack.registry.skills:
            tools = tuple(dict.fromkeys(step.tool for step in skill.steps))
            if len(tools) < 2 or banned.intersection(tools) or not self._has_context(skill):
                continue
            for start in range(len(parts) - len(tools) + 1):
                run = parts[start : start + len(tools)]
                if tuple(part.entry.name for part in run) == tools:
                    whole = RequestedEntry(
                        self.index.by_name[skill.name], run[0].start, run[-1].end
                    )
                    parts = [*parts[:start], whole, *parts[start + len(tools) :]]
                    break
        return self._as_one_skill(parts, understood, banned)

    def _as_one_skill(
        self,
        parts: list[RequestedEntry],
        understood: Sequence[ClauseMeaning],
        banned: frozenset[str],
    ) -> list[RequestedEntry]:
        """One skill for all parts, where the message as a whole says it and every part is in it."""
        if len(parts) < 2 or banned:
            return parts
        whole = self.reader.together([meaning.clause for meaning in understood])
        subject = whole.entry.subject if whole.entry and whole.sure else None
        if not isinstance(subject, Skill) or not self._has_context(subject):
            return parts
        within = {subject.name, *(step.tool for step in subject.steps)}
        if whole.entry and all(part.entry.name in within for part in parts):
            return [RequestedEntry(whole.entry, whole.clause.start, whole.clause.end)]
        return parts

    def _has_context(self, skill: Skill) -> bool:
        return all(name in self.message.context for name in skill.needs_context)

    def _arguments(self, part: RequestedEntry) -> Iterator[dict[str, Json]]:
        """Extract the arguments of a part: once, or once for each id that it names."""
        text = self.reader.text[part.start : part.end]
        arguments = self.extract.arguments(text, part.entry.subject, self.message)
        name, ids = self._several(part)
        if len(ids) < 2:
            yield arguments
            return
        for entity, own in zip(ids, self._own_values(part, ids, name), strict=True):
            yield {**arguments, **own, name: entity.value}

    def _own_values(
        self, part: RequestedEntry, ids: Sequence[Entity], name: str
    ) -> list[dict[str, Json]]:
        """Extract the values that belong to each id: `lead 1 to Dave and lead 2 to Mike`, `$5 on invoice 1 and $9 on invoice 2`."""
        ends = [entity.end for entity in ids]
        starts = [entity.start for entity in ids]
        behind = self._read_spans(part, zip(starts, [*starts[1:], part.end], strict=True), name)
        before = self._read_spans(part, zip([part.start, *ends[:-1]], ends, strict=True), name)
        for values in (behind, before):
            if values[0] and all(own.keys() == values[0].keys() for own in values):
                return values
        return [{} for _ in ids]

    def _read_spans(
        self, part: RequestedEntry, spans: Iterable[tuple[int, int]], name: str
    ) -> list[dict[str, Json]]:
        readings = []
        for start, end in spans:
            text = self.reader.text[start:end]
            read = self.extract.arguments(text, part.entry.subject, self.message)
            context = self.message.context
            readings.append({key: read[key] for key in read if key != name and key not in context})
        return readings

    def _several(self, part: RequestedEntry) -> tuple[str, list[Entity]]:
        named = [
            name for name in part.entry.required if part.entry.kinds.get(name, "").startswith("id:")
        ]
        if len(named) != 1:
            return "", []
        kind = part.entry.kinds[named[0]]
        inside = [
            entity for entity in self.reader.entities if part.start <= entity.start < part.end
        ]
        if not any(entity.kind == kind for entity in inside):
            return "", []
        entities: list[Entity] = []
        for entity in inside:
            if entity.kind == kind or (
                entity.kind == "id" and entities and self._listed(entities[-1], entity)
            ):
                entities.append(entity)
        return named[0], list({entity.value: entity for entity in reversed(entities)}.values())[
            ::-1
        ]

    def _listed(self, before: Entity, after: Entity) -> bool:
        """`quotes Q-1 and Q-2`: the noun stands at the first one only."""
        return _LISTING.fullmatch(self.reader.text, before.end, after.start) is not None

    def _filled(
        self, part: RequestedEntry, arguments: dict[str, Json], before: Sequence[ToolIntent]
    ) -> dict[str, Json]:
        """The arguments, and what an earlier intent said of the same kind where a needed one is missing."""
        filled = dict(arguments)
        entry = part.entry
        for name in entry.required:
            kind = entry.kinds.get(name, "")
            if name in filled or not self._may_carry(kind, part):
                continue
            for intent in reversed(before):
                other = self.index.by_name[intent.tool]
                same = [
                    intent.arguments[key]
                    for key in intent.arguments
                    if other.kinds.get(key) == kind
                ]
                if same:
                    filled[name] = same[0]
                    break
        return filled

    def _may_carry(self, kind: str, part: RequestedEntry) -> bool:
        """Return whether a value of an earlier part can be meant. Who names somebody does not mean the one before."""
        if kind.startswith("id:"):
            return True
        inside = (
            entity for entity in self.reader.entities if part.start <= entity.start < part.end
        )
        return kind in _CARRIED and not any(entity.kind == "name" for entity in inside)


def _says_less(intent: ToolIntent, other: ToolIntent) -> bool:
    """Return whether everything in an intent is in the other one too."""
    return intent.tool == other.tool and intent.arguments.items() <= other.arguments.items()


AS_EXAMPLE = 0.95
"""As sure as one is of a sentence that the registry itself gives as an example."""
BY_VERB = 0.6
"""As sure as one is of a tool of which only the verb of a command speaks: enough for a plan that people look at."""
NEAR = 0.12
"""Tools whose score is at most so much below the best one's may have been meant as well."""
_NO_TOOL_ENDINGS = token_set(
    "com au org net io jpg jpeg png pdf txt csv json md html docx xlsx heic"
)
"""Last parts of addresses and files, which are written like names of tools."""
_CALLS = token_set("run call use execute invoke tool perform")


class EmbeddedClassifier:
    """Reads messages against one pack, the same words always in the same way."""

    name = "embedded"
    usage = Usage()
    """It asks nobody, so it costs nothing."""

    def __init__(self, pack: Pack, extract: Extractor) -> None:
        self._pack = pack
        self._extract = extract
        self._examples = ExactExamples(pack.registry, extract.entities)

    async def read(self, message: Message) -> Reading:
        return self.reading(message)

    def reading(self, message: Message) -> Reading:
        text = clean(message.text)
        reading = self._read(text, message)
        return reading.model_copy(update={"urgency": urgency_of(text)})

    @cached_property
    def _index(self) -> Index:
        return index_of(self._pack)

    def _read(self, text: str, message: Message) -> Reading:
        index = self._index
        if unknown := self._unknown_tool(text):
            return _refused(f"Pack {self._pack.name!r} has no tool {unknown!r}")
        entities = self._extract.entities(text, message.now, message.mentions, message.names)
        cleaned = message.model_copy(update={"text": text})
        if subject := self._examples.find(text, entities, message.now):
            exact = self._as_example(subject, cleaned)
            return look_again(exact, cleaned, self._pack, entities)
        plain = COURTESY.sub(
            lambda match: "please".ljust(len(match.group())),
            without_courtesy(text, self._names_thing),
        )
        tokens = marked(text, tokenize(plain), entities, index)
        reader = Reader(text, entities, index, frozenset(message.context))
        clauses = with_tails(clauses_of(plain, tokens, index), text, index)
        if len(clauses) > MAX_CLAUSES:
            return _refused(
                f"The message has more than {MAX_CLAUSES} parts; split it into several messages"
            )
        understood = reader.all_of(clauses)
        if not understood:
            return _refused("The message has no readable words")
        wisher = IntentBuilder(self._pack, index, reader, self._extract, message)
        decided = self._opened(_decided(understood, wisher), understood)
        doubted = look_again(decided, cleaned, self._pack, entities)
        return account_for(doubted, cleaned, self._pack, entities, plain)

    def _as_example(self, subject: PackTool | Skill, message: Message) -> Reading:
        """The reading of a sentence in the very words of an example."""
        properties = subject.input_schema.get("properties", {})
        extracted = self._extract.arguments(message.text, subject, message)
        # What takes the whole message is not read in it.
        arguments = {
            name: value
            for name, value in extracted.items()
            if properties[name].get("x-resolve") != "message"
        }
        return Reading(
            intent=Intent.EXECUTE,
            domain=self._index.by_name[subject.name].domain or "system",
            calls=(ToolIntent(tool=subject.name, arguments=arguments),),
            confidence=AS_EXAMPLE,
            reasoning=f"The message is an example of {subject.name}",
            candidates=(subject.name,),
        )

    def _opened(self, reading: Reading, understood: Sequence[ClauseMeaning]) -> Reading:
        """The reading; of a plain command that no tool fits, the tool that takes commands with such a verb."""
        if reading.intent is Intent.EXECUTE or any(
            meaning.mood.is_no_command for meaning in understood
        ):
            return reading
        verb, *rest = [*commanded(understood[0].clause.texts), ""]
        content = [token for token in rest if token and token not in STOPWORDS | VAGUE]
        tools = [tool for tool in self._pack.registry.tools if verb in tool.opening_verbs]
        if not content or not tools or any(meaning.sure for meaning in understood):
            return reading
        return Reading(
            intent=Intent.EXECUTE,
            domain=self._index.by_name[tools[0].name].domain or "system",
            calls=(ToolIntent(tool=tools[0].name),),
            confidence=BY_VERB,
            reasoning=f"Only {tools[0].name} accepts a command that begins with {verb!r}",
            candidates=(tools[0].name,),
        )

    def _names_thing(self, token: str) -> bool:
        return token in self._index.objects or token in self._index.domain_stems

    def _unknown_tool(self, text: str) -> str:
        """A name that only a tool could have and that none has; empty when there is none."""
        for match in DOTTED.finditer(text):
            name = match.group()
            head, *_, last = name.split(".")
            called = text[: match.start()].split()[-1:] or [""]
            meant = (
                head in self._index.heads or called[0].casefold() in _CALLS or match.start() == 0
            )
            if name not in self._index.by_name and last not in _NO_TOOL_ENDINGS and meant:
                return name
        return ""


def _decided(understood: Sequence[ClauseMeaning], wisher: IntentBuilder) -> Reading:
    """One unclear or forbidden part holds up the whole: half of what was asked for is not what was asked for."""
    banned = [meaning for meaning in understood if meaning.banned]
    requested = [meaning for meaning in understood if not meaning.banned]
    off_limits = frozenset(meaning.entry.name for meaning in banned if meaning.entry)
    if not requested or any(
        not meaning.sure and not meaning.names_a_thing(wisher.index) for meaning in banned
    ):
        return _unclear(banned[0], f"Nothing is done: {banned[0].mood.forbids(False)}")
    for meaning in requested:
        if reason := _against(meaning, off_limits):
            return _unclear(meaning, reason)
        if meaning.confidence < FAINTEST:
            return _lost(meaning, wisher.reader.text, alone=len(requested) == 1)
        if not meaning.sure:
            return _unclear(meaning, "More than one tool matches the message")
    return _granted(requested, wisher, off_limits)


def _against(meaning: ClauseMeaning, off_limits: frozenset[str]) -> str:
    """Explain why a part that is well understood is not done; empty when nothing forbids it."""
    if meaning.entry is None or meaning.confidence < FAINTEST:
        return ""
    if meaning.sure and meaning.entry.name in off_limits:
        return "The message both asks for it and says not to do it"
    return f"Nothing is done: {meaning.forbidden}" if meaning.forbidden else ""


def _lost(meaning: ClauseMeaning, text: str, alone: bool) -> Reading:
    if alone:
        return _refused("No registered tool does this", meaning)
    part = text[meaning.clause.start : meaning.clause.end].strip()
    return _unclear(meaning, f"One part of the message matches no tool: {part[:60]!r}")


def _granted(
    requested: Sequence[ClauseMeaning], wisher: IntentBuilder, off_limits: frozenset[str]
) -> Reading:
    intents = wisher.intents_of(requested, off_limits)
    first = wisher.index.by_name[intents[0].tool]
    names = ", ".join(intent.tool for intent in intents)
    return Reading(
        intent=Intent.EXECUTE,
        domain=first.domain or "system",
        calls=intents,
        confidence=min(meaning.confidence for meaning in requested),
        reasoning=f"The message matches {names}",
        candidates=tuple(dict.fromkeys(intent.tool for intent in intents)),
    )


def _refused(reasoning: str, meaning: ClauseMeaning | None = None) -> Reading:
    entry = meaning.entry if meaning else None
    return Reading(
        intent=Intent.REFUSE,
        domain=entry.domain if entry and entry.domain else "system",
        confidence=1 - meaning.confidence if meaning else 0.9,
        reasoning=reasoning,
        candidates=tuple(fit.entry.name for fit in _near(meaning.fits)) if meaning else (),
    )


def _unclear(meaning: ClauseMeaning, reasoning: str) -> Reading:
    things = {thing for thing, _ in meaning.query.things}
    near = _near(meaning.fits, things, NEAR if meaning.confidence > OPEN else 2 * NEAR)
    return Reading(
        intent=Intent.CLARIFY,
        domain=(near[0].entry.domain if near else "") or "system",
        confidence=meaning.confidence,
        reasoning=reasoning,
        question=_question(near),
        candidates=tuple(fit.entry.name for fit in near),
    )


def _near(
    fits: Sequence[Fit], things: Collection[str] = (), distance: float = NEAR
) -> Sequence[Fit]:
    """At most three tools that may be meant; those of a domain that was named come first."""
    near = [fit for fit in fits if fit.score >= fits[0].score - distance]
    return sorted(near, key=lambda fit: fit.entry.domain_stems.isdisjoint(things))[:3]


def _question(near: Sequence[Fit]) -> str:
    if not near:
        return "What should be done, and to which thing?"
    ways = [f"{fit.entry.name} ({_first_sentence(fit.entry.subject.description)})" for fit in near]
    if len(ways) == 1:
        return f"Say it as a plain request with all its details: do you mean {ways[0]}?"
    return f"Which one do you mean: {', '.join(ways[:-1])} or {ways[-1]}?"


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].split(":")[0].rstrip(".")
