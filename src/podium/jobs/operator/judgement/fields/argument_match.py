"""Match of entities with arguments, and of choices and flags with their known values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.core.model import Json
from podium.jobs.operator.judgement.fields.identifiers import fits, letters_of
from podium.jobs.operator.judgement.fields.pack_lexicon import (
    Lexicon,
    Order,
    Phrases,
    Wanted,
    words_of,
)
from podium.jobs.operator.judgement.fields.tokenized_text import (
    NEVER_NAMES,
    VERBS,
    Entity,
    Passage,
    words_in,
)

Match = tuple[Wanted, Entity]

_ACCEPTED = {
    "date": ("date", "datetime"),
    "time": ("time", "datetime"),
    "datetime": ("datetime", "date"),
}
_CUES = {
    "from": words_in("from since after starting between start"),
    "since": words_in("since from after"),
    "start": words_in("from starting start starts begin beginning on"),
    "to": words_in("to until till before and through ending end"),
    "end": words_in("to until till ending end by"),
    "until": words_in("until till to before"),
    "due": words_in("due by before"),
    "amount": words_in("of for amount paid"),
    "price": words_in("at for price"),
}
_MAX_FINDS = 100
"""What is said of more things than that is no order."""
_POINTING = words_in("to for now by due")
_SUM_BEFORE = words_in("of for at amount price paid pay worth cost costs charge")
_SUM_AFTER = words_in("each per apiece")
_AFTER_SUM = words_in(
    "on to by for off from in at via with as and now today yesterday towards against is was please thanks"
)
_FOR_WHOM = words_in("to for")
_WITH_WHOM = words_in("with by send have get remind ask tell")
_DOING = words_in("will can is does should")


class Matching:
    """Gives each argument at most one find, and each find to at most one argument."""

    def __init__(
        self, order: Order, passage: Passage, free: Sequence[Entity], kinds: frozenset[str]
    ) -> None:
        self._order, self._passage, self._kinds = order, passage, kinds
        self._free = list(free)[:_MAX_FINDS]
        self.matched: list[Match] = []

    def run(self, wanted: Sequence[Wanted]) -> list[Match]:
        self._ids([each for each in wanted if each.kind.startswith("id:")])
        for kind in dict.fromkeys(each.kind for each in wanted):
            alike = [each for each in wanted if each.kind == kind and not self._given(each)]
            if kind == "name":
                self._names(alike)
            elif not kind.startswith("id:"):
                self._alike(alike, _ACCEPTED.get(kind, (kind,)))
        self._sums([each for each in wanted if each.kind == "money" and not self._given(each)])
        return self.matched

    def _given(self, wanted: Wanted) -> bool:
        return any(each is wanted for each, _ in self.matched)

    def _take(self, wanted: Wanted, entity: Entity) -> None:
        self.matched.append((wanted, entity))
        # One moment is both a day and a time.
        if entity.kind != "datetime":
            self._free.remove(entity)

    def _alike(self, wanted: list[Wanted], kinds: tuple[str, ...]) -> None:
        found = [each for each in self._free if each.kind in kinds]
        unclear = len(wanted) > len(found) and not any(each.required for each in wanted)
        least = 1 if len(wanted) > 1 and unclear else 0
        pairs = [
            (-self._score(each, entity), at, entity.start, each, entity)
            for at, each in enumerate(wanted)
            for entity in found
        ]
        for score, _, _, each, entity in sorted(pairs, key=lambda pair: pair[:3]):
            if -score >= least and not self._given(each) and entity in self._free:
                self._take(each, entity)
        for each in wanted:
            self._rest_of_list(each)

    def _rest_of_list(self, wanted: Wanted) -> None:
        if wanted.many and self._given(wanted):
            for entity in [each for each in self._free if each.kind == wanted.kind]:
                self._take(wanted, entity)

    def _score(self, wanted: Wanted, entity: Entity) -> int:
        before = [word.lower for word in self._passage.before(entity.start, 3)]
        cues = {cue for word in wanted.words for cue in _CUES.get(word, ())}
        if before[:1] and (before[0] in cues or before[0] in wanted.words):
            return 4
        if wanted.words.intersection(before):
            return 3
        return 2 if before[:1] and before[0] in _POINTING and not cues else 0

    def _ids(self, wanted: list[Wanted]) -> None:
        for each in wanted:
            exact = [entity for entity in self._free if entity.kind == each.kind]
            for entity in exact if each.many else exact[:1]:
                self._take(each, entity)
        missing = [each for each in wanted if not self._given(each)]
        for each in sorted(missing, key=lambda one: not one.required):
            loose = next((entity for entity in self._free if self._may_be(entity, each)), None)
            if loose:
                self._take(each, loose)

    def _may_be(self, entity: Entity, wanted: Wanted) -> bool:
        """An id without a word for it is what must be known; what may be known has to show its letters."""
        kind = wanted.kind[3:]
        if entity.kind != "id" or not fits(entity, kind, self._order.kinds, self._kinds):
            return False
        letters = letters_of(entity.value)
        return wanted.required or bool(letters and kind.startswith(letters))

    def _sums(self, wanted: list[Wanted]) -> None:
        """`a payment of 500`: a bare number is a sum where a word makes it one."""
        for each in wanted:
            for entity in [entity for entity in self._free if entity.kind == "number"]:
                if self._is_sum(entity):
                    self._take(each, entity)
                    break

    def _is_sum(self, number: Entity) -> bool:
        """Neither `for 3 hours` nor `10%` is one; what stands before or after a sum is no thing."""
        before = self._passage.before(number.start, 1)
        after = self._passage.after(number.end, 1)
        if number.text.endswith("%"):
            return False
        if after and (after[0].lower in _SUM_AFTER or after[0].lower in self._order.choices):
            return True
        gap = self._passage.smooth[number.end : after[0].start].strip() if after else ""
        if after and not gap and after[0].lower not in _AFTER_SUM | self._order.own:
            return False
        listed = not after and self._passage.smooth[: number.start].rstrip().endswith(",")
        return listed or bool(before and before[0].lower in _SUM_BEFORE)

    def _names(self, wanted: list[Wanted]) -> None:
        for each in sorted(wanted, key=lambda one: one.required):
            found = [entity for entity in self._free if entity.kind == "name"]
            cued = [entity for entity in found if self._about(each, entity)]
            if each.required or self._order.reads_only:
                cued = cued or sorted(found, key=lambda entity: -entity.certainty)
            if cued:
                self._take(each, cued[0])

    def _about(self, wanted: Wanted, entity: Entity) -> bool:
        """Whether the words around a name say that it is this one's."""
        before = [word.lower for word in self._passage.before(entity.start, 3)]
        after = [word.lower for word in self._passage.after(entity.end, 1)]
        near = before[0] if before else ""
        if near in wanted.words or (after and after[0] in wanted.words):
            return True
        if wanted.required:
            return False
        if near in _WITH_WHOM or (after and after[0] in _DOING and not before):
            return True
        to_do = any(word.startswith("assign") for word in wanted.words)
        if near in _FOR_WHOM:
            return to_do or (near == "to" and self._renamed(wanted))
        return bool(wanted.words.intersection(word.lower for word in self._passage.words))

    def _renamed(self, wanted: Wanted) -> bool:
        """`rename it to Sarah`: the verb has the argument's name in it."""
        said = {word.lower for word in self._passage.words}
        return any(word.endswith(own) for word in said for own in wanted.words)


