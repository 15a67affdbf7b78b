"""Sentences of the registry in the very words of an example: what the registry says they mean is what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from podium.core.packs import PackRegistry, PackTool, Skill
from podium.jobs.operator.judgement.embedded.moods import COURTESY
from podium.jobs.operator.judgement.embedded.tokens import clean, plain_tokens, tokenize
from podium.jobs.operator.judgement.fields.tokenized_text import Entity

Entities = Callable[[str, datetime], Sequence[Entity]]
Template = tuple[str, ...]
"""Words of a sentence, with the kind of each value in its place."""


class _Example(NamedTuple):
    subject: PackTool | Skill
    text: str
    tokens: frozenset[str]


class ExactExamples:
    """Finds the tool or skill of which a sentence is an example, whatever its ids, numbers, names and days are."""

    def __init__(self, registry: PackRegistry, entities: Entities) -> None:
        self._registry = registry
        self._entities = entities

    def find(self, text: str, entities: Sequence[Entity], now: datetime) -> PackTool | Skill | None:
        """None unless the examples with these words are all of one tool or skill."""
        template = _template(text, entities)
        tokens = {token for token in template if not token.startswith("<")}
        # The examples with the rarest word: hardly one is left to be looked at for its values.
        rarest = min((self._by_token.get(token, []) for token in tokens), key=len, default=[])
        subjects = {
            example.subject.name: example.subject
            for example in rarest
            if tokens <= example.tokens
            and template == _template(example.text, self._entities(example.text, now))
        }
        return next(iter(subjects.values())) if len(subjects) == 1 else None

    @cached_property
    def _by_token(self) -> dict[str, list[_Example]]:
        by_token: dict[str, list[_Example]] = {}
        subjects: tuple[PackTool | Skill, ...] = (*self._registry.tools, *self._registry.skills)
        for subject in subjects:
            for one in subject.examples:
                text = clean(one.say)
                example = _Example(subject, text, frozenset(plain_tokens(text)))
                for token in example.tokens:
                    by_token.setdefault(token, []).append(example)
        return by_token


def _template(text: str, entities: Sequence[Entity]) -> Template:
    plain = COURTESY.sub(lambda match: " " * len(match.group()), text)
    parts: list[tuple[int, str]] = []
    end = 0
    for entity in sorted(entities, key=lambda entity: entity.start):
        if entity.start >= end:
            parts.append((entity.start, f"<{entity.kind}>"))
            end = entity.end
    spans = [(entity.start, entity.end) for entity in entities]
    parts += [
        (token.start, token.text)
        for token in tokenize(plain)
        if not any(start <= token.start < stop for start, stop in spans)
    ]
    return tuple(part for _, part in sorted(parts))
