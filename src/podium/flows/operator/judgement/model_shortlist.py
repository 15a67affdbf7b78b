"""Which tools of a long registry a model is told of: those whose words stand in the message."""

from __future__ import annotations

from functools import cached_property

from podium.domain.packs import PackRegistry
from podium.flows.operator.judgement.embedded.index import Index, build
from podium.flows.operator.judgement.embedded.marking import marked
from podium.flows.operator.judgement.embedded.query import query_of
from podium.flows.operator.judgement.embedded.words import clean, words_of


class Shortlist:
    """Ranks tools and skills by the index of the embedded classifier, made when it is first needed."""

    def __init__(self, registry: PackRegistry) -> None:
        self._registry = registry

    @cached_property
    def _index(self) -> Index:
        return build(self._registry)

    def __call__(self, text: str) -> list[str]:
        """Every name, those that fit best first; of equal ones the registry's order."""
        index, said = self._index, clean(text)
        query = query_of(marked(said, words_of(said), (), index), index)
        worth = [0.0] * len(index.entries)
        for word, weight in query.weights.items():
            for number, strength in index.postings.get(word, ()):
                worth[number] += weight * strength * index.rarity.get(word, 0.0)
        ranked = sorted(index.entries, key=lambda entry: (-worth[entry.number], entry.number))
        return [entry.name for entry in ranked]
