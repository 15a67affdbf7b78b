"""Parts of a message that no call uses: listed with the answer, or asked about where they may change what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podium.core.packs import Pack, Skill
from podium.jobs.operator.judgement.caution import NO_MORE, ParsedMessage, as_question
from podium.jobs.operator.judgement.embedded.moods import MOOD_CUES, OPENINGS
from podium.jobs.operator.judgement.embedded.query import LIGHT, PREPOSITIONS
from podium.jobs.operator.judgement.embedded.tokens import (
    PARTICLES,
    READ,
    STOPWORDS,
    agreement,
    kinds_of,
    stem,
    token_set,
    tokenize,
)
from podium.jobs.operator.judgement.embedded.tool_index import (
    IN_DOMAIN,
    Index,
    IndexEntry,
    index_of,
)
from podium.jobs.operator.judgement.fields.extractor import RECORD, TAKES_BACK
from podium.jobs.operator.judgement.fields.tokenized_text import Entity
from podium.jobs.operator.models import Intent, Message, Reading, ToolIntent

CHANGES_SENSE = token_set("if unless until except only half later provided")
"""Words that may limit or put off what the rest of a message asks for. What denies it is a mood of its clause."""
_SILENT = (
    STOPWORDS
    | OPENINGS
    | PREPOSITIONS
    | token_set(
        "much obliged appreciated ever w im ill shes hes theyre btw atm lol haha yay off by n x u r em bit"
    )
)
_ENDS = re.compile(r"[.!?;,\n]|\s-\s")
_NOT_YET = re.compile(r"\b(?:has|have|is|was|did)nt yet\b")
_WRONG = re.compile(r"\bis wrong\b")
_BEFORE = 24
_MAX_LISTED = 8
_NUMBERING = re.compile(r"(?<![\w.,$])\d{1,2}[.)](?=\s)")


class Unused(NamedTuple):
    """Words that stand together, and what makes them weigh."""

    text: str
    why: str = ""
    """Empty: they say something beside, and change nothing."""


def account_for(
    reading: Reading, message: Message, pack: Pack, entities: Sequence[Entity], plain: str
) -> Reading:
    """The reading with what it does not use, or as a question about it. `plain` is the text without what is only polite."""
    if reading.intent is not Intent.EXECUTE or not reading.calls:
        return reading
    parsed = ParsedMessage(message.text, reading.calls, pack, entities, message.now)
    parts = unused_parts(parsed, plain) if parsed.changes else []
    for part in parts:
        if part.why:
            return as_question(
                reading, f"What about {part.text!r}? No call uses it, and {part.why}."
            )
    return reading.model_copy(update={"not_used": tuple(part.text for part in parts)})


def unused_parts(parsed: ParsedMessage, plain: str) -> list[Unused]:
    """The parts of the message that no call uses, in its order. `plain` is its text without what is only polite."""
    if any(_takes_all(parsed, intent) for intent in parsed.intents):
        return []
    index = index_of(parsed.pack)
    used = _used_positions(parsed)
    parts: list[Unused] = []
    run: list[tuple[int, int, str]] = []
    for token in tokenize(plain):
        if _NUMBERING.match(parsed.text, token.start):
            continue
        covered = used[token.start] or used[token.end - 1]
        silent = token.text in _SILENT and token.text not in CHANGES_SENSE
        spoken_for = _says_what_is_done(token.text, parsed, index)
        ended = bool(run) and _ENDS.search(parsed.text, run[-1][1], token.start) is not None
        if ended or covered or (spoken_for and not silent):
            parts += _part(run, parsed)
            run = []
        if not covered and not spoken_for and (run or not silent or token.text in CHANGES_SENSE):
            run.append((token.start, token.end, token.text))
    return [*parts, *_part(run, parsed)][:_MAX_LISTED]


def _takes_all(parsed: ParsedMessage, intent: ToolIntent) -> bool:
    """Return whether the whole message is an argument of a call."""
    entry = parsed.entry(intent)
    shapes = entry.input_schema.get("properties", {}) if entry else {}
    # What a context is about is found by the words of the message.
    from_context = isinstance(entry, Skill) and bool(entry.needs_context)
    return from_context or any(shape.get("x-resolve") == "message" for shape in shapes.values())


def _used_positions(parsed: ParsedMessage) -> bytearray:
    """Mark the characters that are values of calls, or name the records of them."""
    used = bytearray(len(parsed.text) + 1)
    values = {_plain(argument.value) for argument in parsed.all_arguments}
    reach = frozenset().union(*(_open_kinds(parsed, intent) for intent in parsed.intents))
    for span in parsed.texts:
        used[span.start : span.end] = b"\x01" * (span.end - span.start)
    for entity in parsed.finds:
        if _is_used(entity, values, reach, parsed):
            used[entity.start : entity.end] = b"\x01" * (entity.end - entity.start)
    return used


def _open_kinds(parsed: ParsedMessage, intent: ToolIntent) -> frozenset[str]:
    """The kinds of what a record may fill: ids, and what is needed and was not said."""
    entry = parsed.entry(intent)
    shapes = entry.input_schema.get("properties", {}) if entry else {}
    required = entry.input_schema.get("required", ()) if entry else ()
    kinds = {name: str(shape.get("x-kind", "")) for name, shape in shapes.items()}
    return frozenset(
        kind
        for name, kind in kinds.items()
        if kind.startswith("id:") or (name in required and name not in intent.arguments)
    )


def _is_used(
    entity: Entity, values: set[str], reach: frozenset[str], parsed: ParsedMessage
) -> bool:
    if entity.kind == RECORD:
        return not reach.isdisjoint(entity.value) or _plain(entity.text) in values
    if _plain(entity.value) in values:
        return True
    if entity.kind in ("date", "time", "datetime", "period"):
        if NO_MORE.search(parsed.lower, max(0, entity.start - _BEFORE), entity.start):
            return True
        whens = [a.value for a in parsed.all_arguments if a.kind in ("date", "time", "datetime")]
        return any(
            str(when) in str(entity.value) or str(entity.value) in str(when) for when in whens
        )
    return any(len(value) > 2 and value in _plain(entity.text) for value in values)


def _plain(value: object) -> str:
    return str(value).casefold().removesuffix(".0")


def _says_what_is_done(text: str, parsed: ParsedMessage, index: Index) -> bool:
    """Return whether a word asks for what the calls do, or names their things."""
    word = stem(text)
    for entry in _entries(parsed, index):
        if entry.strengths.get(word, 0.0) >= IN_DOMAIN or word in entry.domain_stems:
            return True
        if agreement(kinds_of(word), entry.acts) > 0 or (kinds_of(word) == {READ} and entry.reads):
            return True
    return word in index.objects and not kinds_of(word)


def _entries(parsed: ParsedMessage, index: Index) -> Iterator[IndexEntry]:
    for intent in parsed.intents:
        entry = index.by_name.get(intent.tool)
        if entry is not None:
            yield entry


def _part(run: list[tuple[int, int, str]], parsed: ParsedMessage) -> Iterator[Unused]:
    while run and run[-1][2] in _SILENT and run[-1][2] not in CHANGES_SENSE:
        run = run[:-1]
    if run:
        text = parsed.text[run[0][0] : run[-1][1]]
        opens = not parsed.text[: run[0][0]].strip()
        yield Unused(
            " ".join(text.split()),
            _weight(run, _complete(parsed), opens, parsed.finds, _lacks_something(parsed)),
        )


def _weight(
    run: list[tuple[int, int, str]],
    complete: bool,
    opens: bool,
    finds: Sequence[Entity],
    lacks_something: bool,
) -> str:
    words = [text for _, _, text in run]
    if not CHANGES_SENSE.isdisjoint(words) or _NOT_YET.search(" ".join(words)):
        return "it may change what is meant"
    if any(find.kind == RECORD and find.touches(run[0][0], run[-1][1]) for find in finds):
        return "it names a record"
    named = (find for find in finds if find.touches(run[0][0], run[-1][1]))
    if not lacks_something and any(map(_is_somebody, named)):
        return "it names somebody"
    if complete and any(character.isdigit() for word in words for character in word):
        return "it has a figure"
    telling = [word for word in words if word not in _SILENT]
    if len(telling) > (0 if opens else 1) and telling[0] == words[0] and _is_order(telling[0]):
        return "it may be another request"
    return ""


def _complete(parsed: ParsedMessage) -> bool:
    """Return whether every call has what it needs of the message, which neither corrects itself nor tells of the past."""
    today = parsed.now.date().isoformat()
    is_past = any(find.kind == "date" and str(find.value) < today for find in parsed.finds)
    if is_past or TAKES_BACK.search(parsed.lower) or _WRONG.search(parsed.lower):
        return False
    reach = {kind for find in parsed.finds if find.kind == RECORD for kind in find.value}
    for intent in parsed.intents:
        entry = parsed.entry(intent)
        shapes = entry.input_schema.get("properties", {}) if entry else {}
        for name in entry.input_schema.get("required", ()) if entry else ():
            kind = str(shapes.get(name, {}).get("x-kind", ""))
            resolved = kind.startswith("id:") or kind == "money" or kind in reach
            if name not in intent.arguments and not resolved:
                return False
    return True


def _lacks_something(parsed: ParsedMessage) -> bool:
    """Return whether a call is asked about anyway, or takes from a record what it needs: who is named may be it."""
    for intent in parsed.intents:
        entry = parsed.entry(intent)
        required = entry.input_schema.get("required", ()) if entry else ()
        if any(name not in intent.arguments for name in required):
            return True
    return False


def _is_somebody(find: Entity) -> bool:
    """Return whether a find is the whole name of a person; one word with a capital may be anything."""
    return find.kind == "name" and " " in find.text.strip()


def _is_order(word: str) -> bool:
    kinds = kinds_of(word)
    return (
        bool(kinds)
        and stem(word) not in LIGHT
        and word not in MOOD_CUES
        and word not in PARTICLES
        and stem(word) == word
    )
