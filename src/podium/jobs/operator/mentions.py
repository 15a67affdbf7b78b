"""Mentions: the parts of a message that name records, found before the message is read."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.core.packs import Lookup, Pack
from podium.jobs.operator.judgement.embedded.tokens import (
    EVERYDAY,
    STOPWORDS,
    clean,
    distance,
    kinds_of,
    stem,
)
from podium.jobs.operator.judgement.fields.pack_lexicon import kind_of, pack_lexicon, properties_of
from podium.jobs.operator.judgement.fields.tokenized_text import NEVER_NAMES, tidy
from podium.jobs.operator.models import Message, RecordMention, RecordRef
from podium.jobs.operator.records import PackRecords, Record

MAX_WORDS = 12
"""Words of a message for which records are looked up."""
MAX_RECORDS = 40
"""Records that one mention may name."""
_TOKEN = re.compile(r"[^\W_]+(?:['.\-][^\W_]+)*'?")
_BEGINNING = 3
"""Letters with which a word must begin to be looked up although it may have typing errors in it."""
_ONE_ERROR_FROM, _TWO_ERRORS_FROM = 4, 7
_NAMES = ("name", "suburb", "address", "file")
_TITLES = ("text",)
_NEAR = 4
"""Words between the noun of a thing and the words of its title."""


@dataclass(frozen=True)
class _Word:
    """A word of the message, with the forms in which a record may have it."""

    text: str
    start: int
    end: int

    @cached_property
    def forms(self) -> tuple[str, ...]:
        bare = self.text.removesuffix("'s").removesuffix("'").replace("'", "").replace(".", "")
        own = self.text.removesuffix("'s").removesuffix("'").replace("'", "")
        plain = tuple(dict.fromkeys((own, bare)))
        if bare.endswith("s") and len(bare) > 3:
            return (*plain, bare[:-1])
        return plain


@dataclass(frozen=True)
class _Match:
    """Consecutive words that a field of a record has."""

    first: int
    last: int
    errors: int
    record: Record

    @property
    def rank(self) -> tuple[int, int]:
        return (self.last - self.first, -self.errors)


@dataclass
class MentionFinder:
    """Finds the mentions of one message."""

    pack: Pack
    records: PackRecords

    async def mentioned(self, message: Message) -> Message:
        """The message with the records that its words name, and the names that records have for people."""
        text = clean(message.text)
        words = [
            _Word(match.group().lower(), match.start(), match.end())
            for match in _TOKEN.finditer(text)
        ]
        matches = [match async for match in self._matches(words)]
        mentions = [await self._mention(text, words, chosen) for chosen in _best(matches, words)]
        mentions += [mention async for mention in self._titled(text, words, mentions)]
        names = await self._names()
        return message.model_copy(update={"mentions": tuple(mentions), "names": names})

    # --- names, places, addresses ------------------------------------------------------------

    async def _matches(self, words: Sequence[_Word]) -> AsyncIterator[_Match]:
        tokens = pack_lexicon(self.pack).pack_tokens
        asked = [word for word in words if _may_name(word, tokens)][:MAX_WORDS]
        for lookup in self.pack.registry.lookup:
            columns = [
                column
                for column, kind in lookup.match.items()
                if kind in _NAMES and (kind != "name" or lookup.person)
            ]
            if not columns:
                continue
            for record in await self._candidates(lookup, asked):
                for column in columns:
                    value = record.row.get(column)
                    if isinstance(value, str) and value:
                        for match in _matched(words, record, value, lookup.match[column], tokens):
                            yield match

    async def _candidates(self, lookup: Lookup, words: Sequence[_Word]) -> list[Record]:
        if self.records.lists_all(lookup.kind):
            return await self.records.all_of(lookup.kind)
        found: dict[str, Record] = {}
        for word in words:
            form = word.forms[-1]
            exact = await self.records.with_word(lookup.kind, form)
            if not exact and len(form) >= _ONE_ERROR_FROM:
                exact = await self.records.with_word(lookup.kind, form[:_BEGINNING])
            found |= {record.id: record for record in exact}
        return list(found.values())

    async def _mention(
        self, text: str, words: Sequence[_Word], matches: Sequence[_Match]
    ) -> RecordMention:
        start, end = words[matches[0].first].start, words[matches[0].last].end
        records = list({match.record.id: match.record for match in matches}.values())[:MAX_RECORDS]
        return RecordMention(
            start=start,
            end=end,
            text=text[start:end],
            records=tuple(_ref(record) for record in records),
            reach=tuple(sorted(await self._reach(records))),
        )

    async def _reach(self, records: Iterable[Record]) -> set[str]:
        """The kinds of values that these records lead to: their own ids, those of what belongs to them, contacts."""
        kinds: set[str] = set()
        for record in records:
            kinds.add(f"id:{record.kind}")
            own = self.pack.lookup(record.kind)
            kinds |= {kind for kind, column in own.gives.items() if record.row.get(column)} if own else set()  # fmt: skip
            for lookup in self.pack.registry.lookup:
                if lookup.kind != record.kind and await self.records.belonging(lookup.kind, record):
                    kinds.add(f"id:{lookup.kind}")
        return kinds

    async def _names(self) -> tuple[str, ...]:
        """The names that records have in columns of the people who do the work, as arguments are called."""
        columns = {
            name
            for tool in self.pack.registry.tools
            for name, shape in properties_of(tool).items()
            if kind_of(name, shape) == "name" and name != "name"
        }
        names: dict[str, None] = {}
        for lookup in self.pack.registry.lookup if columns else ():
            if self.records.lists_all(lookup.kind):
                for record in await self.records.all_of(lookup.kind):
                    values = (record.row.get(column) for column in columns)
                    names.update({value: None for value in values if isinstance(value, str)})
        return tuple(names)[:MAX_RECORDS]

    # --- titles ------------------------------------------------------------------------------

    async def _titled(
        self, text: str, words: Sequence[_Word], mentions: Sequence[RecordMention]
    ) -> AsyncIterator[RecordMention]:
        """`the scaffold task`, `the note about the dog`: words of a title near the noun of its thing."""
        lexicon = pack_lexicon(self.pack)
        for lookup in self.pack.registry.lookup:
            columns = [column for column, kind in lookup.match.items() if kind in _TITLES]
            # `run the tests`: what opens a message is a verb.
            positions = [at for at, word in enumerate(words) if at and any(lexicon.kinds_by_name.get(form) == lookup.kind for form in word.forms)]  # fmt: skip
            if not columns or not positions:
                continue
            near = {
                at
                for position in positions
                for at in range(max(0, position - _NEAR), min(len(words), position + _NEAR + 1))
                if at != position and _says_something(words[at])
                and not any(mention.start <= words[at].start < mention.end for mention in mentions)
            }  # fmt: skip
            scored = [
                (sorted(at for at in near if _in_title(words[at], record, columns)), record)
                for record in await self._titled_candidates(lookup.kind, [words[at] for at in near])
            ]
            most = max((len(hits) for hits, _ in scored), default=0)
            best = [(hits, record) for hits, record in scored if most and len(hits) == most]
            if best and len(best) <= _NEAR:
                hits = best[0][0]
                records = [record for _, record in best]
                yield RecordMention(
                    start=words[hits[0]].start, end=words[hits[-1]].end,
                    text=text[words[hits[0]].start : words[hits[-1]].end],
                    records=tuple(_ref(record) for record in records),
                    reach=tuple(sorted(await self._reach(records))),
                )  # fmt: skip

    async def _titled_candidates(self, kind: str, words: Sequence[_Word]) -> list[Record]:
        if self.records.lists_all(kind):
            return await self.records.all_of(kind)
        found: dict[str, Record] = {}
        for word in words:
            matching = await self.records.with_word(kind, word.forms[-1])
            found |= {record.id: record for record in matching}
        return list(found.values())


def _ref(record: Record) -> RecordRef:
    return RecordRef(kind=record.kind, id=record.id, label=record.label)


def _may_name(word: _Word, known: frozenset[str]) -> bool:
    bare = word.forms[-1]
    if len(bare) < 2 or bare.isdigit():
        return False
    possessive = word.text.endswith(("'s", "s'"))
    return possessive or not (set(word.forms) & NEVER_NAMES or set(word.forms) & known)


def _says_something(word: _Word) -> bool:
    return len(word.text) > 2 and word.text not in STOPWORDS and word.text not in NEVER_NAMES


def _in_title(word: _Word, record: Record, columns: Sequence[str]) -> bool:
    own = {token for column in columns for token in _tokens(str(record.row.get(column) or ""))}
    return any(form in own or f"{form}s" in own for form in word.forms)


def _tokens(value: str) -> list[str]:
    return [
        token.group().lower().removesuffix("'s").replace("'", "").replace(".", "")
        if "." not in token.group() or token.group().endswith(".")
        else token.group().lower().replace("'", "")
        for token in _TOKEN.finditer(tidy(value))
    ]


def _matched(
    words: Sequence[_Word], record: Record, value: str, kind: str, known: frozenset[str]
) -> Iterator[_Match]:
    """The longest run of words that the value has, in its order."""
    tokens = _tokens(value)
    best: _Match | None = None
    for first, word in enumerate(words):
        for at, token in enumerate(tokens):
            errors = _errors(word, token, may_err=kind == "name")
            if errors is None:
                continue
            last, total = first, errors
            while last + 1 < len(words) and at + 1 + last - first < len(tokens):
                following = tokens[at + 1 + last - first]
                more = _errors(words[last + 1], following, may_err=kind == "name")
                initial = words[last + 1].text == following[:1] and kind == "name"
                if more is None and not initial:
                    break
                last, total = last + 1, total + (more or 0)
            whole = last - first + 1 == len(tokens)
            if not _enough(words[first : last + 1], tokens, kind, whole, known):
                continue
            if not whole and kind == "name" and _goes_on(words, last, known):
                continue
            match = _Match(first, last, total, record)
            if best is None or match.rank > best.rank:
                best = match
    if best is not None:
        yield best


def _goes_on(words: Sequence[_Word], last: int, known: frozenset[str]) -> bool:
    """Return whether the name goes on as no record does: who says Sarah Chen does not mean Sarah Nguyen."""
    if last + 1 >= len(words) or words[last].text.endswith(("'s", "s'")):
        return False
    after = words[last + 1]
    if after.start - words[last].end != 1 or len(after.text) < 3 or not after.text.isalpha():
        return False
    recognized = kinds_of(stem(after.text)) or stem(after.text) in EVERYDAY
    return not recognized and _may_name(after, known) and after.text not in STOPWORDS


def _enough(
    words: Sequence[_Word], tokens: Sequence[str], kind: str, whole: bool, known: frozenset[str]
) -> bool:
    """Return whether so many words of a value name its record: all of a place, a part of a person's name."""
    if kind in ("suburb", "file"):
        return whole
    if kind == "address":
        return len(words) >= 2 and words[0].text[:1].isdigit()
    return len(words) > 1 or _may_name(words[0], known)


