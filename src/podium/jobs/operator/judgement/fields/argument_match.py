"""Match of entities with arguments, and of choices and flags with their known values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.core.model import Json
from podium.jobs.operator.judgement.fields.identifiers import fits, id_prefix
from podium.jobs.operator.judgement.fields.pack_lexicon import (
    Lexicon,
    Order,
    Parameter,
    Phrases,
    folded_tokens,
)
from podium.jobs.operator.judgement.fields.tokenized_text import (
    NEVER_NAMES,
    VERBS,
    Entity,
    TokenizedText,
    token_set,
)

Match = tuple[Parameter, Entity]

_ACCEPTED = {
    "date": ("date", "datetime"),
    "time": ("time", "datetime"),
    "datetime": ("datetime", "date"),
}
_CUES = {
    "from": token_set("from since after starting between start"),
    "since": token_set("since from after"),
    "start": token_set("from starting start starts begin beginning on"),
    "to": token_set("to until till before and through ending end"),
    "end": token_set("to until till ending end by"),
    "until": token_set("until till to before"),
    "due": token_set("due by before"),
    "amount": token_set("of for amount paid"),
    "price": token_set("at for price"),
}
_MAX_FINDS = 100
"""Limit of the entities in one clause: with more it is no request."""
_POINTING = token_set("to for now by due")
_SUM_BEFORE = token_set("of for at amount price paid pay worth cost costs charge")
_SUM_AFTER = token_set("each per apiece")
_AFTER_SUM = token_set(
    "on to by for off from in at via with as and now today yesterday towards against is was please thanks"
)
_SURELY_A_SUM = 50
"""A number from which on it is no count of things, where a sum is asked for and nothing behind it is counted."""
_FOR_WHOM = token_set("to for")
_WITH_WHOM = token_set("with by send have get remind ask tell")
_DOING = token_set("will can is does should")


class Matching:
    """Gives each argument at most one find, and each find to at most one argument."""

    def __init__(
        self, order: Order, tokenized: TokenizedText, free: Sequence[Entity], kinds: frozenset[str]
    ) -> None:
        self._order, self._tokenized, self._kinds = order, tokenized, kinds
        self._free = list(free)[:_MAX_FINDS]
        self.matched: list[Match] = []

    def run(self, parameters: Sequence[Parameter]) -> list[Match]:
        self._ids([parameter for parameter in parameters if parameter.kind.startswith("id:")])
        self._prices([parameter for parameter in parameters if parameter.kind == "money"])
        for kind in dict.fromkeys(parameter.kind for parameter in parameters):
            alike = [
                parameter
                for parameter in parameters
                if parameter.kind == kind and not self._is_matched(parameter)
            ]
            if kind == "name":
                self._names(alike)
            elif not kind.startswith("id:"):
                self._alike(alike, _ACCEPTED.get(kind, (kind,)))
        self._sums(
            [
                parameter
                for parameter in parameters
                if parameter.kind == "money" and not self._is_matched(parameter)
            ]
        )
        return self.matched

    def _is_matched(self, parameter: Parameter) -> bool:
        return any(other is parameter for other, _ in self.matched)

    def _take(self, parameter: Parameter, entity: Entity) -> None:
        self.matched.append((parameter, entity))
        # One moment is both a day and a time.
        if entity.kind != "datetime":
            self._free.remove(entity)

    def _alike(self, parameters: list[Parameter], kinds: tuple[str, ...]) -> None:
        entities = [entity for entity in self._free if entity.kind in kinds]
        unclear = len(parameters) > len(entities) and not any(
            parameter.required for parameter in parameters
        )
        least = 1 if len(parameters) > 1 and unclear else 0
        pairs = [
            (-self._score(parameter, entity), at, entity.start, parameter, entity)
            for at, parameter in enumerate(parameters)
            for entity in entities
        ]
        for score, _, _, parameter, entity in sorted(pairs, key=lambda pair: pair[:3]):
            if -score >= least and not self._is_matched(parameter) and entity in self._free:
                self._take(parameter, entity)
        for parameter in parameters:
            self._rest_of_list(parameter)

    def _rest_of_list(self, parameter: Parameter) -> None:
        if parameter.many and self._is_matched(parameter):
            for entity in [
                candidate for candidate in self._free if candidate.kind == parameter.kind
            ]:
                self._take(parameter, entity)

    def _score(self, parameter: Parameter, entity: Entity) -> int:
        before = [token.lower for token in self._tokenized.before(entity.start, 3)]
        cues = {cue for token in parameter.name_tokens for cue in _CUES.get(token, ())}
        if before[:1] and (before[0] in cues or before[0] in parameter.name_tokens):
            return 4
        if parameter.name_tokens.intersection(before):
            return 3
        return 2 if before[:1] and before[0] in _POINTING and not cues else 0

    def _ids(self, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            exact = [entity for entity in self._free if entity.kind == parameter.kind]
            for entity in exact if parameter.many else exact[:1]:
                self._take(parameter, entity)
        missing = [parameter for parameter in parameters if not self._is_matched(parameter)]
        for parameter in sorted(missing, key=lambda one: not one.required):
            loose = next((entity for entity in self._free if self._may_be(entity, parameter)), None)
            if loose:
                self._take(parameter, loose)

    def _may_be(self, entity: Entity, parameter: Parameter) -> bool:
        """An id without a word for it is what must be known; what may be known has to show its letters."""
        kind = parameter.kind[3:]
        if entity.kind != "id" or not fits(entity, kind, self._order.kinds, self._kinds):
            return False
        prefix = id_prefix(entity.value)
        return parameter.required or bool(prefix and kind.startswith(prefix))

    def _prices(self, parameters: Sequence[Parameter]) -> None:
        """`tony paid 300`, `ladder hire 220`: the one sum that is needed, where no word behind it makes it a count."""
        sums = [entity for entity in self._free if entity.kind == "money"]
        ends = [
            entity
            for entity in self._free
            if entity.kind == "number" and not entity.text.endswith("%") and self._ends(entity)
        ]
        if len(parameters) == 1 and not sums and len(ends) == 1:
            large = ends[0].value >= _SURELY_A_SUM
            if large or self._is_sum(ends[0]):
                self._take(parameters[0], ends[0])

    def _ends(self, number: Entity) -> bool:
        after = self._tokenized.after(number.end, 1)
        gap = self._tokenized.smooth[number.end : after[0].start].strip() if after else ","
        return bool(gap) or after[0].lower in _AFTER_SUM | {"ref", "cash"}

    def _sums(self, parameters: list[Parameter]) -> None:
        """`a payment of 500`: a bare number is a sum where a word makes it one."""
        for parameter in parameters:
            for entity in [entity for entity in self._free if entity.kind == "number"]:
                if self._is_sum(entity):
                    self._take(parameter, entity)
                    break

    def _is_sum(self, number: Entity) -> bool:
        """Neither `for 3 hours` nor `10%` is one; what stands before or after a sum is no thing."""
        before = self._tokenized.before(number.start, 1)
        after = self._tokenized.after(number.end, 1)
        if number.text.endswith("%"):
            return False
        if after and (after[0].lower in _SUM_AFTER or after[0].lower in self._order.choices):
            return True
        gap = self._tokenized.smooth[number.end : after[0].start].strip() if after else ""
        if after and not gap and after[0].lower not in _AFTER_SUM | self._order.own:
            return False
        listed = not after and self._tokenized.smooth[: number.start].rstrip().endswith(",")
        return listed or bool(before and before[0].lower in _SUM_BEFORE)

    def _names(self, parameters: list[Parameter]) -> None:
        for parameter in sorted(parameters, key=lambda one: one.required):
            names = [entity for entity in self._free if entity.kind == "name"]
            cued = [entity for entity in names if self._about(parameter, entity)]
            if parameter.required or self._order.reads_only:
                cued = cued or sorted(names, key=lambda entity: -entity.certainty)
            if cued:
                self._take(parameter, cued[0])

    def _about(self, parameter: Parameter, entity: Entity) -> bool:
        """Return whether the words around a name say that it is this one's."""
        before = [token.lower for token in self._tokenized.before(entity.start, 3)]
        after = [token.lower for token in self._tokenized.after(entity.end, 1)]
        near = before[0] if before else ""
        if near in parameter.name_tokens or (after and after[0] in parameter.name_tokens):
            return True
        if parameter.required:
            return False
        if near in _WITH_WHOM or (after and after[0] in _DOING and not before):
            return True
        to_do = any(token.startswith("assign") for token in parameter.name_tokens)
        if near in _FOR_WHOM:
            return to_do or (near == "to" and self._renamed(parameter))
        return bool(
            parameter.name_tokens.intersection(token.lower for token in self._tokenized.tokens)
        )

    def _renamed(self, parameter: Parameter) -> bool:
        """`rename it to Sarah`: the verb has the argument's name in it."""
        tokens = {token.lower for token in self._tokenized.tokens}
        return any(token.endswith(own) for token in tokens for own in parameter.name_tokens)


