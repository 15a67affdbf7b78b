"""How sure a reading is: about the share of clauses with such marks that were read rightly."""

from __future__ import annotations

import math
from collections.abc import Sequence

from podium.flows.operator.judgement.embedded.scoring import OWN_WORDS, Fit

SURE_ENOUGH = 0.55
"""Below this the answer is a question."""
FAINTEST = 0.25
"""Below this not even a question would help."""

BASE, BY_SCORE, BY_MARGIN, BY_COVERED, BY_VALUES, BY_PHRASE, BY_THING = (
    -4.1,
    2.1,
    1.7,
    2.1,
    1.6,
    1.5,
    0.7,
)
UNASKED = -1.6
"""A tool that changes something, although no verb of the clause asks for it."""
OPEN = 0.45
"""As sure as one can be of words that leave open what is to be done, such as `deal with`, or to what."""
ASKABLE = 0.3
"""As sure as one is at least that a thing which was named is meant, so that a question is worth while."""
"""The figures are those of a logistic regression over the registry's own examples, each read without itself, and the
utterances in `podium.testing.utterances` that are for tuning.
"""
LEAST_COVERED = 0.2
"""The share of the words that a tool must account for, however well the rest fits."""
WIDEST_MARGIN = 0.2
"""A greater distance to the second tool says no more."""


def confidence_of(fits: Sequence[Fit], is_open: bool = False) -> float:
    """0 to 1, for the first of the fits. `is_open`: the clause does not say what to do, or to what."""
    if not fits:
        return 0.0
    best = fits[0]
    margin = min(best.score - fits[1].score, WIDEST_MARGIN) if len(fits) > 1 else WIDEST_MARGIN
    marks = BASE + BY_SCORE * best.score + BY_MARGIN * margin + BY_COVERED * best.covered
    marks += BY_VALUES * best.values + BY_PHRASE * best.phrase + BY_THING * best.thing
    unasked = best.verb <= 0 and best.phrase < OWN_WORDS and not best.entry.reads
    marks += UNASKED if unasked else 0.0
    sure = 1 / (1 + math.exp(-marks))
    contrary = best.contrary and best.verb <= 0 and not best.entry.reads
    return min(sure, OPEN) if is_open or contrary or best.covered < LEAST_COVERED else sure
