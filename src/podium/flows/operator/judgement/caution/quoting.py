"""Somebody else's words: what stands in a quotation is no wish of who quotes it."""

from __future__ import annotations

import re

from podium.domain.gating import Tier
from podium.domain.operating import Wish
from podium.flows.operator.judgement.caution.asked import act_words
from podium.flows.operator.judgement.caution.roots import WORD, names_one, roots_of
from podium.flows.operator.judgement.caution.said import Given, Said, Span
from podium.flows.operator.judgement.fields.entity import Entity

_NEW = re.compile(r"\b(?:new|another|fresh) (?:\w+ )?\w+\s{0,2}[:,-]?\s{0,2}\Z")
_BEFORE = 40
"""Characters before an id in which it is said to be new."""


def only_quoted(said: Said) -> str:
    """Asks where a wish rests on a quotation alone: what it acts on stands there, or all that asks for it."""
    if not said.changes:
        return ""
    for wish in said.wishes:
        for given in said.given(wish):
            mentions = [each for each in said.finds if each.value == given.value]
            if question := _about_whom(said, wish, given, mentions):
                return question
        if _asked_in_quotation(said, wish):
            return f"The message only quotes it. Should {wish.tool} be done?"
    return ""


def _about_whom(said: Said, wish: Wish, given: Given, mentions: list[Entity]) -> str:
    is_id = given.kind.startswith("id:")
    reached = given.kind in ("phone", "email") and said.tier_of(wish) >= Tier.T3
    if not mentions or not (is_id or reached):
        return ""
    words = said.words_of(mentions[0])
    if all(_in_quotation(said, wish, each) for each in mentions):
        return f"{words} is only in words that are quoted. Should {wish.tool} be done to it?"
    if is_id and any(_is_new(said, each) for each in mentions):
        return f"Is {words} one that is already there, or a new one?"
    return ""


def _in_quotation(said: Said, wish: Wish, find: Entity) -> bool:
    """Whether it is quoted among other words, and the wish is not to keep or send these."""
    return any(
        span.holds(find.start, find.end) and _says_more(said, span, find)
        for span in _foreign(said, wish)
    )


def _asked_in_quotation(said: Said, wish: Wish) -> bool:
    quoted = " ".join(said.text[span.start : span.end] for span in _foreign(said, wish))
    if not quoted or wish.tool in said.spoken:
        return False
    acts = act_words(said, wish)
    return not roots_of(quoted).isdisjoint(acts) and not names_one(said.spoken_roots, acts)


def _foreign(said: Said, wish: Wish) -> list[Span]:
    """The quotations that are no text of the wish itself."""
    kept = said.texts_of(wish)
    return [
        span
        for span in said.quotes
        if not any(text.start < span.end and span.start < text.end for text in kept)
    ]


def _says_more(said: Said, span: Span, find: Entity) -> bool:
    around = said.text[span.start : find.start] + " " + said.text[find.end : span.end]
    return len(WORD.findall(around)) > 1


def _is_new(said: Said, find: Entity) -> bool:
    return _NEW.search(said.lower, max(0, find.start - _BEFORE), find.start) is not None
