"""Clause as a query: tokens by weight, act, things and values; which tokens are values, quoted or mistyped."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, zip_longest

from podium.jobs.operator.judgement.embedded.lexicon import (
    ACTION_WORDS,
    PARTICLES,
    PHRASAL,
    READ,
    kinds_of,
)
from podium.jobs.operator.judgement.embedded.moods import OPENINGS
from podium.jobs.operator.judgement.embedded.tokens import (
    DENIALS,
    DENIED,
    EVERYDAY,
    FUNCTION_WORDS,
    Word,
    stem,
    word_set,
)
from podium.jobs.operator.judgement.embedded.tool_index import Index
from podium.jobs.operator.judgement.fields.tokenized_text import Entity

AFTER_PREPOSITION = 0.55
"""What comes after `for`, `on` or `to` seldom names the act."""
STATE = 0.5
"""What a word counts that tells a state and only sounds like a thing: `leads that were quoted`."""
PREPOSITIONS = word_set("for to on in at from with of by about via regarding")
LIGHT = word_set("mark put set get make give take new log want need have do")
"""Verbs whose sense the next verb has: get it booked, mark it paid, new booking."""
BEHIND_VERBS = word_set(
    "it him her them the this that these those a an my our your his their us me now"
)
"""Words that follow a thing when its name is used as a verb: `invoice it`."""
_ADJECTIVAL = word_set("new open done complete completed finished accepted declined overdue paid")
_DETERMINERS = word_set(
    "the a an my our your his her their this that these those each every some any no"
)
_IS = word_set("is are was were be been being now as to")
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
    given: Collection[str] = ()
    """Names of entries of the context."""
    verbs: frozenset[str] = frozenset()
    """Words that may ask for an act; what was done is no request."""
    several: bool = False
    """Whether it speaks of things, not of one."""
    asked: bool = False
    """Whether it is a question, whose verbs ask for nothing but an answer."""
    strange: bool = False
    """Whether a word that no entry has stands where the thing should stand."""

    @property
    def to_see(self) -> bool:
        """Whether somebody wants to know, whatever the words are like: a question, or things without a verb."""
        return self.asked or (self.several and self.acts == {READ})


def query_of(
    words: Sequence[Word],
    index: Index,
    kinds: Iterable[str] = (),
    given: Collection[str] = (),
    implied: frozenset[str] = frozenset(),
) -> Query:
    """`implied`: the kinds of acts that are meant when the words have no verb."""
    weights: dict[str, float] = {}
    named: dict[str, float] = {}
    factor = 1.0
    several = strange = False
    may_be_verbs = _verbs(words)
    asked: set[str] = set()
    for word, after in zip_longest(words, words[1:]):
        if word.text in PREPOSITIONS and weights:
            factor = AFTER_PREPOSITION
        if word.text in DENIALS and not word.kind and index.knows(DENIED):
            weights[DENIED] = 1.0
        if not _tells(word, index) or (after and _labels(word, after, index)):
            continue
        thing = word.stem in index.objects
        state = thing and word.text.endswith("ed") and word.text in index.choices
        weights[word.stem] = max(STATE if state else factor, weights.get(word.stem, 0.0))
        if thing and not state:
            named[word.stem] = weights[word.stem]
            several = several or _plural(word)
        if word in may_be_verbs and factor == 1.0 and not word.text.endswith("ed"):
            asked.add(word.stem)
        unknown = not index.knows(word.stem) and not kinds_of(word.stem)
        strange = strange or (unknown and factor == 1.0)
    return Query(
        weights=weights,
        acts=acts_of(words, index) or implied,
        things=list(named.items()),
        kinds=frozenset(kinds),
        given=given,
        verbs=frozenset(asked),
        several=several,
        strange=strange and 1.0 not in named.values(),
    )


def _tells(word: Word, index: Index) -> bool:
    """Whether it is a word that says something, and no value."""
    if word.kind or word.text in FUNCTION_WORDS:
        return False
    return index.knows(word.stem) or not (word.text in PARTICLES or word.text in OPENINGS)


def _labels(word: Word, after: Word, index: Index) -> bool:
    """Whether it only says what the value behind it is: `mob 0400 …`."""
    plain = word.stem not in index.objects and not kinds_of(word.stem)
    return plain and after.kind in ("phone", "email", "postcode")


def acts_of(words: Sequence[Word], index: Index) -> frozenset[str]:
    """The kinds of acts the clause speaks of: those of its first verb, unless the next one has its sense."""
    found: frozenset[str] = frozenset()
    plain = [word for word in words if not word.kind]
    verbs = _verbs(words)
    if _lists(plain, index):
        return frozenset({READ})
    gets = False
    """`Get it booked` asks for a booking, and not for a look."""
    for place, word in enumerate(plain):
        if word not in verbs:
            continue
        phrasal = phrasal_of(plain, place)
        kinds = phrasal or kinds_of(word.stem)
        if not kinds:
            continue
        if _describes(plain, place, index):
            kinds = frozenset({READ})
        elif word.text in index.choices and place and plain[place - 1].text in _IS:
            kinds |= {"update"}
        if _tells_of_others(plain, place):
            kinds -= {READ}
        if place and word.text not in ("get", "have"):
            found = found - {READ} if gets else found
        found |= kinds
        gets = gets or word.text in ("get", "have")
        if phrasal or word.stem not in LIGHT:
            break
    if found:
        return found - {READ} if _new_thing(plain) and len(found) > 1 else found
    if any(_describes(plain, place, index) for place in range(len(plain))):
        return frozenset({READ})
    if any(_plural(word) and word.stem in index.objects for word in plain):
        return frozenset({READ})
    if len(words) > 1 and words[-2].kind.startswith("id") and words[-1].text in index.choices:
        return frozenset({"update"})
    courteous = list(dropwhile(lambda word: word.text in OPENINGS, words))
    told = next((word for word in plain if _tells(word, index)), None)
    if told is not None and told.stem in index.objects and _plural(told):
        return frozenset({READ})
    return frozenset({"create", "send"}) if thing_as_verb(courteous, index) else frozenset()


def _new_thing(words: Sequence[Word]) -> bool:
    """Whether it speaks of one new thing: `open a new lead` asks for none that is there."""
    return any(word.text == "new" and not _plural(after) for word, after in pairwise(words))


def _verbs(words: Sequence[Word]) -> list[Word]:
    """The words that may be verbs: `the report` and `an email` are things."""
    found = []
    before = ""
    for word in words:
        noun = before in _DETERMINERS and word.text not in _ADJECTIVAL
        if not word.kind and not noun and (kinds_of(word.stem) or word.stem in _FIRST_OF_TWO):
            found.append(word)
        before = word.text if not word.kind else ""
    return found


def phrasal_of(words: Sequence[Word], place: int) -> frozenset[str]:
    """The kinds of a verb of two words, which may stand apart: `put it back`."""
    for distance, after in enumerate(words[place + 1 : place + 1 + _FARTHEST_PARTICLE]):
        kinds = PHRASAL.get((words[place].stem, after.text))
        if kinds and (distance == 0 or after.text not in ("me", "us")):
            return kinds
    return frozenset()


def _tells_of_others(words: Sequence[Word], place: int) -> bool:
    """`It is giving me grief`, `that looks odd`: nobody asks to see it."""
    text = words[place].text
    doing = text.endswith("ing") and place > 0 and words[place - 1].text in _IS
    return doing or (text.endswith("s") and place > 0 and text[:-1] in ACTION_WORDS)


def _lists(words: Sequence[Word], index: Index) -> bool:
    """`Leads new`: things, and behind them nothing but which of them."""
    told = [word for word in words if _tells(word, index)]
    if len(told) < 2 or told[0].stem not in index.objects or not _plural(told[0]):
        return False
    return all({word.text, word.text.removesuffix("s")} & index.choices for word in told[1:])


def _describes(words: Sequence[Word], place: int, index: Index) -> bool:
    """Whether a verb is none: `draft quotes`, `open jobs`."""
    if place + 1 >= len(words) or not _plural(words[place + 1]):
        return False
    if words[place + 1].start > words[place].end + 1 or not index.knows(words[place + 1].stem):
        return False
    return words[place].text in _ADJECTIVAL or words[place].text in index.choices


def thing_as_verb(words: Sequence[Word], index: Index) -> bool:
    """`Invoice it` and `invoice job 12` ask for an invoice; `invoice 12` does not."""
    if len(words) < 2 or words[0].kind or words[0].stem not in index.objects or _plural(words[0]):
        return False
    after = words[1]
    return after.text in BEHIND_VERBS or (not after.kind and after.stem in index.objects)


def _plural(word: Word) -> bool:
    return word.text != word.stem and word.text.endswith("s")


QUOTED = "quoted"
MAX_CORRECTED = 60
"""Words of one message that are looked up by likeness; a longer text is not made of typing errors."""
_QUOTES = re.compile(r""""[^"]*"|(?<!\w)'[^'\n]{2,}'(?!\w)""")
_LOOSE = frozenset({"name", "suburb", "address", "text", "number", "id"})
"""Kinds that a word may be taken for although it is one the registry knows."""


