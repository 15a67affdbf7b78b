"""Contract of every record of earned autonomy: it is append-only, and each verdict counts once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from podium.jobs.sense.testing import MemoryTrustBook
from podium.jobs.sense.trust import EarnedTrustBook
from tests.integration.bridge.test_trust_book import NOON, book_at, entry

BOOKS: dict[str, Callable[[Path], EarnedTrustBook]] = {
    "FileTrustBook": book_at,
    "MemoryTrustBook": lambda root: MemoryTrustBook(),
}


@pytest.fixture(params=list(BOOKS.values()), ids=list(BOOKS))
def book(request: pytest.FixtureRequest, tmp_path: Path) -> EarnedTrustBook:
    made: EarnedTrustBook = request.param(tmp_path)
    return made


def test_a_new_book_is_empty(book: EarnedTrustBook) -> None:
    assert list(book.entries()) == []


def test_entries_come_back_whole_and_in_their_order(book: EarnedTrustBook) -> None:
    messages = [
        entry("agreed", wo_id="A", tier="T2", by="ann"),
        entry("disagreed", wo_id="B", why="not\nnow"),
        entry("incident", wo_id="A", why="it broke"),
        entry("promoted", by="ann", tier="T1"),
        entry("demoted", by="ann", at=NOON + timedelta(seconds=1)),
    ]
    for item in messages:
        book.add(item)
    assert list(book.entries()) == messages


def test_the_same_word_about_the_same_order_counts_once(book: EarnedTrustBook) -> None:
    first = entry("agreed", wo_id="A", by="ann")
    book.add(first)
    book.add(entry("agreed", wo_id="A", by="ann", at=NOON + timedelta(hours=1)))
    assert list(book.entries()) == [first]


def test_another_word_another_zone_and_another_order_are_other_entries(
    book: EarnedTrustBook,
) -> None:
    for item in (
        entry("agreed", wo_id="A"),
        entry("incident", wo_id="A"),
        entry("agreed", wo_id="A", zone="logs"),
        entry("agreed", wo_id="B"),
    ):
        book.add(item)
    assert len(book.entries()) == 4
