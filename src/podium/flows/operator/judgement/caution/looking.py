"""The doubts one after the other; the first that holds is asked about."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.operating import Intent, Message, Reading
from podium.domain.packs import Pack
from podium.flows.operator.judgement.caution.amounts import strange_amount
from podium.flows.operator.judgement.caution.asked import not_asked_for
from podium.flows.operator.judgement.caution.claims import claimed_approval, forged_answer
from podium.flows.operator.judgement.caution.left_over import left_over
from podium.flows.operator.judgement.caution.quoting import only_quoted
from podium.flows.operator.judgement.caution.said import Said
from podium.flows.operator.judgement.caution.sharing import shared
from podium.flows.operator.judgement.caution.talk import only_talk
from podium.flows.operator.judgement.fields.entity import Entity

_DOUBTS = (
    forged_answer,
    claimed_approval,
    only_talk,
    only_quoted,
    strange_amount,
    shared,
    left_over,
    not_asked_for,
)
"""Each gives a question, or an empty text. The first ones doubt that anything was asked for at all."""
_UNSURE = 0.5
"""As sure as a reading is at most that is asked about; below what acts."""


def look_again(
    reading: Reading, message: Message, pack: Pack, entities: Sequence[Entity]
) -> Reading:
    """The reading, or the same as a question. It never becomes less careful, nor does it get another wish.

    `entities` are the finds in the whole of the message's text, by their places in it.
    """
    if reading.intent is not Intent.EXECUTE or not reading.wishes:
        return reading
    said = Said(message.text, reading.wishes, pack, entities, message.now)
    for doubt in _DOUBTS:
        if question := doubt(said):
            return reading.model_copy(
                update={
                    "intent": Intent.CLARIFY,
                    "confidence": min(reading.confidence, _UNSURE),
                    "reasoning": "Part of the message is in doubt, so nothing is done before it is answered",
                    "question": question,
                    "wishes": (),
                    "candidates": tuple(dict.fromkeys(wish.tool for wish in reading.wishes)),
                }
            )
    return reading
