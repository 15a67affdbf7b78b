"""Clause as a query: tokens by weight, act, things and values; which tokens are values, quoted or mistyped."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, zip_longest

from podium.jobs.operator.judgement.embedded.moods import OPENINGS
from podium.jobs.operator.judgement.embedded.tokens import (
    ACTION_VERBS,
    DENIALS,
    DENIED,
    EVERYDAY,
    PARTICLES,
    PHRASAL,
    READ,
    STOPWORDS,
    TaggedToken,
    kinds_of,
    stem,
    token_set,
)
from podium.jobs.operator.judgement.embedded.tool_index import Index
from podium.jobs.operator.judgement.fields.tokenized_text import Entity

AFTER_PREPOSITION = 0.55
"""Weight of words after `for`, `on` or `to`, which seldom name the act."""
STATE = 0.5
"""Weight of a word that tells a state and only sounds like a thing: `leads that were quoted`."""
PREPOSITIONS = token_set("for to on in at from with of by about via regarding")
LIGHT = token_set("mark put set get make give take new log want need have do")
"""Verbs whose sense the next verb has: get it booked, mark it paid, new booking."""
BEHIND_VERBS = token_set(
    "it him her them the this that these those a an my our your his their us me now"
)
"""Words that follow a thing when its name is used as a verb: `invoice it`."""
_ADJECTIVAL = token_set("new open done complete completed finished accepted declined overdue paid")
_DETERMINERS = token_set(
    "the a an my our your his her their this that these those each every some any no"
)
_IS = token_set("is are was were be been being now as to")
"""Words behind which a word that chooses a value says what has changed: `has been contacted`."""
_FARTHEST_PARTICLE = 6
_FIRST_OF_TWO = frozenset(verb for verb, _ in PHRASAL)


@dataclass(frozen=True, slots=True)
class Query:
    weights: Mapping[str, float]
    """Stem → how much it counts, less after a preposition."""
    acts: frozenset[str]
    things: Sequence[tuple[str, float]]
    kinds: frozenset[str]
    """Kinds of values that stand in the clause."""
    context_names: Collection[str] = ()
    """Names of entries of the context."""
    verbs: frozenset[str] = frozenset()
    """Words that may ask for an act; what was done is no request."""
    several: bool = False
    """True if it speaks of things, not of one."""
    asked: bool = False
    """True if it is a question, whose verbs ask for nothing but an answer."""
    strange: bool = False
    """True if a word that no entry has stands where the thing should stand."""
    reach: frozenset[str] = frozenset()
    """Kinds of values that the records which it names lead to."""
    also: frozenset[str] = frozenset()
    """Kinds of values that only name these records."""

    @property
    def to_see(self) -> bool:
        """True for a request to see something: a question, or things without a verb."""
        return self.asked or (self.several and self.acts == {READ})


def query_of(
    tokens: Sequence[TaggedToken],
    index: Index,
    kinds: Iterable[str] = (),
    context_names: Collection[str] = (),
    implied: frozenset[str] = frozenset(),
) -> Query:
    """`implied`: the kinds of acts that are meant when the words have no verb."""
    weights: dict[str, float] = {}
    named: dict[str, float] = {}
    factor = 1.0
    several = strange = False
    may_be_verbs = _verbs(tokens)
    asked: set[str] = set()
    for token, after in zip_longest(tokens, tokens[1:]):
        if token.text in PREPOSITIONS and weights:
            factor = AFTER_PREPOSITION
        if token.text in DENIALS and not token.kind and index.knows(DENIED):
            weights[DENIED] = 1.0
        if not _is_content(token, index) or (after and _labels(token, after, index)):
            continue
        thing = token.stem in index.objects
        state = thing and token.text.endswith("ed") and token.text in index.choices
        weights[token.stem] = max(STATE if state else factor, weights.get(token.stem, 0.0))
        if thing and not state:
            named[token.stem] = weights[token.stem]
            several = several or _plural(token)
        if token in may_be_verbs and factor == 1.0 and not token.text.endswith("ed"):
            asked.add(token.stem)
        unknown = not index.knows(token.stem) and not kinds_of(token.stem)
        strange = strange or (unknown and factor == 1.0)
    return Query(
        weights=weights,
        acts=acts_of(tokens, index) or implied,
        things=list(named.items()),
        kinds=frozenset(kinds),
        context_names=context_names,
        verbs=frozenset(asked),
        several=several,
        strange=strange and 1.0 not in named.values(),
    )


def _is_content(token: TaggedToken, index: Index) -> bool:
    """Return whether it is a word that says something, and no value."""
    if token.kind or token.text in STOPWORDS:
        return False
    return index.knows(token.stem) or not (token.text in PARTICLES or token.text in OPENINGS)


def _labels(token: TaggedToken, after: TaggedToken, index: Index) -> bool:
    """Return whether it only says what the value behind it is: `mob 0400 …`."""
    plain = token.stem not in index.objects and not kinds_of(token.stem)
    return plain and after.kind in ("phone", "email", "postcode")


def acts_of(tokens: Sequence[TaggedToken], index: Index) -> frozenset[str]:
    """The kinds of acts the clause speaks of: those of its first verb, unless the next one has its sense."""
    acts: frozenset[str] = frozenset()
    plain = [token for token in tokens if not token.kind]
    verbs = _verbs(tokens)
    if _lists(plain, index):
        return frozenset({READ})
    gets = False
    """`Get it booked` asks for a booking, and not for a look."""
    for position, token in enumerate(plain):
        if token not in verbs:
            continue
        phrasal = phrasal_of(plain, position)
        kinds = phrasal or kinds_of(token.stem)
        if not kinds:
            continue
        if _describes(plain, position, index):
            kinds = frozenset({READ})
        elif token.text in index.choices and position and plain[position - 1].text in _IS:
            kinds |= {"update"}
        if _is_description(plain, position):
            kinds -= {READ}
        if position and token.text not in ("get", "have"):
            acts = acts - {READ} if gets else acts
        acts |= kinds
        gets = gets or token.text in ("get", "have")
        if phrasal or token.stem not in LIGHT:
            break
    if acts:
        return acts - {READ} if _new_thing(plain) and len(acts) > 1 else acts
    if any(_describes(plain, position, index) for position in range(len(plain))):
        return frozenset({READ})
    if any(_plural(token) and token.stem in index.objects for token in plain):
        return frozenset({READ})
    if len(tokens) > 1 and tokens[-2].kind.startswith("id") and tokens[-1].text in index.choices:
        return frozenset({"update"})
    courteous = list(dropwhile(lambda token: token.text in OPENINGS, tokens))
    first = next((token for token in plain if _is_content(token, index)), None)
    if first is not None and first.stem in index.objects and _plural(first):
        return frozenset({READ})
    return frozenset({"create", "send"}) if thing_as_verb(courteous, index) else frozenset()


def _new_thing(tokens: Sequence[TaggedToken]) -> bool:
    """Return whether it speaks of one new thing: `open a new lead` asks for none that is there."""
    return any(token.text == "new" and not _plural(after) for token, after in pairwise(tokens))


def _verbs(tokens: Sequence[TaggedToken]) -> list[TaggedToken]:
    """The words that may be verbs: `the report` and `an email` are things."""
    verbs = []
    before = ""
    for token in tokens:
        after_determiner = before in _DETERMINERS and token.text not in _ADJECTIVAL
        if (
            not token.kind
            and not after_determiner
            and (kinds_of(token.stem) or token.stem in _FIRST_OF_TWO)
        ):
            verbs.append(token)
        before = token.text if not token.kind else ""
    return verbs


def phrasal_of(tokens: Sequence[TaggedToken], position: int) -> frozenset[str]:
    """The kinds of a verb of two words, which may stand apart: `put it back`."""
    for distance, after in enumerate(tokens[position + 1 : position + 1 + _FARTHEST_PARTICLE]):
        kinds = PHRASAL.get((tokens[position].stem, after.text))
        if kinds and (distance == 0 or after.text not in ("me", "us")):
            return kinds
    return frozenset()


def _is_description(tokens: Sequence[TaggedToken], position: int) -> bool:
    """`It is giving me grief`, `that looks odd`: nobody asks to see it."""
    text = tokens[position].text
    doing = text.endswith("ing") and position > 0 and tokens[position - 1].text in _IS
    return doing or (text.endswith("s") and position > 0 and text[:-1] in ACTION_VERBS)


def _lists(tokens: Sequence[TaggedToken], index: Index) -> bool:
    """`Leads new`: things, and behind them nothing but which of them."""
    content = [token for token in tokens if _is_content(token, index)]
    if len(content) < 2 or content[0].stem not in index.objects or not _plural(content[0]):
        return False
    return all({token.text, token.text.removesuffix("s")} & index.choices for token in content[1:])


def _describes(tokens: Sequence[TaggedToken], position: int, index: Index) -> bool:
    """Return whether a verb is none: `draft quotes`, `open jobs`."""
    if position + 1 >= len(tokens) or not _plural(tokens[position + 1]):
        return False
    if tokens[position + 1].start > tokens[position].end + 1 or not index.knows(
        tokens[position + 1].stem
    ):
        return False
    return tokens[position].text in _ADJECTIVAL or tokens[position].text in index.choices


def thing_as_verb(tokens: Sequence[TaggedToken], index: Index) -> bool:
    """`Invoice it` and `invoice job 12` ask for an invoice; `invoice 12` does not."""
    if (
        len(tokens) < 2
        or tokens[0].kind
        or tokens[0].stem not in index.objects
        or _plural(tokens[0])
    ):
        return False
    after = tokens[1]
    return after.text in BEHIND_VERBS or (not after.kind and after.stem in index.objects)


def _plural(token: TaggedToken) -> bool:
    return token.text != token.stem and token.text.endswith("s")


QUOTED = "quoted"
MAX_CORRECTED = 60
"""Words of one message that are looked up by likeness; a longer text is not made of typing errors."""
_QUOTES = re.compile(r""""[^"]*"|(?<!\w)'[^'\n]{2,}'(?!\w)""")
_LOOSE = frozenset({"name", "suburb", "address", "text", "number", "id"})
"""Kinds that a word may be taken for although it is one the registry knows."""


