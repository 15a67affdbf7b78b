"""What somebody takes back in the same breath: `Monday, no sorry, Tuesday`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage

_TAKES_BACK = re.compile(
    r"\b(?:no,? (?:sorry|wait|make (?:it|that))|(?:sorry|wait|oops|whoops),? (?:no|i mean|make (?:it|that))|i mean|scratch that"
    r"|(?:or )?rather|actually,? (?:no|make (?:it|that))|correction|i meant|make that)\b"
)
_FARTHEST = 12
"""Characters between the words that take back and what takes the place: `no sorry, on the`."""


def without_corrected(passage: Passage, found: Sequence[Entity]) -> list[Entity]:
    """The finds without those of which a later one of the same kind says that they were wrong."""
    gone: set[int] = set()
    for said in _TAKES_BACK.finditer(passage.lower):
        instead = next((each for each in found if each.start >= said.end()), None)
        if instead is None or instead.start - said.end() > _FARTHEST:
            continue
        same = [each for each in found if each.end <= said.start() and each.kind == instead.kind]
        gone.update(each.start for each in same[-1:])
    return [each for each in found if each.start not in gone]