def period_for(wanted: Sequence[Wanted], free: Sequence[Entity]) -> Iterator[tuple[Wanted, str]]:
    """The first and last day of a stretch, or of one day alone, for a pair of arguments such as `from` and `to`."""
    days = [each for each in wanted if each.kind == "date"]
    first = next((each for each in days if each.words & {"from", "start", "since", "after"}), None)
    last = next((each for each in days if each.words & {"to", "end", "until", "before"}), None)
    if not (first and last):
        return
    stretch = next((each.value for each in free if each.kind == "period"), None)
    single = [each.value for each in free if each.kind == "date"]
    if stretch is None and len(single) == 1:
        stretch = {"from": single[0], "to": single[0]}
    if stretch is not None:
        yield first, stretch["from"]
        yield last, stretch["to"]


_POINTS_AT_CHOICE = words_in("to as into is are by via status stage method channel through")
_QUANTIFIERS = words_in("all any both every other")
_ARTICLES = words_in("the a an any those these")
_NEGATIONS = words_in("no not without don't never isn't")


@dataclass(frozen=True, slots=True)
class Said:
    """A value of a choice as it was said, from word to word."""

    value: Json
    words: str
    index: int
    exact: bool
    count: int = 1


def choice(
    passage: Passage, name: str, shape: Mapping[str, Json], lexicon: Lexicon, masked: bytearray
) -> Said | None:
    """The value that is meant; of several the one that is pointed at, then the one that is no small word."""
    said = list(_said(passage, shape, lexicon, masked))
    exact = [each for each in said if each.exact] or said
    if not exact:
        return None
    return max(exact, key=lambda each: (_weight(passage, name, each), -each.index))