def _errors(word: _Word, token: str, *, may_err: bool) -> int | None:
    """Typing errors between a word and a token of a record; None for another word."""
    if token in word.forms:
        return 0
    if not may_err or len(token) < _ONE_ERROR_FROM or not token.isalpha():
        return None
    allowed = 2 if len(token) >= _TWO_ERRORS_FROM else 1
    errors = min(distance(form, token, allowed) for form in word.forms)
    same_start = word.text[:1] == token[:1]
    return errors if errors <= allowed and same_start else None


def _best(matches: Sequence[_Match], words: Sequence[_Word]) -> Iterator[list[_Match]]:
    """For each place in the message the matches with the most words and the fewest errors."""
    taken: set[int] = set()
    for match in sorted(matches, key=lambda match: (-match.rank[0], match.errors, match.first)):
        span = set(range(match.first, match.last + 1))
        if span & taken:
            continue
        alike = [
            other
            for other in matches
            if (other.first, other.last, other.errors) == (match.first, match.last, match.errors)
        ]
        taken |= span
        yield alike


def scope_of(mentions: Iterable[RecordMention], text: str) -> list[RecordMention]:
    """The mentions that stand in a part of the message."""
    lowered = text.lower()
    return [mention for mention in mentions if mention.text.lower() in lowered]