def marked(
    text: str, tokens: Sequence[TaggedToken], entities: Sequence[Entity], index: Index
) -> list[TaggedToken]:
    """The words, each with what it is part of, and typing errors mended."""
    kinds = _kinds_at(text, entities)
    shouted = not any(token.text.isalpha() and not token.capital for token in tokens)
    left = MAX_CORRECTED
    result: list[TaggedToken] = []
    for position, token in enumerate(tokens):
        kind = _kind(token, kinds.get(token.start, ""), position, index, shouted)
        if not kind and left and _mistyped(token, position == 0 or shouted, index):
            left -= 1
            mended, errors = index.speller.correct(token.text)
            mended = mended if errors else index.speller.written_out(token.text)
            token = replace(token, text=mended, stem=stem(mended))
        result.append(replace(token, kind=kind) if kind else token)
    return result


def _kinds_at(text: str, entities: Sequence[Entity]) -> dict[int, str]:
    spans = [(entity.start, entity.end, entity.kind) for entity in entities]
    quotes = list(_QUOTES.finditer(text))
    if not (len(quotes) == 1 and quotes[0].group() == text.strip()):
        spans += [(quote.start(), quote.end(), QUOTED) for quote in quotes]
    return dict(_positions(spans))


def _positions(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, str]]:
    for start, end, kind in spans:
        for position in range(start, end):
            yield position, kind


def _kind(token: TaggedToken, kind: str, position: int, index: Index, shouted: bool) -> str:
    digits = any(character.isdigit() for character in token.text)
    if not kind or kind == QUOTED:
        return kind or ("number" if digits else "")
    if digits or not (kind in _LOOSE or kind.startswith("id:")):
        return kind
    if _strange(token, index):
        return "" if token.text in STOPWORDS else kind
    named = token.capital and position > 0 and not shouted and kind in ("name", "suburb", "address")
    return kind if named and token.stem not in index.objects else ""


def _mistyped(token: TaggedToken, capitals_say_nothing: bool, index: Index) -> bool:
    """Return whether it may be a word of the registry with errors in it, and no name and no everyday word."""
    if token.capital and not capitals_say_nothing:
        return False
    return token.stem not in EVERYDAY and _strange(token, index)


def _strange(token: TaggedToken, index: Index) -> bool:
    """Return whether neither the registry nor the language of acts knows the word."""
    recognized = index.knows(token.stem) or bool(kinds_of(token.stem))
    return not recognized and token.text not in STOPWORDS
