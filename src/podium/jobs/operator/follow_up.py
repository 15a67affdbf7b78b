"""Follow-ups: what a message means after the one before it. Answers, choices, corrections, `same for Sarah`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.embedded.tokens import ACTION_VERBS
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.fields.pack_lexicon import kind_of, properties_of
from podium.jobs.operator.judgement.ground_check import tokens_of
from podium.jobs.operator.models import Intent, Message
from podium.jobs.operator.references import chosen_place
from podium.jobs.operator.resolution import ReadAlone
from podium.jobs.operator.session import Session, SessionTurn

_APPROVE = re.compile(r"(?:approve|approved)(?: (?:it|this|that|the plan))?", re.IGNORECASE)
_GO = re.compile(
    r"(?:yes|yep|yeah|ok|okay|sure|right|correct)?,? ?(?:please )?"
    r"(?:do it|do that|go ahead|run it|go on|please do|please)?",
    re.IGNORECASE,
)
_DROP = re.compile(
    r"(?:no|nope|nah),? ?(?:thanks|thank you)?|never ?mind|forget (?:it|that)|cancel that|leave it|scrap that"
    r"|don'?t(?: do (?:it|that))?|stop|neither|none(?: of (?:them|these|those))?",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"(?:(?:no|nope|nah|sorry|actually|oops|wait|rather|correction|i mean|i meant|make (?:it|that)|scratch that|"
    r"change (?:it|that) to|should be|it'?s)\b[\s,:;.!-]*)+",
    re.IGNORECASE,
)
_NOT_THIS = re.compile(r"\bnot (?:on |at |for )?[^,.;]{1,40}[,;.]\s*(?:but )?", re.IGNORECASE)
_SAME = re.compile(
    r"(?:and |then |now |please )*(?:do |make )?(?:the )?same(?: thing| again)? (?:for|with|to|on) (?P<who>.{1,80})"
    r"|ditto (?:for )?(?P<ditto>.{1,80})"
    r"|(?:and )?(?:what|how) about (?P<about>.{1,80})"
    r"|and (?:also )?(?:for )?(?P<too>.{1,60}?),? (?:too|as well|also)",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?:(?:but |please )*(?:say|saying|tell (?:him|her|them)(?: that)?|write)):?\s+(?P<text>.+)",
    re.IGNORECASE,
)
_ENDING = " \t\n.!?"
_REPLACED = ("date", "time", "datetime", "money", "number", "phone", "email", "suburb", "address")
_READ_ANEW = (*_REPLACED, "name", "choice", "flag", "postcode")
_OPEN = ("analyzed", "planned", "clarify", "awaiting_approval", "quality_gate_failed")
_MAX_ANSWER_WORDS = 8
_MAX_NAME_WORDS = 5

Act = Literal["ask", "approve", "drop", "done"]


@dataclass(frozen=True)
class ContinuedMessage:
    """A message as it is to be read."""

    text: str
    full_text: str = ""
    about: str = ""
    context: dict[str, Json] = field(default_factory=dict)
    pack: str = ""
    act: Act = "ask"
    continues: bool = False
    """It says more of the last turn, and takes its place."""


@dataclass(frozen=True)
class EmbeddedReader:
    """Podium's own reading of messages against one pack."""

    pack: Pack
    extract: FieldExtractor
    read_alone: ReadAlone


