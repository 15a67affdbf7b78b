"""Records of a pack, found by the words that people use for them. What is read here is data and never a request."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from podium.core.model import Json, canonical_json
from podium.core.packs import MENTION, Lookup, Pack, RecordSource
from podium.jobs.operator.judgement.embedded.tokens import stem
from podium.jobs.operator.judgement.fields.identifiers import digits
from podium.jobs.operator.judgement.ground_check import tokens_of

MAX_WORDS = 8
"""Words of a message that are looked up."""
MAX_RECORDS = 1_000
"""Records of one answer that are compared."""
MAX_LABEL = 100
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_EXACT = ("phone", "email")
_DIGITS = 6

Read = Callable[[str, Mapping[str, Json]], Awaitable[Mapping[str, Json] | None]]
"""Calls a tool that only reads. None: it could not be called, or failed."""


@dataclass(frozen=True)
class Record:
    """One record, as it is now."""

    kind: str
    id: str
    row: Mapping[str, Json] = field(compare=False, hash=False)
    label: str = field(default="", compare=False)
    """Text for people, of the record's own fields: untrusted."""


@dataclass(frozen=True)
class NamedRecord:
    """A record with the words of the message that name it."""

    record: Record
    words: frozenset[str]


class PackRecords:
    """Finds records by the lookups that a registry declares. Reads each source once."""

    def __init__(self, pack: Pack, read: Read) -> None:
        self._pack = pack
        self._read = read
        self._results: dict[str, tuple[list[Record], bool]] = {}

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(lookup.kind for lookup in self._pack.registry.lookup)

    def lists_all(self, kind: str) -> bool:
        """Return whether the records of a kind can be listed without a word that they have."""
        lookup = self._pack.lookup(kind)
        return lookup is not None and not _needs_words(lookup.find)

    async def all_of(self, kind: str) -> list[Record]:
        """Return all records of a kind that can be listed."""
        lookup = self._pack.lookup(kind)
        return await self._listed(lookup) if lookup else []

    async def with_word(self, kind: str, word: str) -> list[Record]:
        """Return the records that the source finds by a word."""
        lookup = self._pack.lookup(kind)
        return (await self._records(lookup, lookup.find, {MENTION: word}))[0] if lookup else []

    async def by_id(self, kind: str, record_id: str) -> Record | None:
        """Return the record. None: there is no such record, or it cannot be read."""
        lookup = self._pack.lookup(kind)
        if lookup is None:
            return None
        if lookup.get is not None:
            records, _ = await self._records(lookup, lookup.get, {"$id": record_id})
        else:
            records, _ = await self._records(lookup, lookup.find, {})
        return next((record for record in records if record.id == record_id), None)

    async def named(self, kind: str, words: Sequence[str]) -> list[NamedRecord]:
        """Return the records that some of these words name, by their own fields or as those of another record."""
        return await self._named(kind, tuple(dict.fromkeys(words))[:MAX_WORDS], frozenset())

    async def belonging(self, kind: str, to: Record) -> list[Record]:
        """Return the records of a kind that belong to another one, or that the other one belongs to."""
        if to.kind == kind:
            return [to]
        owner = self._pack.lookup(to.kind)
        above = owner.parents.get(kind) if owner else None
        if above is not None:
            parent = await self.by_id(kind, str(to.row.get(above) or ""))
            return [parent] if parent else []
        lookup = self._pack.lookup(kind)
        column = lookup.parents.get(to.kind) if lookup else None
        if lookup is None or column is None or _needs_words(lookup.find):
            return []
        records = await self._listed(lookup)
        return [record for record in records if record.row.get(column) == to.id]

    async def newest(self, kind: str) -> Record | None:
        """Return the record that was made last. None: nothing says which one that is."""
        lookup = self._pack.lookup(kind)
        if lookup is None or _needs_words(lookup.find) or not await self.is_complete(kind):
            return None
        records = [
            record
            for record in await self._listed(lookup)
            if isinstance(record.row.get("created_at"), str)
        ]
        return max(records, key=lambda record: str(record.row["created_at"]), default=None)

    async def is_complete(self, kind: str) -> bool:
        """Return whether all records of the kind are compared, and not only the first of very many."""
        lookup = self._pack.lookup(kind)
        if lookup is None or _needs_words(lookup.find):
            return True
        return (await self._records(lookup, lookup.find, {}))[1]

    async def described(self, record: Record) -> Record:
        """The record with a label that begins with the record it belongs to: a quote has no name of its own."""
        lookup = self._pack.lookup(record.kind)
        for kind, column in lookup.parents.items() if lookup else ():
            owner = await self.by_id(kind, str(record.row.get(column) or ""))
            if owner is not None:
                first = owner.label.split(", ")[0]
                label = ", ".join(part for part in (first, record.label) if part)[:MAX_LABEL]
                return Record(record.kind, record.id, record.row, label)
        return record

    async def _named(
        self, kind: str, words: tuple[str, ...], below: frozenset[str]
    ) -> list[NamedRecord]:
        lookup = self._pack.lookup(kind)
        if lookup is None or not words or kind in below:
            return []
        owners: dict[str, dict[str, frozenset[str]]] = {}
        for parent in lookup.parents:
            found = await self._named(parent, words, below | {kind})
            owners[parent] = {match.record.id: match.words for match in found}
        if _needs_words(lookup.find):
            records = [
                record
                for word in words
                for form in (word, word.removesuffix("s"))
                for record in (await self._records(lookup, lookup.find, {MENTION: form}))[0]
            ]
        else:
            records = await self._listed(lookup)
        matches: dict[str, NamedRecord] = {}
        for record in records:
            by_owner = (
                owners[parent].get(str(record.row.get(column)), frozenset())
                for parent, column in lookup.parents.items()
            )
            covered = _covered(lookup, record, words).union(*by_owner)
            if covered:
                matches[record.id] = NamedRecord(record, covered)
        return list(matches.values())

    async def _listed(self, lookup: Lookup) -> list[Record]:
        return (await self._records(lookup, lookup.find, {}))[0]

    async def _records(
        self, lookup: Lookup, source: RecordSource, values: Mapping[str, str]
    ) -> tuple[list[Record], bool]:
        """The records of a source, and whether these are all."""
        arguments = {
            name: values.get(value, value) if isinstance(value, str) else value
            for name, value in source.arguments.items()
        }
        key = f"{source.tool} {canonical_json(arguments)}"
        if key not in self._results:
            result = await self._read(source.tool, arguments)
            rows = result.get(source.rows) if result else None
            rows = [rows] if isinstance(rows, Mapping) else rows if isinstance(rows, list) else []
            count = result.get("count") if result else None
            complete = not isinstance(count, int) or count <= len(rows)
            records = [_record(lookup, row) for row in rows[:MAX_RECORDS]]
            self._results[key] = (
                [record for record in records if record is not None],
                complete and len(rows) <= MAX_RECORDS,
            )
        return self._results[key]