def period_for(
    parameters: Sequence[Parameter], free: Sequence[Entity]
) -> Iterator[tuple[Parameter, str]]:
    """The first and last day of a stretch, or of one day alone, for a pair of arguments such as `from` and `to`."""
    days = [parameter for parameter in parameters if parameter.kind == "date"]
    first = next(
        (
            parameter
            for parameter in days
            if parameter.name_tokens & {"from", "start", "since", "after"}
        ),
        None,
    )
    last = next(
        (
            parameter
            for parameter in days
            if parameter.name_tokens & {"to", "end", "until", "before"}
        ),
        None,
    )
    if not (first and last):
        return
    stretch = next((entity.value for entity in free if entity.kind == "period"), None)
    single = [entity.value for entity in free if entity.kind == "date"]
    if stretch is None and len(single) == 1:
        stretch = {"from": single[0], "to": single[0]}
    if stretch is not None:
        yield first, stretch["from"]
        yield last, stretch["to"]


_POINTS_AT_CHOICE = token_set("to as into is are by via status stage method channel through")
_QUANTIFIERS = token_set("all any both every other")
_ARTICLES = token_set("the a an any those these")
_NEGATIONS = token_set("no not without don't never isn't")


@dataclass(frozen=True, slots=True)
class ChoiceMatch:
    """A value of a choice as it was said, from word to word."""

    value: Json
    phrase: str
    index: int
    exact: bool
    count: int = 1