@dataclass(frozen=True)
class Interpreter:
    """Reads one message after the last turn of a session."""

    session: Session
    message: str
    now: datetime
    reader: EmbeddedReader | None
    """Of the last turn's pack. None: the pack is gone, or the last turn had none."""

    def read(self) -> ContinuedMessage:
        """The follow-up; the message as it is where it is none."""
        last, plain = self.session.last, self.message.strip(_ENDING)
        if last is None or not plain:
            return ContinuedMessage(self.message)
        if last.action_id and _APPROVE.fullmatch(plain):
            return ContinuedMessage(self.message, act="approve")
        if last.status in _OPEN and _DROP.fullmatch(plain):
            return ContinuedMessage(self.message, act="drop")
        if self.reader is None:
            return ContinuedMessage(self.message)
        return next(self._readings(last, plain, self.reader), ContinuedMessage(self.message))

    def _readings(
        self, last: SessionTurn, plain: str, reader: EmbeddedReader
    ) -> Iterator[ContinuedMessage]:
        if last.status in ("analyzed", "planned") and _GO.fullmatch(plain):
            yield self._again(last, continues=True, full_text=last.full_text)
        if match := _CORRECTS.match(plain):
            yield from self._corrections(last, _NOT_THIS.sub("", plain[match.end() :]), reader)
        if last.status == "clarify":
            yield from self._answers(last, plain, reader)
        if match := _SAME.fullmatch(plain):
            who = next(group for group in match.groupdict().values() if group)
            if last.tools and not self._is_request(reader, plain):
                yield self._for_another(last, who, reader)

    # --- answers -----------------------------------------------------------------------------

    def _answers(
        self, last: SessionTurn, plain: str, reader: EmbeddedReader
    ) -> Iterator[ContinuedMessage]:
        if last.options:
            place = chosen_place(plain, len(last.options))
            if place is None and len(last.options) == 1 and _GO.fullmatch(plain):
                place = 0
            place = self._labelled(last, plain) if place is None else place
            if place is not None:
                yield self._with(last, {last.option_field: last.options[place].id})
        if self._is_request(reader, plain):
            return
        if last.missing:
            yield from self._filled(last, plain, reader)
        elif last.tools and (tool := _chosen_tool(last.tools, plain)):
            yield self._again(last, continues=True, text=f"{tool} {last.text}")

    def _labelled(self, last: SessionTurn, plain: str) -> int | None:
        """The one option whose label has the words of the answer."""
        words = set(tokens_of(plain)) - {"the", "one", "a", "for", "of"}
        fitting = [
            place
            for place, option in enumerate(last.options)
            if words and words <= {*tokens_of(option.label), option.id.casefold()}
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _filled(
        self, last: SessionTurn, plain: str, reader: EmbeddedReader
    ) -> Iterator[ContinuedMessage]:
        missing = [name for one in last.missing for name in one.split(" or ")]
        entries = list(_entries(last.tools, reader.pack))
        values: dict[str, Json] = {}
        for name in missing:
            entry = next((entry for entry in entries if name in properties_of(entry)), None)
            if entry is None:
                continue
            alone = len(last.missing) == 1 and len(plain.split()) <= _limit(entry, name)
            value = reader.extract.answer(name, plain, entry, self._as_message(plain), whole=alone)
            if value is not None:
                values[name] = value
        if values:
            yield self._with(last, values)
        elif _is_name(plain) and any(_is_record(name, entries) for name in missing):
            yield self._again(last, continues=True, about=plain)

    # --- corrections -------------------------------------------------------------------------

    def _corrections(
        self, last: SessionTurn, rest: str, reader: EmbeddedReader
    ) -> Iterator[ContinuedMessage]:
        if not rest.strip() or not last.tools:
            return
        reading = reader.read_alone(self._as_message(rest))
        others = {call.tool for call in reading.calls} - set(last.tools)
        if reading.intent is Intent.EXECUTE and others:
            return
        text, values = last.text, dict[str, Json]()
        entries = list(_entries(last.tools, reader.pack))
        for entry in entries:
            read = reader.extract.arguments(rest, entry, self._as_message(rest))
            shapes = properties_of(entry)
            for name, value in read.items():
                kind = kind_of(name, shapes[name])
                if kind in _READ_ANEW or kind.startswith("id:"):
                    values.setdefault(name, value)
            if (says := _SAYS.fullmatch(rest)) and (name := _only_text(entry)):
                values[name] = says["text"]
            text = self._with_names(text, entry, values, reader)
        text, replaced = self._replaced(text, rest, reader)
        if replaced:
            values = {
                name: value
                for name, value in values.items()
                if not _has_kind(name, entries, replaced)
            }
        if not replaced and not values:
            if last.status in _OPEN and _is_name(rest):
                yield self._for_another(last, rest, reader, continues=True)
            elif _is_name(rest) and any(word[:1].isupper() for word in rest.split()):
                yield ContinuedMessage(self.message, act="done")
            return
        kept = {
            name: value
            for name, value in last.context.items()
            if not _has_kind(name, entries, replaced)
        }
        yield self._done(last) or ContinuedMessage(
            text,
            self._all_text(last),
            last.about,
            {**kept, **values},
            last.pack,
            continues=True,
        )

    def _with_names(
        self, text: str, entry: PackTool | Skill, values: dict[str, Json], reader: EmbeddedReader
    ) -> str:
        """The text with the new names in the place of the old ones, so that nobody is meant who is not any more."""
        old = reader.extract.arguments(text, entry, self._as_message(text))
        shapes = properties_of(entry)
        for name, value in values.items():
            before = str(old.get(name) or "")
            if name in shapes and kind_of(name, shapes[name]) == "name" and text.count(before) == 1:
                text = text.replace(before, str(value)) if before else text
        return text

    def _replaced(self, text: str, rest: str, reader: EmbeddedReader) -> tuple[str, frozenset[str]]:
        """The text with the one value of each kind that the correction has another one of, and these kinds."""
        kinds: set[str] = set()
        for new in reader.extract.entities(rest, self.now):
            olds = [
                old
                for old in reader.extract.entities(text, self.now)
                if old.kind == new.kind and new.kind in _REPLACED
            ]
            if len(olds) == 1:
                text = f"{text[: olds[0].start]}{new.text}{text[olds[0].end :]}"
                kinds.add(new.kind)
        return text, frozenset(kinds)

    def _done(self, last: SessionTurn) -> ContinuedMessage | None:
        """None while the last request is open; what is done cannot be corrected by words."""
        return None if last.status in _OPEN else ContinuedMessage(self.message, act="done")

    # --- the last request, with something else -----------------------------------------------

    def _again(
        self,
        last: SessionTurn,
        *,
        continues: bool,
        text: str = "",
        about: str = "",
        full_text: str = "",
    ) -> ContinuedMessage:
        return ContinuedMessage(
            text or last.text,
            full_text or self._all_text(last),
            about or last.about,
            dict(last.context),
            last.pack,
            continues=continues,
        )

    def _with(self, last: SessionTurn, values: dict[str, Json]) -> ContinuedMessage:
        context = {**last.context, **values}
        return ContinuedMessage(
            last.text, self._all_text(last), last.about, context, last.pack, continues=True
        )

    def _for_another(
        self, last: SessionTurn, who: str, reader: EmbeddedReader, *, continues: bool = False
    ) -> ContinuedMessage:
        """The last request for another record: nothing that stood for the one before is kept."""
        entries = list(_entries(last.tools, reader.pack))
        context = {
            name: value
            for name, value in last.context.items()
            if not _is_record(name, entries) and not _has_kind(name, entries, {"phone", "email"})
        }
        return ContinuedMessage(
            last.text, self._all_text(last), who, context, last.pack, continues=continues
        )

    def _all_text(self, last: SessionTurn) -> str:
        return f"{last.full_text} / {self.message.strip()}"

    def _as_message(self, text: str) -> Message:
        return Message(text=text, now=self.now)

    def _is_request(self, reader: EmbeddedReader, text: str) -> bool:
        """Return whether a text asks for something by itself."""
        reading = reader.read_alone(self._as_message(text))
        return reading.intent is Intent.EXECUTE and bool(reading.calls)


def _is_name(text: str) -> bool:
    """Return whether a text may name a record and asks for nothing: `Tony`, `the Clayton one`."""
    return len(text.split()) <= _MAX_NAME_WORDS and ACTION_VERBS.keys().isdisjoint(tokens_of(text))


def _chosen_tool(tools: tuple[str, ...], plain: str) -> str:
    place = chosen_place(plain, len(tools))
    if place is not None:
        return tools[place]
    words = set(tokens_of(plain))
    named = [tool for tool in tools if plain == tool or words <= set(re.split(r"[._]", tool))]
    return named[0] if len(named) == 1 else ""


def _entries(tools: tuple[str, ...], pack: Pack) -> Iterator[PackTool | Skill]:
    for name in tools:
        entry = pack.tool(name) or pack.skill(name)
        if entry is not None:
            yield entry


def _limit(entry: PackTool | Skill, name: str) -> int:
    """Words that an answer may have: a text may be long, a place or a name is not."""
    return 200 if kind_of(name, properties_of(entry)[name]) == "text" else _MAX_ANSWER_WORDS


def _has_kind(name: str, entries: list[PackTool | Skill], kinds: frozenset[str] | set[str]) -> bool:
    shapes = (properties_of(entry).get(name) for entry in entries)
    return any(shape is not None and kind_of(name, shape) in kinds for shape in shapes)


def _only_text(entry: PackTool | Skill) -> str:
    """The one text that a call must have, such as that of a message; empty: none, or several."""
    shapes, required = properties_of(entry), entry.input_schema.get("required", ())
    texts = [name for name in shapes if name in required and kind_of(name, shapes[name]) == "text"]
    return texts[0] if len(texts) == 1 else ""


def _is_record(name: str, entries: list[PackTool | Skill]) -> bool:
    shapes = (properties_of(entry).get(name) for entry in entries)
    return any(shape is not None and kind_of(name, shape).startswith("id:") for shape in shapes)
