"""One mention, two wishes: whether a value is really meant for both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from podium.domain.operating import Wish
from podium.flows.operator.judgement.caution.left_over import untaken
from podium.flows.operator.judgement.caution.said import Given, Said
from podium.flows.operator.judgement.fields.entity import Entity

_OR = re.compile(
    r"[\s,]{0,3}(?:or|or else|and/or)(?: (?:on |the |to |for )?(?:the )?[^\W\d_]{0,14})?[\s,]{0,3}",
    re.IGNORECASE,
)


def shared(said: Said) -> str:
    """Asks where two wishes of one tool have the same value and the message has another one of its kind."""
    if question := _one_or_the_other(said) or _taken_back(said):
        return question
    seen: set[tuple[str, str, str]] = set()
    rest = untaken(said) if len(said.wishes) > 1 else []
    for wish in said.wishes:
        for given in said.given(wish):
            again = (wish.tool, given.name, str(given.value))
            if again not in seen:
                seen.add(again)
            elif other := next(_others(said, wish, given, rest), ""):
                return f"Which of them gets {str(given.value)[:60]}, and which {other}?"
    return ""


def _one_or_the_other(said: Said) -> str:
    """`Archive abc123 or abc124`, `give it to Dave or Mike`."""
    if not said.changes or " or " not in said.spoken:
        return ""
    left = untaken(said)
    for one, other in pairwise(said.finds):
        alike = one.kind[:2] == other.kind[:2] and one.value != other.value
        if not alike or not _OR.fullmatch(said.text, one.end, other.start):
            continue
        used = one not in left or other not in left
        if used and not any(span.holds(one.start, other.end) for span in said.texts):
            return f"Which one is meant, {said.words_of(one)} or {said.words_of(other)}?"
    return ""


def _taken_back(said: Said) -> str:
    """`Restore it and archive it`: the second undoes the first."""
    undone: dict[tuple[str, str], str] = {}
    for wish in said.wishes:
        tool = said.pack.tool(wish.tool)
        for given in said.given(wish):
            if not given.kind.startswith("id:"):
                continue
            if first := undone.get((wish.tool, str(given.value))):
                return f"Which is meant, {first} or {wish.tool}? The one undoes the other."
            if tool is not None and tool.undo and tool.undo != tool.name:
                undone[tool.undo, str(given.value)] = tool.name
    return ""


def _others(said: Said, wish: Wish, given: Given, rest: Sequence[Entity]) -> Iterator[str]:
    """What the message has of the same kind and no wish took."""
    yield from (said.words_of(find) for find in rest if find.kind == given.kind)
    yield from _other_choices(said, wish, given)


def _other_choices(said: Said, wish: Wish, given: Given) -> Iterator[str]:
    entry = said.entry(wish)
    shape = entry.input_schema.get("properties", {}).get(given.name, {}) if entry else {}
    if given.kind != "choice" or not isinstance(shape, dict):
        return
    used = {each.value for each in said.all_given if each.name == given.name}
    words: dict[str, list[str]] = shape.get("x-words", {})
    for value in shape.get("enum", ()):
        if value not in used and _is_said(said, [str(value), *words.get(value, ())]):
            yield str(value)


def _is_said(said: Said, words: list[str]) -> bool:
    return any(
        re.search(rf"\b{re.escape(word.replace('_', ' ').lower())}\b", said.spoken)
        for word in words
    )