def is_plain_id(text: str) -> bool:
    """Return whether a text may stand in a sentence as an id and cannot be read as anything else."""
    return _ID.fullmatch(text) is not None


def _needs_words(source: RecordSource) -> bool:
    return MENTION in source.arguments.values()


def _record(lookup: Lookup, row: Json) -> Record | None:
    record_id = row.get(lookup.id) if isinstance(row, Mapping) else None
    if not isinstance(record_id, str) or not is_plain_id(record_id):
        return None
    if any(row.get(column) == value for column, value in lookup.ignore.items()):
        return None
    values = (row.get(column) for column in lookup.label)
    label = ", ".join(_text(value) for value in values if value not in (None, ""))
    return Record(lookup.kind, record_id, row, label[:MAX_LABEL])


def _text(value: Json) -> str:
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _covered(lookup: Lookup, record: Record, words: Iterable[str]) -> frozenset[str]:
    """The words that name the record by its own fields."""
    covered: set[str] = set()
    for column, kind in lookup.match.items():
        value = record.row.get(column)
        if isinstance(value, str) and value:
            covered |= _matching(kind, value, list(words))
    return frozenset(covered)


def _matching(kind: str, value: str, words: Sequence[str]) -> set[str]:
    if kind in _EXACT:
        own = digits(value) if kind == "phone" else value.casefold()
        form = digits if kind == "phone" else str.casefold
        matches = {word for word in words if form(word) == own}
        return {word for word in matches if kind != "phone" or len(digits(word)) >= _DIGITS}
    own_tokens = tokens_of(value)
    if kind == "suburb":
        # Clayton is not Clayton South: a place counts when all of its name is said.
        return set(own_tokens) if own_tokens and set(own_tokens) <= set(words) else set()
    known = {form for token in own_tokens for form in (token, f"{token}s")}
    matches = {word for word in words if word in known}
    if kind == "text":
        stems = {stem(token) for token in own_tokens}
        matches |= {word for word in words if stem(word) in stems}
    return matches
