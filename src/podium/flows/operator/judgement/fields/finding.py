"""All that can be found in a text, whatever tool it is for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from podium.flows.operator.judgement.fields.corrections import without_corrected
from podium.flows.operator.judgement.fields.dates import dates
from podium.flows.operator.judgement.fields.entity import Entity, settle
from podium.flows.operator.judgement.fields.ids import ids
from podium.flows.operator.judgement.fields.lexicon import Lexicon, lexicon_of
from podium.flows.operator.judgement.fields.mail import emails
from podium.flows.operator.judgement.fields.name_ground import NameGround
from podium.flows.operator.judgement.fields.names import CapitalNames
from podium.flows.operator.judgement.fields.numbers import numbers, sums_of_money
from podium.flows.operator.judgement.fields.passage import Passage
from podium.flows.operator.judgement.fields.periods import periods
from podium.flows.operator.judgement.fields.phones import phones
from podium.flows.operator.judgement.fields.places import addresses, postcodes, suburbs
from podium.flows.operator.judgement.fields.small_names import SmallNames
from podium.flows.operator.judgement.fields.times import moments, times


def entities(text: str, now: datetime, vocabulary: Mapping[str, tuple[str, ...]]) -> list[Entity]:
    """What is in the text, in its order; no two overlap. `now` is local time.

    Without a pack nobody knows what its things are called: ids are found by their shape alone. A
    `FieldExtractor` knows more.
    """
    return found_in(Passage(text, now), _lexicon(tuple(vocabulary.items())))


@lru_cache(maxsize=8)
def _lexicon(vocabulary: tuple[tuple[str, tuple[str, ...]], ...]) -> Lexicon:
    return lexicon_of(dict(vocabulary))


def found_in(passage: Passage, lexicon: Lexicon) -> list[Entity]:
    # People are found last: what is a number, a place or a day is nobody's name.
    certain = settle(
        [
            *emails(passage),
            *phones(passage, lexicon.area),
            *sums_of_money(passage),
            *dates(passage),
            *moments(passage),
            *times(passage),
            *addresses(passage),
            *ids(passage, lexicon),
        ],
        len(passage.text),
    )
    anchors = [each for each in certain if each.kind in {"phone", "email"}]
    places = _cued_first(settle([*certain, *suburbs(passage, lexicon)], len(passage.text)))
    people = _people(NameGround(passage, lexicon, anchors, places))
    vague = [*people, *periods(passage), *numbers(passage)]
    found = settle([*certain, *places, *postcodes(passage, places), *vague], len(passage.text))
    return without_corrected(passage, found)


def _people(ground: NameGround) -> list[Entity]:
    capitals = [] if ground.passage.shouted else CapitalNames(ground).found()
    return [*SmallNames(ground).found(), *capitals]


def _cued_first(found: list[Entity]) -> list[Entity]:
    """The places; of those that may as well be names, none where another is certain."""
    places = [each for each in found if each.kind == "suburb"]
    certain = [each for each in places if each.certainty > 38]
    return certain or places