def named_choices(passage: Passage, shape: Mapping[str, Json], lexicon: Lexicon) -> list[Json]:
    """Every value of the choice that the words name and do not deny."""
    return [each.value for each in _said(passage, shape, lexicon, bytearray())]


def _weight(passage: Passage, name: str, said: Said) -> tuple[bool, bool, bool]:
    before = passage.words[said.index - 1].lower if said.index else ""
    after = said.index + said.count
    beside = before in words_of(name) or (
        after < len(passage.words) and passage.words[after].lower in words_of(name)
    )
    opens = said.index == 0 and passage.words[0].lower in VERBS
    return (
        not opens and said.words not in _QUANTIFIERS,
        before in _POINTS_AT_CHOICE or beside,
        said.count > 1,
    )


def _said(
    passage: Passage, shape: Mapping[str, Json], lexicon: Lexicon, masked: bytearray
) -> Iterator[Said]:
    phrases, values = _phrases(shape)
    for index, word in enumerate(passage.words):
        denied = _denied(passage, index)
        if denied or masked.find(1, word.start, word.end) >= 0:
            continue
        found = phrases.at(passage.words, index)
        if found:
            yield Said(values[found[0]], found[0], index, exact=True, count=found[1])
        elif word.lower not in NEVER_NAMES and word.lower not in lexicon.pack_words:
            near = phrases.nearly(word.lower) or phrases.nearly(word.lower.removesuffix("s"))
            if near:
                yield Said(values[near], near, index, exact=False)


def _denied(passage: Passage, index: int) -> bool:
    """`not contacted`, `not the draft ones`."""
    before = [word.lower for word in passage.words[max(0, index - 2) : index]]
    if before[1:] and before[1] in _ARTICLES:
        before.pop()
    return bool(before) and before[-1] in _NEGATIONS


def _phrases(shape: Mapping[str, Json]) -> tuple[Phrases, dict[str, Json]]:
    known: dict[str, Json] = {}
    others = shape.get("x-words")
    for value in shape.get("enum", ()):
        said = others.get(str(value), ()) if isinstance(others, dict) else ()
        for phrase in (str(value), str(value).replace("_", " "), f"{value}s", *said):
            known.setdefault(str(phrase).lower(), value)
    return Phrases(known), known


def flag(passage: Passage, name: str) -> bool | None:
    """True where the argument's name is said, False where it is denied, else None."""
    wanted = words_of(name)
    words = [word.lower for word in passage.words]
    for at in range(len(words) - len(wanted) + 1):
        if wanted and words[at : at + len(wanted)] == wanted:
            return not _NEGATIONS.intersection(words[max(0, at - 2) : at])
    return None
