"""Clauses of a message: cut where the next request begins, and where a value begins inside one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from podium.jobs.operator.judgement.embedded.lexicon import ACTION_WORDS, INTRODUCES, READ, kinds_of
from podium.jobs.operator.judgement.embedded.moods import COMMAND, Mood, mood_of
from podium.jobs.operator.judgement.embedded.query import (
    BEHIND_VERBS,
    PREPOSITIONS,
    acts_of,
    phrasal_of,
    query_of,
    thing_as_verb,
)
from podium.jobs.operator.judgement.embedded.tokens import FUNCTION_WORDS, Word, word_set
from podium.jobs.operator.judgement.embedded.tool_index import Index
from podium.jobs.operator.judgement.embedded.tool_score import OWN_WORDS, Fit, fits_of

SENTENCE, THEN, AND, COMMA = "sentence", "then", "and", "comma"
"""How a clause hangs on the one before it, the loosest first."""

_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)|[;\n]")
_NO_END = word_set("st rd ave dr mr mrs ms no approx pty ltd co ph tel")
"""Words that are written with a full stop."""
_THEN = word_set("then also plus but so afterwards next finally")
_AND = frozenset({"and", "n"})
_FILLERS = _THEN | _AND | word_set(
    "please pls just can could you would i we want need to like id lets go ahead kindly now after that ill"
)  # fmt: skip
_BANS = word_set("dont not never do without no")
REASONS = word_set("because since cause seeing")
"""Words with which the reason of a wish begins that comes after it."""
_MAX_LOOKED_AT = 60
"""Words of a clause that say whether it is a command; more are text."""
MAX_CLAUSES = 60
A_VALUE = "…"


@dataclass(frozen=True, slots=True)
class Clause:
    """Part of a message that may be a wish."""

    words: tuple[Word, ...]
    start: int
    end: int
    joined: str = SENTENCE
    asked: bool = False
    opens: bool = False
    """Whether it begins as a command does."""
    tail: bool = False
    """Whether it ends in words that are a value."""
    mood: Mood = COMMAND
    """How it is meant, with what the rest of its sentence makes depend or reports."""
    implied: frozenset[str] = frozenset()
    """The kinds of acts it stands for when it has no verb."""

    @property
    def texts(self) -> list[str]:
        """Its words as written, with a mark for each that is a value."""
        return [word.text if not word.kind else A_VALUE for word in self.words]

    def with_more(self, other: Clause) -> Clause:
        """Both as one, in which the words of the other are mere values."""
        words = tuple(replace(word, kind=word.kind or "text") for word in other.words)
        merged = (*self.words, *words) if other.start >= self.start else (*words, *self.words)
        return replace(
            self, words=merged, start=min(self.start, other.start), end=max(self.end, other.end)
        )


def clauses_of(text: str, words: Sequence[Word], index: Index) -> list[Clause]:
    """The clauses in their order; a list of things after a verb of reading is one for each."""
    found: list[Clause] = []
    for sentence, asked in _sentences(text, words):
        for part, joined in _parts(text, sentence, index):
            opens = opener_of(part, index) is not None
            implied = _implied(found, joined, opens)
            start, end = _span(text, part)
            clause = Clause(tuple(part), start, end, joined, asked, opens, implied=implied)
            found.append(clause)
    return found


def with_moods(clauses: Sequence[Clause], index: Index) -> list[Clause]:
    """The clauses, each with how it is meant; what one makes depend, all of its sentence depends on."""
    found: list[Clause] = []
    sentence: list[Clause] = []
    for clause in clauses:
        if clause.joined == SENTENCE:
            found += _of_one_sentence(sentence)
            sentence = []
        mood = mood_of(clause.texts, clause.asked, index.openers)
        sentence.append(replace(clause, mood=mood))
    return found + _of_one_sentence(sentence)


def _of_one_sentence(clauses: Sequence[Clause]) -> list[Clause]:
    moods = [clause.mood for clause in clauses]
    return [replace(clause, mood=clause.mood.within(moods)) for clause in clauses]


def _span(text: str, words: Sequence[Word]) -> tuple[int, int]:
    """From where to where the words go, with the signs that stand at them: `$`, quotes, brackets."""
    start, end = words[0].start, words[-1].end
    while start and _belongs(text[start - 1]):
        start -= 1
    while end < len(text) and _belongs(text[end]):
        end += 1
    return start, end


def _belongs(sign: str) -> bool:
    return not sign.isspace() and not sign.isalnum() and sign not in ",;"


def _implied(before: Sequence[Clause], joined: str, opens: bool) -> frozenset[str]:
    listed = joined != SENTENCE and not opens and bool(before)
    return frozenset({READ}) if listed else frozenset()


def _sentences(text: str, words: Sequence[Word]) -> Iterator[tuple[list[Word], bool]]:
    """The sentences, each with whether it ends with a question mark."""
    ends = [(found.start(), found.group()) for found in _SENTENCE_END.finditer(text)]
    current: list[Word] = []
    for place, word in enumerate(words):
        current.append(word)
        after = words[place + 1] if place + 1 < len(words) else None
        while ends and ends[0][0] < word.end:
            ends.pop(0)
        if not ends or (after is not None and ends[0][0] >= after.start):
            continue
        quoted = after is not None and word.kind == after.kind == "quoted"
        if not quoted and not _goes_on(text, ends[0], word):
            yield current, "?" in ends[0][1]
            current = []
    if current:
        yield current, False


def _goes_on(text: str, end: tuple[int, str], word: Word) -> bool:
    """Whether a sign that ends sentences ends none: in `St.`, or in a line that ends with a colon."""
    place, sign = end
    return (sign == "." and word.text in _NO_END) or (
        sign == "\n" and text[:place].rstrip().endswith(":")
    )


def _parts(text: str, words: list[Word], index: Index) -> Iterator[tuple[list[Word], str]]:
    """The sentence, cut at each `and`, `then` or comma behind which a command begins."""
    begin, joined = 0, SENTENCE
    for place in range(1, len(words)):
        link = _link(text, words, place)
        if not link or words[place].kind:
            continue
        left, right = words[begin : min(place, begin + _MAX_LOOKED_AT)], words[place : place + 10]
        if _cuts(left, link, right, index):
            yield words[begin:place], joined
            begin, joined = place, link
    yield words[begin:], joined


def _link(text: str, words: Sequence[Word], place: int) -> str:
    word = words[place]
    gap = text[words[place - 1].end : word.start]
    following = words[place + 1] if place + 1 < len(words) else None
    if word.text in _THEN and not word.kind:
        # `thank you so much` goes on with nothing.
        return (
            "" if word.text == "so" and following and following.text in ("much", "many") else THEN
        )
    if (word.text in _AND and not word.kind) or "&" in gap or "+" in gap:
        return THEN if following is not None and following.text in _THEN else AND
    return COMMA if "," in gap or " - " in gap else ""


def _cuts(left: Sequence[Word], link: str, right: Sequence[Word], index: Index) -> bool:
    says_something = any(not word.kind and word.text not in _FILLERS for word in left)
    if link == COMMA and left[0].text in REASONS:
        return True
    if not says_something or _is_topic(left, link, index):
        return False
    opener = opener_of(right, index)
    if opener is not None:
        return not _labels(right, opener)
    return link in (AND, THEN) and acts_of(left, index) == {READ} and _names_a_thing(right, index)


def _is_topic(left: Sequence[Word], link: str, index: Index) -> bool:
    """Whether the words only say what the command behind them is about."""
    if left[0].text in PREPOSITIONS:
        return True
    if link != COMMA:
        return False
    remark = acts_of(left, index) == {READ} and opener_of(left, index) is None
    return remark or not any(kinds_of(word.stem) for word in left if not word.kind)


def _names_a_thing(words: Sequence[Word], index: Index) -> bool:
    return any(word.stem in index.objects and not word.kind for word in words[:4])


def opener_of(words: Sequence[Word], index: Index) -> int | None:
    """Where the word stands with which a command begins, after words of courtesy."""
    for place, word in enumerate(words[:8]):
        if word.kind:
            return None
        if word.text in ACTION_WORDS or word.text in index.openers or word.text in _BANS:
            return place
        if thing_as_verb(words[place:], index) or _looks_like_an_order(words[place:], index):
            return place
        if phrasal_of([each for each in words if not each.kind], place):
            return place
        if word.text not in _FILLERS:
            return None
    return None


def _looks_like_an_order(words: Sequence[Word], index: Index) -> bool:
    """`Order a pizza`: a word in its plain form that is no thing, and behind it what only verbs have behind them."""
    word, after = words[0], words[1].text if len(words) > 1 else ""
    if word.capital or word.text in FUNCTION_WORDS or word.stem in index.objects:
        return False
    return after in BEHIND_VERBS and not word.text.endswith(("s", "ed", "ing", "ly"))


def _labels(words: Sequence[Word], place: int) -> bool:
    """Whether the word only says what the value after it is: `email sarah@example.com`."""
    following = words[place + 1] if place + 1 < len(words) else None
    return following is not None and following.kind.split(":")[-1] == words[place].stem


_SAYS = frozenset({"that", "saying", "because"})
_SURE_HEAD = 0.45
"""What the words before a text must score for it to be taken as a value."""
_MAX_TRIED = 3
MAKES = frozenset({"create", "send"})
"""What a thing with a colon behind it stands for."""


def with_tails(clauses: Sequence[Clause], text: str, index: Index) -> list[Clause]:
    """The clauses, in which text that is a value no longer counts as words."""
    found: list[Clause] = []
    for clause in clauses:
        if found and found[-1].tail and clause.joined in (AND, COMMA):
            found[-1] = found[-1].with_more(clause)
        else:
            found.append(_with_tail(clause, text, index))
    return with_moods(found, index)


def _with_tail(clause: Clause, text: str, index: Index) -> Clause:
    tried = 0
    for place, word in enumerate(clause.words[1:], 1):
        gap = text[clause.words[place - 1].end : word.start].strip()
        colon = gap.startswith(":") or (gap == "-" and _only_things(clause.words[:place], index))
        if word.text == "that" and kinds_of(clause.words[place - 1].stem):
            continue
        if not colon and (
            word.kind or word.text not in INTRODUCES or not _tail_goes_on(clause.words, place)
        ):
            continue
        tried += 1
        if tried > _MAX_TRIED:
            break
        changed = _at(clause, place, colon, index)
        if changed is not None:
            return changed
    return clause


def _at(clause: Clause, place: int, colon: bool, index: Index) -> Clause | None:
    """The clause with its tail beginning there; None when there is none."""
    head = clause.words[:place]
    implied = MAKES if colon and not _refers(head) else clause.implied
    kinds = {word.kind for word in head if word.kind}
    best = next(iter(fits_of(query_of(head, index, kinds, implied=implied), index)), None)
    if best is None or not _fits_well(best):
        return None
    if not best.entry.wants_text:
        return replace(clause, implied=implied) if colon else None
    begin = place if colon else place + 1
    tail = (replace(each, kind=each.kind or "text") for each in clause.words[begin:])
    return replace(clause, words=(*clause.words[:begin], *tail), tail=True, implied=implied)


def _only_things(head: Sequence[Word], index: Index) -> bool:
    """Whether nothing but a thing stands there: `memo - bins go out`."""
    return all(not word.kind and word.stem in index.objects | index.domain_words for word in head)


def _refers(head: Sequence[Word]) -> bool:
    """Whether the head speaks of a thing that is already there: `quote Q-12: …`."""
    first = next((place for place, word in enumerate(head) if word.text not in FUNCTION_WORDS), 0)
    return any(
        after.kind == f"id:{word.stem}" or after.kind == f"id:{word.text}"
        for word, after in pairwise(head[first : first + 2])
    )


def _tail_goes_on(words: Sequence[Word], place: int) -> bool:
    """Whether plain words follow, and not a value or, as in `add it to quote Q-12`, a thing with its id."""
    after = [word.kind for word in words[place + 1 : place + 3]]
    if not after or after[0]:
        return words[place].text in _SAYS and bool(after)
    return words[place].text != "to" or not after[-1].startswith("id")


def _fits_well(fit: Fit) -> bool:
    asks = fit.verb > 0 or fit.phrase >= OWN_WORDS
    return fit.score >= _SURE_HEAD and asks and fit.thing > 0
