"""Tokens: shown once, kept as hashes, gone when they are over."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.core.errors import BadInput, UserMustAct
from podium.web.access.limits import ALL_FAILURES_PER_MINUTE, Attempts, Rates, TurnedAway
from podium.web.access.tokens import ConsoleRole, TokenBook

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
APPROVER = frozenset({ConsoleRole.APPROVER})


def test_a_token_lets_its_person_in_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    book = TokenBook(tmp_path / "console")
    token, kept = book.make(" ann ", APPROVER, NOW)
    person = TokenBook(tmp_path / "console").person_with(token, NOW)
    assert person is not None
    assert (person.name, person.roles, person.token_id) == ("ann", APPROVER, kept.id)
    file = tmp_path / "console" / "tokens.json"
    assert token not in file.read_text()
    assert token.rpartition("_")[2] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_token_that_is_over_or_revoked_lets_nobody_in(tmp_path: Path) -> None:
    book, other = TokenBook(tmp_path), TokenBook(tmp_path)
    token, _ = book.make("ann", APPROVER, NOW, NOW + timedelta(hours=1))
    assert other.person_with(token, NOW + timedelta(minutes=59)) is not None
    assert other.person_with(token, NOW + timedelta(hours=1)) is None
    token, kept = book.make("ben", APPROVER, NOW)
    assert other.person_of(kept.id, NOW) is not None
    book.revoke(kept.id)
    assert other.person_with(token, NOW) is None
    assert other.person_of(kept.id, NOW) is None
    with pytest.raises(BadInput, match="no token"):
        book.revoke(kept.id)


def test_tokens_made_at_once_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: TokenBook(tmp_path).make(f"p{n}", APPROVER, NOW), range(24)))
    book = TokenBook(tmp_path)
    assert {kept.id for _, kept in made} == {kept.id for kept in book.all()}
    assert all(book.person_with(token, NOW) for token, _ in made)


def test_a_book_that_cannot_be_read_says_so_and_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    for content in ("", "{", "[]]", json.dumps([{"id": "x"}])):
        file.write_text(content)
        with pytest.raises(
            UserMustAct, match=r"tokens\.json cannot be parsed, so every token is refused"
        ):
            TokenBook(tmp_path).all()
        with pytest.raises(UserMustAct):
            TokenBook(tmp_path).make("ann", APPROVER, NOW)
        assert file.read_text() == content


def test_a_token_is_for_somebody(tmp_path: Path) -> None:
    for name in ("", "  ", "x" * 101, "ann\x1b[2J", "ann\nben"):
        with pytest.raises(BadInput, match="a name"):
            TokenBook(tmp_path).make(name, APPROVER, NOW)


def test_a_rate_grows_again_evenly() -> None:
    time = [0.0]
    rates = Rates(6, lambda: time[0])
    for _ in range(6):
        assert rates.wait_seconds("ann") == 0
        rates.spend("ann")
    assert rates.wait_seconds("ann") == 10
    assert rates.wait_seconds("ben") == 0
    time[0] = 9.0
    assert rates.wait_seconds("ann") == 1
    time[0] = 10.0
    assert rates.wait_seconds("ann") == 0


def test_when_all_together_guess_too_often_those_who_failed_before_wait() -> None:
    attempts = Attempts(lambda: 0.0)
    for number in range(ALL_FAILURES_PER_MINUTE):
        attempts.failed(f"10.0.0.{number}")
    with pytest.raises(TurnedAway) as turned:
        attempts.failed("10.0.0.1")
    assert turned.value.code == 429
    attempts.failed("somebody who never failed")