def choice(
    tokenized: TokenizedText,
    name: str,
    shape: Mapping[str, Json],
    lexicon: Lexicon,
    masked: bytearray,
) -> ChoiceMatch | None:
    """The value that is meant; of several the one that is pointed at, then the one that is no small word."""
    matches = list(_choice_matches(tokenized, shape, lexicon, masked))
    exact = [match for match in matches if match.exact] or matches
    if not exact:
        return None
    return max(exact, key=lambda match: (_weight(tokenized, name, match), -match.index))


def named_choices(
    tokenized: TokenizedText, shape: Mapping[str, Json], lexicon: Lexicon
) -> list[Json]:
    """Every value of the choice that the words name and do not deny."""
    return [match.value for match in _choice_matches(tokenized, shape, lexicon, bytearray())]


def _weight(tokenized: TokenizedText, name: str, match: ChoiceMatch) -> tuple[bool, bool, bool]:
    before = tokenized.tokens[match.index - 1].lower if match.index else ""
    after = match.index + match.count
    beside = before in folded_tokens(name) or (
        after < len(tokenized.tokens) and tokenized.tokens[after].lower in folded_tokens(name)
    )
    opens = match.index == 0 and tokenized.tokens[0].lower in VERBS
    return (
        not opens and match.phrase not in _QUANTIFIERS,
        before in _POINTS_AT_CHOICE or beside,
        match.count > 1,
    )


def _choice_matches(
    tokenized: TokenizedText, shape: Mapping[str, Json], lexicon: Lexicon, masked: bytearray
) -> Iterator[ChoiceMatch]:
    phrases, values = _phrases(shape)
    for index, token in enumerate(tokenized.tokens):
        denied = _denied(tokenized, index)
        if denied or masked.find(1, token.start, token.end) >= 0:
            continue
        phrase_match = phrases.at(tokenized.tokens, index)
        if phrase_match:
            yield ChoiceMatch(
                values[phrase_match[0]], phrase_match[0], index, exact=True, count=phrase_match[1]
            )
        elif token.lower not in NEVER_NAMES and token.lower not in lexicon.pack_tokens:
            near = phrases.nearly(token.lower) or phrases.nearly(token.lower.removesuffix("s"))
            if near:
                yield ChoiceMatch(values[near], near, index, exact=False)


def _denied(tokenized: TokenizedText, index: int) -> bool:
    """`not contacted`, `not the draft ones`."""
    before = [token.lower for token in tokenized.tokens[max(0, index - 2) : index]]
    if before[1:] and before[1] in _ARTICLES:
        before.pop()
    return bool(before) and before[-1] in _NEGATIONS


def _phrases(shape: Mapping[str, Json]) -> tuple[Phrases, dict[str, Json]]:
    values: dict[str, Json] = {}
    others = shape.get("x-words")
    for value in shape.get("enum", ()):
        synonyms = others.get(str(value), ()) if isinstance(others, dict) else ()
        for phrase in (str(value), str(value).replace("_", " "), f"{value}s", *synonyms):
            values.setdefault(str(phrase).lower(), value)
    return Phrases(values), values


def flag(tokenized: TokenizedText, name: str) -> bool | None:
    """True where the argument's name is said, False where it is denied, else None."""
    name_tokens = folded_tokens(name)
    tokens = [token.lower for token in tokenized.tokens]
    for at in range(len(tokens) - len(name_tokens) + 1):
        if name_tokens and tokens[at : at + len(name_tokens)] == name_tokens:
            return not _NEGATIONS.intersection(tokens[max(0, at - 2) : at])
    return None
