"""The backlog: ideas for later that would have led away from the task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import islice

from podium.flows.pipeline.ledger import appended, new_entries

MOST_ITEMS = 20
"""That one step may add."""
LONGEST_ITEM = 1_000

_HEAD = """\
# Backlog

Ideas for later, found while working on something else. Sort, edit or remove them as you like.

"""


def with_items(text: str | None, items: Sequence[str], *, source: str, day: date) -> str:
    """The backlog with these items, each once, also when it stands there in other punctuation.

    What is in it already stays as it is. None, with nothing to add, gives an empty text.
    """
    new = islice(new_entries(text, items, longest=LONGEST_ITEM), MOST_ITEMS)
    return appended(text, new, head=_HEAD, source=source, day=day)
