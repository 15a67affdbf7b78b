"""Clauses of a message: cut where the next request begins, and where a value begins inside one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from podium.jobs.operator.judgement.embedded.moods import COMMAND, Mood, mood_of
from podium.jobs.operator.judgement.embedded.query import (
    BEHIND_VERBS,
    PREPOSITIONS,
    acts_of,
    phrasal_of,
    query_of,
    thing_as_verb,
)
from podium.jobs.operator.judgement.embedded.tokens import (
    ACTION_VERBS,
    INTRODUCES,
    READ,
    STOPWORDS,
    TaggedToken,
    kinds_of,
    token_set,
)
from podium.jobs.operator.judgement.embedded.tool_index import Index
from podium.jobs.operator.judgement.embedded.tool_score import OWN_WORDS, Fit, fits_of

SENTENCE, THEN, AND, COMMA = "sentence", "then", "and", "comma"
"""Links of a clause to the one before it, the loosest first."""

_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)|[;\n]")
_NO_END = token_set("st rd ave dr mr mrs ms no approx pty ltd co ph tel")
"""Words that are written with a full stop."""
_THEN = token_set("then also plus but so afterwards next finally")
_AND = frozenset({"and", "n"})
_FILLERS = _THEN | _AND | token_set(
    "please pls just can could you would i we want need to like id lets go ahead kindly now after that ill"
)  # fmt: skip
_BANS = token_set("dont not never do without no")
REASONS = token_set("because since cause seeing")
"""Words with which the reason of a request begins that comes after it."""
_MAX_LOOKED_AT = 60
"""Words of a clause that say whether it is a command; more are text."""
MAX_CLAUSES = 60
A_VALUE = "…"


@dataclass(frozen=True, slots=True)
class Clause:
    """Part of a message that may be a request."""

    tokens: tuple[TaggedToken, ...]
    start: int
    end: int
    joined: str = SENTENCE
    asked: bool = False
    opens: bool = False
    """True if it begins as a command does."""
    tail: bool = False
    """True if it ends in words that are a value."""
    mood: Mood = COMMAND
    """Mood, with the conditions and reports of the rest of its sentence."""
    implied: frozenset[str] = frozenset()
    """The kinds of acts it stands for when it has no verb."""

    @property
    def texts(self) -> list[str]:
        """Its words as written, with a mark for each that is a value."""
        return [token.text if not token.kind else A_VALUE for token in self.tokens]

    def with_more(self, other: Clause) -> Clause:
        """Both as one, in which the words of the other are mere values."""
        tokens = tuple(replace(token, kind=token.kind or "text") for token in other.tokens)
        merged = (*self.tokens, *tokens) if other.start >= self.start else (*tokens, *self.tokens)
        return replace(
            self, tokens=merged, start=min(self.start, other.start), end=max(self.end, other.end)
        )


def clauses_of(text: str, tokens: Sequence[TaggedToken], index: Index) -> list[Clause]:
    """The clauses in their order; a list of things after a verb of reading is one for each."""
    clauses: list[Clause] = []
    for sentence, asked in _sentences(text, tokens):
        for part, joined in _parts(text, sentence, index):
            opens = opener_of(part, index) is not None
            implied = _implied(clauses, joined, opens)
            start, end = _span(text, part)
            clause = Clause(tuple(part), start, end, joined, asked, opens, implied=implied)
            clauses.append(clause)
    return clauses


def with_moods(clauses: Sequence[Clause], index: Index) -> list[Clause]:
    """The clauses, each with how it is meant; what one makes depend, all of its sentence depends on."""
    result: list[Clause] = []
    sentence: list[Clause] = []
    for clause in clauses:
        if clause.joined == SENTENCE:
            result += _of_one_sentence(sentence)
            sentence = []
        mood = mood_of(clause.texts, clause.asked, index.openers)
        sentence.append(replace(clause, mood=mood))
    return result + _of_one_sentence(sentence)


def _of_one_sentence(clauses: Sequence[Clause]) -> list[Clause]:
    moods = [clause.mood for clause in clauses]
    return [replace(clause, mood=clause.mood.within(moods)) for clause in clauses]


def _span(text: str, tokens: Sequence[TaggedToken]) -> tuple[int, int]:
    """From where to where the words go, with the signs that stand at them: `$`, quotes, brackets."""
    start, end = tokens[0].start, tokens[-1].end
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


def _sentences(
    text: str, tokens: Sequence[TaggedToken]
) -> Iterator[tuple[list[TaggedToken], bool]]:
    """The sentences, each with whether it ends with a question mark."""
    ends = [(match.start(), match.group()) for match in _SENTENCE_END.finditer(text)]
    current: list[TaggedToken] = []
    for position, token in enumerate(tokens):
        current.append(token)
        after = tokens[position + 1] if position + 1 < len(tokens) else None
        while ends and ends[0][0] < token.end:
            ends.pop(0)
        if not ends or (after is not None and ends[0][0] >= after.start):
            continue
        quoted = after is not None and token.kind == after.kind == "quoted"
        if not quoted and not _goes_on(text, ends[0], token):
            yield current, "?" in ends[0][1]
            current = []
    if current:
        yield current, False


def _goes_on(text: str, end: tuple[int, str], token: TaggedToken) -> bool:
    """Return whether a sign that ends sentences ends none: in `St.`, or in a line that ends with a colon."""
    position, sign = end
    return (sign == "." and token.text in _NO_END) or (
        sign == "\n" and text[:position].rstrip().endswith(":")
    )


def _parts(
    text: str, tokens: list[TaggedToken], index: Index
) -> Iterator[tuple[list[TaggedToken], str]]:
    """The sentence, cut at each `and`, `then` or comma behind which a command begins."""
    begin, joined = 0, SENTENCE
    for position in range(1, len(tokens)):
        link = _link(text, tokens, position)
        if not link or tokens[position].kind:
            continue
        left, right = (
            tokens[begin : min(position, begin + _MAX_LOOKED_AT)],
            tokens[position : position + 10],
        )
        if _cuts(left, link, right, index):
            yield tokens[begin:position], joined
            begin, joined = position, link
    yield tokens[begin:], joined


def _link(text: str, tokens: Sequence[TaggedToken], position: int) -> str:
    token = tokens[position]
    gap = text[tokens[position - 1].end : token.start]
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    if token.text in _THEN and not token.kind:
        # `thank you so much` goes on with nothing.
        return (
            "" if token.text == "so" and following and following.text in ("much", "many") else THEN
        )
    if (token.text in _AND and not token.kind) or "&" in gap or "+" in gap:
        return THEN if following is not None and following.text in _THEN else AND
    return COMMA if "," in gap or " - " in gap else ""


def _cuts(
    left: Sequence[TaggedToken], link: str, right: Sequence[TaggedToken], index: Index
) -> bool:
    says_something = any(not token.kind and token.text not in _FILLERS for token in left)
    if link == COMMA and left[0].text in REASONS:
        return True
    if not says_something or _is_topic(left, link, index):
        return False
    opener = opener_of(right, index)
    if opener is not None:
        return not _labels(right, opener)
    return link in (AND, THEN) and acts_of(left, index) == {READ} and _names_a_thing(right, index)


def _is_topic(left: Sequence[TaggedToken], link: str, index: Index) -> bool:
    """Return whether the words only say what the command behind them is about."""
    if left[0].text in PREPOSITIONS:
        return True
    if link != COMMA:
        return False
    remark = acts_of(left, index) == {READ} and opener_of(left, index) is None
    return remark or not any(kinds_of(token.stem) for token in left if not token.kind)


def _names_a_thing(tokens: Sequence[TaggedToken], index: Index) -> bool:
    return any(token.stem in index.objects and not token.kind for token in tokens[:4])


def opener_of(tokens: Sequence[TaggedToken], index: Index) -> int | None:
    """Find the position of the word that begins a command, after words of courtesy."""
    for position, token in enumerate(tokens[:8]):
        if token.kind:
            return None
        if token.text in ACTION_VERBS or token.text in index.openers or token.text in _BANS:
            return position
        if thing_as_verb(tokens[position:], index) or _looks_like_an_order(
            tokens[position:], index
        ):
            return position
        if phrasal_of([other for other in tokens if not other.kind], position):
            return position
        if token.text not in _FILLERS:
            return None
    return None


def _looks_like_an_order(tokens: Sequence[TaggedToken], index: Index) -> bool:
    """`Order a pizza`: a word in its plain form that is no thing, and behind it what only verbs have behind them."""
    token, after = tokens[0], tokens[1].text if len(tokens) > 1 else ""
    if token.capital or token.text in STOPWORDS or token.stem in index.objects:
        return False
    return after in BEHIND_VERBS and not token.text.endswith(("s", "ed", "ing", "ly"))


def _labels(tokens: Sequence[TaggedToken], position: int) -> bool:
    """Return whether the word only says what the value after it is: `email sarah@example.com`."""
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    return following is not None and following.kind.split(":")[-1] == tokens[position].stem


_SAYS = frozenset({"that", "saying", "because"})
_SURE_HEAD = 0.45
"""Score that the words before a text need for it to be taken as a value."""
_MAX_TRIED = 3
MAKES = frozenset({"create", "send"})
"""Kinds of acts that a thing with a colon after it stands for."""


def with_tails(clauses: Sequence[Clause], text: str, index: Index) -> list[Clause]:
    """The clauses, in which text that is a value no longer counts as words."""
    result: list[Clause] = []
    for clause in clauses:
        if result and result[-1].tail and clause.joined in (AND, COMMA):
            result[-1] = result[-1].with_more(clause)
        else:
            result.append(_with_tail(clause, text, index))
    return with_moods(result, index)


def _with_tail(clause: Clause, text: str, index: Index) -> Clause:
    tried = 0
    for position, token in enumerate(clause.tokens[1:], 1):
        gap = text[clause.tokens[position - 1].end : token.start].strip()
        colon = gap.startswith(":") or (
            gap == "-" and _only_things(clause.tokens[:position], index)
        )
        if token.text == "that" and kinds_of(clause.tokens[position - 1].stem):
            continue
        if not colon and (
            token.kind or token.text not in INTRODUCES or not _tail_goes_on(clause.tokens, position)
        ):
            continue
        tried += 1
        if tried > _MAX_TRIED:
            break
        changed = _at(clause, position, colon, index)
        if changed is not None:
            return changed
    return clause


def _at(clause: Clause, position: int, colon: bool, index: Index) -> Clause | None:
    """The clause with its tail beginning there; None when there is none."""
    head = clause.tokens[:position]
    implied = MAKES if colon and not _refers(head) else clause.implied
    kinds = {token.kind for token in head if token.kind}
    best = next(iter(fits_of(query_of(head, index, kinds, implied=implied), index)), None)
    if best is None or not _fits_well(best):
        return None
    if not best.entry.wants_text:
        return replace(clause, implied=implied) if colon else None
    begin = position if colon else position + 1
    tail = (replace(token, kind=token.kind or "text") for token in clause.tokens[begin:])
    return replace(clause, tokens=(*clause.tokens[:begin], *tail), tail=True, implied=implied)


def _only_things(head: Sequence[TaggedToken], index: Index) -> bool:
    """Return whether nothing but a thing stands there: `memo - bins go out`."""
    return all(
        not token.kind and token.stem in index.objects | index.domain_stems for token in head
    )


def _refers(head: Sequence[TaggedToken]) -> bool:
    """Return whether the head speaks of a thing that is already there: `quote Q-12: …`."""
    first = next(
        (position for position, token in enumerate(head) if token.text not in STOPWORDS), 0
    )
    return any(
        after.kind == f"id:{token.stem}" or after.kind == f"id:{token.text}"
        for token, after in pairwise(head[first : first + 2])
    )


def _tail_goes_on(tokens: Sequence[TaggedToken], position: int) -> bool:
    """Return whether plain words follow, and not a value or, as in `add it to quote Q-12`, a thing with its id."""
    after = [token.kind for token in tokens[position + 1 : position + 3]]
    if not after or after[0]:
        return tokens[position].text in _SAYS and bool(after)
    return tokens[position].text != "to" or not after[-1].startswith("id")


def _fits_well(fit: Fit) -> bool:
    asks = fit.verb > 0 or fit.phrase >= OWN_WORDS
    return fit.score >= _SURE_HEAD and asks and fit.thing > 0