def marked(
    text: str, words: Sequence[Word], entities: Sequence[Entity], index: Index
) -> list[Word]:
    """The words, each with what it is part of, and typing errors mended."""
    kinds = _kinds_at(text, entities)
    shouted = not any(word.text.isalpha() and not word.capital for word in words)
    left = MAX_CORRECTED
    found: list[Word] = []
    for place, word in enumerate(words):
        kind = _kind(word, kinds.get(word.start, ""), place, index, shouted)
        if not kind and left and _mistyped(word, place == 0 or shouted, index):
            left -= 1
            mended, errors = index.speller.correct(word.text)
            mended = mended if errors else index.speller.written_out(word.text)
            word = replace(word, text=mended, stem=stem(mended))
        found.append(replace(word, kind=kind) if kind else word)
    return found


def _kinds_at(text: str, entities: Sequence[Entity]) -> dict[int, str]:
    spans = [(entity.start, entity.end, entity.kind) for entity in entities]
    quotes = list(_QUOTES.finditer(text))
    if not (len(quotes) == 1 and quotes[0].group() == text.strip()):
        spans += [(each.start(), each.end(), QUOTED) for each in quotes]
    return dict(_places(spans))


def _places(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, str]]:
    for start, end, kind in spans:
        for place in range(start, end):
            yield place, kind


def _kind(word: Word, kind: str, place: int, index: Index, shouted: bool) -> str:
    digits = any(letter.isdigit() for letter in word.text)
    if not kind or kind == QUOTED:
        return kind or ("number" if digits else "")
    if digits or not (kind in _LOOSE or kind.startswith("id:")):
        return kind
    if _strange(word, index):
        return "" if word.text in FUNCTION_WORDS else kind
    named = word.capital and place > 0 and not shouted and kind in ("name", "suburb", "address")
    return kind if named and word.stem not in index.objects else ""


def _mistyped(word: Word, capitals_say_nothing: bool, index: Index) -> bool:
    """Whether it may be a word of the registry with errors in it, and no name and no everyday word."""
    if word.capital and not capitals_say_nothing:
        return False
    return word.stem not in EVERYDAY and _strange(word, index)


def _strange(word: Word, index: Index) -> bool:
    """Whether neither the registry nor the language of acts knows the word."""
    known = index.knows(word.stem) or bool(kinds_of(word.stem))
    return not known and word.text not in FUNCTION_WORDS
